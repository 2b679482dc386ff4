"""What a browser says of itself, in two words."""

from typing import NamedTuple

# The first that is found counts: each says that it is most of the others, too.
_BROWSERS = (
    ("Edg", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser/", "Samsung Internet"), ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"), ("CriOS/", "Chrome"), ("Chrome/", "Chrome"), ("Safari/", "Safari"),
)  # fmt: skip
_SYSTEMS = (
    ("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows"),
    ("Mac OS X", "macOS"), ("CrOS", "ChromeOS"), ("Linux", "Linux"),
)  # fmt: skip
_SHOWN = 40


class Browser(NamedTuple):
    name: str
    system: str


def browser_of(agent: str) -> Browser:
    """Names that are names in every language; of what is unknown its own first words."""
    name = next((name for sign, name in _BROWSERS if sign in agent), agent[:_SHOWN])
    return Browser(name, next((name for sign, name in _SYSTEMS if sign in agent), ""))

"""Images and files of units, as pages show them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from holdfast.domain.unit import Media

_WEB = ("http:", "https:")


class Medium(NamedTuple):
    url: str
    name: str

    @property
    def is_shown(self) -> bool:
        """Whether a page may load it: the policy of our pages lets in nothing that came over plain http."""
        return self.url.lower().startswith("https:") or self.is_own

    @property
    def is_own(self) -> bool:
        """Of this host."""
        return self.url.startswith("/")

    @property
    def is_linked(self) -> bool:
        return self.is_own or self.url.lower().startswith(_WEB)


def media(sent: Iterable[Media]) -> list[Medium]:
    return [Medium(one, _file_name(one)) if isinstance(one, str) else _named(one) for one in sent]


def on_this_host(medium: Medium, public_url: str) -> Medium:
    """What stands at our own address is a path: it is there under whatever name somebody came by."""
    base = public_url.rstrip("/") + "/"
    is_own = len(base) > 1 and medium.url.startswith(base)
    return medium._replace(url="/" + medium.url[len(base) :].lstrip("/")) if is_own else medium


def _named(one: Media) -> Medium:
    assert not isinstance(one, str)
    url = one["url"] or ""
    return Medium(url, one.get("name") or _file_name(url))


def _file_name(url: str) -> str:
    """The last part of its path, which is what people call it."""
    try:
        last = unquote(urlsplit(url).path.rpartition("/")[2])
    except ValueError:
        return url
    return last if last.isprintable() and last.strip() else url

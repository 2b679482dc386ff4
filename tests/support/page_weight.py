"""What a browser loads for a page before any picture: the page, its styles, its scripts, its fonts."""

import re
from collections.abc import Callable, Collection
from urllib.parse import urljoin

import httpx

MOST_BYTES = 100_000
_LINKED = re.compile(r'(?:<script src|<link rel="(?:stylesheet|icon)" href)="([^"]+)"')
_IN_A_SHEET = re.compile(r'url\("([^"]+\.woff2)"\)')

Look = Callable[[str], httpx.Response]


def loaded_with(look: Look, page: httpx.Response) -> dict[str, httpx.Response]:
    return {address: look(address) for address in _LINKED.findall(page.text)}


def fonts_in(loaded: dict[str, httpx.Response], names: Collection[str] | None = None) -> set[str]:
    """Those that are called so: a browser loads a font for letters that the page has. None: all."""
    return {
        urljoin(sheet, name)
        for sheet, answer in loaded.items()
        for name in _IN_A_SHEET.findall(answer.text)
        if names is None or any(own in name for own in names)
    }


def weight(answers: Collection[httpx.Response]) -> int:
    """As transferred: most of it is compressed."""
    assert all(answer.status_code == 200 for answer in answers)
    return sum(answer.num_bytes_downloaded for answer in answers)

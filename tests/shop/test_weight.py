"""The first view of a project is light: on a phone, on the way, before any picture is loaded."""

import re
from urllib.parse import urljoin

import httpx
import pytest

from tests.shop.buyers import Buyer, project_page
from tests.shop.windows import fill, windows
from tests.support.client import Project

MOST_BYTES = 100_000
KINDS = ("3-bedroom apartment | شقة بثلاث غرف نوم", "Studio | استوديو")
FONTS = {"en": ("inter-basic", "instrument-serif"), "ar": ("inter-basic", "holdfast-sans-arabic")}
"""Which a browser loads for the letters of that page."""
_LINKED = re.compile(r'(?:<script src|<link rel="(?:stylesheet|icon)" href)="([^"]+)"')
_IN_A_SHEET = re.compile(r'url\("([^"]+\.woff2)"\)')


@pytest.mark.parametrize("language", ["en", "ar"])
def test_the_first_view_of_a_project_is_under_100_kb(
    buyer: Buyer, http: httpx.Client, project: Project, language: str
) -> None:
    places = [(name, floor, at) for name in "AB" for floor in range(1, 13) for at in range(1, 6)]
    fill(
        http,
        project,
        *({"code": f"{name}-{floor:02}{at:02}", "type": KINDS[at % 2]} for name, floor, at in places),
    )
    path = f"{project_page(project)}?lang={language}"
    page = buyer.look(path)
    assert len(windows(page.text)) == 120
    loaded = {address: buyer.look(address) for address in _LINKED.findall(page.text)}
    fonts = {
        urljoin(sheet, name)
        for sheet, answer in loaded.items()
        for name in _IN_A_SHEET.findall(answer.text)
        if any(own in name for own in FONTS[language])
    }
    assert len(fonts) == len(FONTS[language]) + (language == "ar")
    everything = [page, *loaded.values(), *(buyer.look(font) for font in fonts)]
    assert all(answer.status_code == 200 for answer in everything)
    assert sum(len(answer.content) for answer in everything) < MOST_BYTES

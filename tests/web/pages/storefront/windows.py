"""What the page of a project shows, read from its HTML."""

import re
from html import unescape
from typing import Any
from urllib.parse import unquote

import httpx

from tests.support.bodies import full
from tests.support.client import Project, Unit, put_array

_WINDOW = re.compile(r'<a class="u is-(\w+)( dim)?" href="/p/[^"]*/units/([^"]+)" aria-label="([^"]+)"')
_CARD = re.compile(r'<li class="offer is-(\w+)" data-code="([^"]*)">')


def windows(page: str) -> dict[str, str]:
    """The look of each window, by its code."""
    return {unquote(code): look for look, _, code, _ in _WINDOW.findall(page)}


def lit(page: str) -> set[str]:
    """Those that are not dimmed by a filter."""
    return {unquote(code) for _, dim, code, _ in _WINDOW.findall(page) if not dim}


def labels(page: str) -> set[str]:
    return {unescape(label) for *_, label in _WINDOW.findall(page)}


def cards(page: str) -> dict[str, str]:
    """The look of each card, by its code, in the order of the page."""
    return {unescape(code): look for look, code in _CARD.findall(page)}


def fill(http: httpx.Client, project: Project, *units: dict[str, Any]) -> list[Unit]:
    """Many at once, full but for what is told of each."""
    answer = put_array(http, project, [full(**{"floor": None, **one}) for one in units])
    assert answer.json()["counts"]["created"] == len(units), answer.text
    return [Unit(http, project, one["code"]) for one in units]

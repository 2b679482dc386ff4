"""Properties that hold for every body, not only for the ones we thought of."""

import unicodedata
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.bodies import MEDIA, NULLABLE, minimal
from tests.support.client import Project, Unit, exact
from tests.support.feed import Feed
from tests.support.projects import add_project
from tests.support.sql import Sql

bounded = settings(max_examples=25, deadline=None)

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=100)
percent = st.decimals(0, 100, places=4)
letters = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_/", max_size=30)
url = letters.map(lambda path: f"https://media.example/{path}")
linked = url | st.fixed_dictionaries({"url": url}, optional={"name": text})
media = st.lists(linked, max_size=5)

FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "type": text.filter(bool),
    "areaSqm": st.decimals(Decimal("0.0001"), Decimal("9999999.9999"), places=4),
    "priceSar": st.decimals(0, Decimal("999999999999.99"), places=2),
    "vatIncluded": st.booleans(),
    "vatRate": percent,
    "depositPercent": percent,
    "bedrooms": st.integers(0, 999),
    "bathrooms": st.integers(0, 999),
    "deliveryYear": st.integers(1900, 2200),
    "floor": st.integers(-9, 200),
    "description": text,
    "images": media,
    "files": media,
    "status": st.sampled_from(["available", "unavailable"]),
}
REQUIRED = {name: FIELDS[name] for name in ("type", "areaSqm", "priceSar")}
OPTIONAL = {name: field for name, field in FIELDS.items() if name not in REQUIRED}
bodies = st.fixed_dictionaries(
    REQUIRED,
    optional={name: field if name == "status" else field | st.none() for name, field in OPTIONAL.items()},
)
patches = st.fixed_dictionaries(
    {}, optional={n: f if n in (*REQUIRED, "status") else f | st.none() for n, f in FIELDS.items()}
)
codes = (
    st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=50)
    .map(lambda code: unicodedata.normalize("NFC", code))
    .filter(lambda code: 1 <= len(code) <= 50 and code.isprintable() and code == code.strip())
)


@pytest.fixture(scope="module")
def tower(sql: Sql) -> Project:
    return add_project(sql)


def expected(body: dict[str, Any]) -> dict[str, Any]:
    """What a unit holds that was made from this body and nothing else."""
    empty: dict[str, Any] = dict.fromkeys(NULLABLE) | {name: [] for name in MEDIA} | {"status": "available"}
    given_media = {name: body[name] or [] for name in MEDIA if name in body}
    return empty | body | given_media


def fields_of(unit: dict[str, Any]) -> dict[str, Any]:
    return {name: unit[name] for name in FIELDS}


@bounded
@given(code=codes, body=bodies)
def test_what_is_put_is_what_get_gives_back_and_can_be_put_again(
    http: httpx.Client, tower: Project, session_feed: Feed, code: str, body: dict[str, Any]
) -> None:
    unit = Unit(http, tower, code)
    unit.put(minimal(status="available"))
    answer = unit.put(body)
    assert answer.status_code == 200, answer.text
    assert fields_of(exact(answer)) == expected(body)
    assert_unchanged_by(unit, session_feed, lambda: unit.put(body), lambda: unit.put(unit.get().content))


@bounded
@given(body=bodies, change=patches)
def test_a_patch_changes_what_it_names_and_nothing_else_once(
    http: httpx.Client, tower: Project, session_feed: Feed, body: dict[str, Any], change: dict[str, Any]
) -> None:
    unit = Unit(http, tower, "PATCHED")
    before = fields_of(exact(unit.put(body)))
    answer = unit.patch(change)
    assert answer.status_code == 200, answer.text
    cleared: dict[str, Any] = {name: [] for name in MEDIA if name in change and change[name] is None}
    assert fields_of(exact(answer)) == before | change | cleared
    assert_unchanged_by(unit, session_feed, lambda: unit.patch(change))


def assert_unchanged_by(unit: Unit, feed: Feed, *calls: Callable[[], httpx.Response]) -> None:
    before, events = unit.get(), len(feed.of(unit))
    for call in calls:
        answer = call()
        assert (answer.status_code, answer.text) == (200, before.text)
        assert answer.headers["etag"] == before.headers["etag"]
    assert len(feed.of(unit)) == events

"""What stands in a table of the documents and in the code is the same."""

import dataclasses
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from holdfast.domain.access import Scope
from holdfast.domain.booking import BookingStatus
from holdfast.domain.status import TRANSITIONS, Action, Caller
from holdfast.observability import metrics
from holdfast.settings import Settings
from holdfast.web.call import BODY_LIMIT
from holdfast.web.http.reading import LARGEST_HEAD
from holdfast.web.integration.bounds import LONGEST_MEDIA_NAME, LONGEST_URL, MEDIA_AT_MOST
from holdfast.web.integration.bulk import BULK_BODY_LIMIT, ITEMS_AT_MOST
from holdfast.web.integration.schemas import ReplaceBody
from holdfast.web.json_items import LONGEST_ITEM
from holdfast.web.problem_types import PROBLEM_TYPES
from holdfast.web.queries import DEFAULT_LIMIT, LARGEST_LIMIT
from holdfast.web.strict_json import LONGEST_NUMBER
from holdfast.web.wire import camel_case
from tests.docs.documents import (
    ARCHITECTURE,
    GUIDE,
    OPERATIONS,
    README,
    ROOT,
    SELLING_GUIDE,
    map_paths,
    name_of,
    table,
)

PACKAGE = ROOT / "src" / "holdfast"


def test_every_setting_is_in_the_table_with_its_default() -> None:
    shown = {row[0]: row[1] for row in table(OPERATIONS, "Setting")}
    assert shown == {
        f"HOLDFAST_{field.name.upper()}": _default_text(field.default)
        for field in dataclasses.fields(Settings)
    }


def test_every_problem_is_in_the_table() -> None:
    shown = {row[0]: (row[1], row[2]) for row in table(GUIDE, "Problem")}
    assert shown == {kind.name: (str(kind.status), kind.title) for kind in PROBLEM_TYPES.values()}


def test_the_problems_of_selling_are_those_of_the_code() -> None:
    known = {kind.name: (str(kind.status), kind.title) for kind in PROBLEM_TYPES.values()}
    shown = {row[0]: (row[1], row[2]) for row in table(SELLING_GUIDE, "Problem")}
    assert shown == {name: known.get(name) for name in shown}


def test_every_status_of_a_booking_is_in_the_table() -> None:
    assert [row[0] for row in table(SELLING_GUIDE, "Booking")] == list(BookingStatus)


def test_every_action_of_staff_is_in_the_table_with_what_it_starts_from() -> None:
    shown = {row[0]: (row[1], row[2]) for row in table(SELLING_GUIDE, "Action")}
    assert shown == {
        row.action: ("backoffice" if Caller.STAFF in row.callers else "admin", _sources(row.action))
        for row in TRANSITIONS
        if Caller.ADMIN in row.callers
    }


def test_every_field_of_a_body_is_in_the_table() -> None:
    shown = {name.strip() for row in table(GUIDE, "Field") for name in row[0].split(",")}
    assert shown == set(map(camel_case, ReplaceBody.__annotations__))


def test_every_scope_is_in_the_table() -> None:
    assert [row[0] for row in table(GUIDE, "Scope")] == list(Scope)


def test_every_metric_is_in_the_table() -> None:
    assert metrics.CONTENT_TYPE
    ours = {name for name in REGISTRY._names_to_collectors if name.startswith("holdfast_")}
    shown = {row[0] for row in table(OPERATIONS, "Metric")}
    assert shown <= ours
    assert {name for name in ours if name.endswith("_total")} <= shown


def test_limits_are_those_of_the_code() -> None:
    shown = {row[0]: row[1] for row in table(GUIDE, "Limit")}
    assert shown == {
        "Body": f"{BODY_LIMIT // 1024**2} MiB",
        "Body of the bulk route": f"{BULK_BODY_LIMIT // 1024**2} MiB",
        "Units of one bulk request": f"{ITEMS_AT_MOST:,}".replace(",", " "),
        "One unit of a bulk body": f"{LONGEST_ITEM // 1024**2} MiB",
        "Request line and headers": f"{LARGEST_HEAD // 1024} KiB",
        "limit of a list": f"1 to {LARGEST_LIMIT}, {DEFAULT_LIMIT} if left out",
        "Elements of images, of files": f"{MEDIA_AT_MOST} each",
        "URL of an image or file": f"{LONGEST_URL} characters",
        "Name of an image or file": f"{LONGEST_MEDIA_NAME} characters",
        "One number in a body": f"{LONGEST_NUMBER} characters",
    }


@pytest.mark.parametrize("document", [README, ARCHITECTURE], ids=name_of)
def test_paths_of_the_map_exist(document: Path) -> None:
    assert [path for path in map_paths(document) if not path.exists()] == []


def test_every_package_is_on_the_map_of_the_architecture() -> None:
    packages = {path.parent for path in PACKAGE.rglob("__init__.py")}
    assert packages <= set(map_paths(ARCHITECTURE))


def _sources(action: Action) -> str:
    return ", ".join(
        row.source for row in TRANSITIONS if row.action is action and Caller.ADMIN in row.callers
    )


def _default_text(default: object) -> str:
    if default is None or default == ():
        return "none"
    if isinstance(default, Path):
        return f"./{default}"
    return f"{default:g}" if isinstance(default, float) else str(default)

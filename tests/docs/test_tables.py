"""What stands in a table of the documents and in the code is the same."""

from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from holdfast.domain import delivery
from holdfast.domain.api_key import Scope
from holdfast.domain.booking import BookingStatus
from holdfast.domain.delivery import DeliveryStatus, Schedule
from holdfast.domain.endpoint import DEFAULT_IN_FLIGHT, LONGEST_DESCRIPTION, MAX_IN_FLIGHT
from holdfast.domain.endpoint_url import LONGEST_URL
from holdfast.domain.event import EventName
from holdfast.domain.signature import TOLERANCE_SECONDS
from holdfast.domain.transitions import TRANSITIONS, Action, Caller
from holdfast.observability import metrics
from holdfast.server.http_protocol import HttpProtocol
from holdfast.settings import Settings
from holdfast.storage.delivery_queue import FAILING_LANE_CAP
from holdfast.web.api.backoffice.endpoints import NewEndpoint
from holdfast.web.api.integration.units import BULK_BODY_LIMIT, MAX_ITEMS
from holdfast.web.api.parameters import DEFAULT_LIMIT, LARGEST_LIMIT
from holdfast.web.api.unit_bodies import LONGEST_MEDIA_NAME, MAX_MEDIA, UnitReplacement
from holdfast.web.api.unit_bodies import LONGEST_URL as LONGEST_MEDIA_URL
from holdfast.web.fields import MAX_PROJECTS
from holdfast.web.json import LONGEST_ITEM, LONGEST_NUMBER
from holdfast.web.problems import PROBLEM_TYPES
from holdfast.web.request import BODY_LIMIT
from holdfast.webhooks import causes, dispatcher
from holdfast.webhooks.causes import Phase
from holdfast.webhooks.connection import LONGEST_BODY, LONGEST_HEAD
from holdfast.webhooks.sender import _MOST_ADDRESSES
from tests.docs.documents import (
    ARCHITECTURE,
    GUIDE,
    OPERATIONS,
    README,
    ROOT,
    SELLING_GUIDE,
    WEBHOOKS_GUIDE,
    map_paths,
    name_of,
    table,
)

PACKAGE = ROOT / "src" / "holdfast"


def test_every_setting_is_in_the_table_with_its_default() -> None:
    shown = {row[0]: row[1] for row in table(OPERATIONS, "Setting")}
    assert shown == {
        f"HOLDFAST_{name.upper()}": _default_text(field.default)
        for name, field in Settings.model_fields.items()
    }


def test_every_problem_is_in_the_table() -> None:
    shown = {row[0]: (row[1], row[2]) for row in table(GUIDE, "Problem")}
    assert shown == {kind.name: (str(kind.status), kind.title) for kind in PROBLEM_TYPES.values()}


@pytest.mark.parametrize("guide", [SELLING_GUIDE, WEBHOOKS_GUIDE], ids=name_of)
def test_the_problems_of_a_guide_are_those_of_the_code(guide: Path) -> None:
    known = {kind.name: (str(kind.status), kind.title) for kind in PROBLEM_TYPES.values()}
    shown = {row[0]: (row[1], row[2]) for row in table(guide, "Problem")}
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
    assert shown == UnitReplacement.wire_names


def test_every_event_is_in_the_table() -> None:
    assert [row[0] for row in table(GUIDE, "Event")] == list(EventName)


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
        "Units of one bulk request": f"{MAX_ITEMS:,}".replace(",", " "),
        "One unit of a bulk body": f"{LONGEST_ITEM // 1024**2} MiB",
        "Request line and headers": f"{HttpProtocol.head_bytes // 1024} KiB",
        "limit of a list": f"1 to {LARGEST_LIMIT}, {DEFAULT_LIMIT} if left out",
        "Elements of images, of files": f"{MAX_MEDIA} each",
        "URL of an image or file": f"{LONGEST_MEDIA_URL} characters",
        "Name of an image or file": f"{LONGEST_MEDIA_NAME} characters",
        "One number in a body": f"{LONGEST_NUMBER} characters",
    }


def test_every_choice_of_an_endpoint_is_in_the_table() -> None:
    shown = {row[0]: row[2] for row in table(WEBHOOKS_GUIDE, "Member")}
    assert set(shown) == NewEndpoint.wire_names
    assert shown["projects"] == f"up to {MAX_PROJECTS}"


def test_the_attempts_are_made_at_the_times_in_the_table() -> None:
    schedule, seconds = Schedule(), 0.0
    expected = [["1", "–", "–"]]
    for tried in range(1, schedule.attempts):
        gap = schedule.gap_after(tried).total_seconds()
        seconds += gap
        expected.append([str(tried + 1), f"{gap:g} s", _minutes(seconds)])
    assert table(WEBHOOKS_GUIDE, "Attempt") == expected


def test_every_status_of_a_delivery_is_in_the_table() -> None:
    assert [row[0] for row in table(WEBHOOKS_GUIDE, "Delivery")] == list(DeliveryStatus)


def test_every_cause_is_in_the_table() -> None:
    shown = {row[0] for row in table(WEBHOOKS_GUIDE, "Cause")}
    fixed = [value for name, value in vars(causes).items() if name.isupper() and isinstance(value, str)]
    tables = [*causes._CONNECTING.values(), *causes._CERTIFICATE.values()]
    timeout_seconds = Settings().attempt_timeout_seconds
    of_workers = delivery.INTERNAL_CAUSES
    of_status = [causes.explain_status(code) for code in (500, 301, 101)]
    of_time = [causes.explain_timeout(phase, timeout_seconds) for phase in Phase]
    known = set(map(str, [*fixed, *tables, *of_time, *of_workers, *of_status]))
    assert known <= shown
    assert {text for text in shown - known if "10.0.0.5" not in text} == {"The receiver does not speak TLS."}


def test_limits_of_webhooks_are_those_of_the_code() -> None:
    settings = Settings()
    assert {row[0]: row[1] for row in table(WEBHOOKS_GUIDE, "Limit")} == {
        "Time for an answer": f"{settings.attempt_timeout_seconds:g} s",
        "Attempts of one series": str(settings.attempts),
        "Attempts on their way to one endpoint, over all workers": (
            f"{DEFAULT_IN_FLIGHT}, up to {MAX_IN_FLIGHT} by maxInFlight; "
            f"{FAILING_LANE_CAP} while its last attempt has failed"
        ),
        "Attempts on their way from one worker": (
            f"{dispatcher.AT_ONCE}, and {dispatcher.KEPT_FREE} more to endpoints with hardly any on their way"
        ),
        "Body of your answer, as kept": f"{LONGEST_BODY // 1024} KiB",
        "Headers of your answer, in all": f"{LONGEST_HEAD // 1024} KiB",
        "Addresses of a name that are tried": str(_MOST_ADDRESSES),
        "Age of a signature that a receiver accepts": f"{TOLERANCE_SECONDS} s",
        "Length of a URL": f"{LONGEST_URL} characters",
        "Length of a description": f"{LONGEST_DESCRIPTION} characters",
    }


def test_the_operator_is_told_how_much_a_worker_has_on_the_way() -> None:
    told = " ".join(OPERATIONS.read_text().split())
    assert f"at most {dispatcher.AT_ONCE} on the way, and {dispatcher.KEPT_FREE} more to endpoints" in told


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


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:g} min {rest:g} s" if minutes else f"{rest:g} s"


def _default_text(default: object) -> str:
    if default is None or default == ():
        return "none"
    if isinstance(default, Path):
        return f"./{default}"
    return f"{default:g}" if isinstance(default, float) else str(default)

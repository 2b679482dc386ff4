"""What the documents say in tables, figures and files to be copied is what the code says."""

import configparser
import re
import shlex
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client import REGISTRY

from docs._site import reliability, state_machine
from holdfast.domain import delivery, endpoint, login
from holdfast.domain.api_key import Scope
from holdfast.domain.booking import BookingStatus
from holdfast.domain.delivery import DeliveryStatus, Schedule
from holdfast.domain.endpoint_url import LONGEST_URL
from holdfast.domain.event import EventName
from holdfast.domain.holds import HoldLimits
from holdfast.domain.payment import PaymentRequest, signed_query
from holdfast.domain.signature import TOLERANCE_SECONDS
from holdfast.domain.transitions import TRANSITIONS, Caller
from holdfast.observability import metrics
from holdfast.server.http_protocol import HttpProtocol
from holdfast.server.supervisor import STOP_SECONDS
from holdfast.settings import SHORTEST_PAYMENT_SECRET, Settings
from holdfast.storage.delivery_queue import FAILING_LANE_CAP
from holdfast.web.api import parameters, unit_bodies
from holdfast.web.api.backoffice.endpoints import NewEndpoint
from holdfast.web.api.integration.units import BULK_BODY_LIMIT, BULK_MEMORY_LIMIT, MAX_ITEMS
from holdfast.web.api.payments import callback
from holdfast.web.api.storefront.units import HOLD_BODY_LIMIT
from holdfast.web.fields import MAX_PROJECTS
from holdfast.web.json import LONGEST_ITEM, LONGEST_NUMBER
from holdfast.web.pages.base import PAGE_HEADERS
from holdfast.web.pages.forms import PUBLIC_FIELDS, SIGNED_IN_FIELDS
from holdfast.web.problems import PROBLEM_TYPES
from holdfast.web.request import BODY_LIMIT, MAX_QUERY_PARAMETERS, PUBLIC_BODY_LIMIT, QUERY_LIMIT
from holdfast.webhooks import causes, dispatcher
from holdfast.webhooks.connection import LONGEST_BODY, LONGEST_HEAD
from holdfast.webhooks.sender import _MOST_ADDRESSES
from tests.chaos.report import INVARIANTS
from tests.docs.commands import PAYMENT_SECRET, check_complete
from tests.docs.documents import (
    ARCHITECTURE,
    README,
    ROOT,
    block_beginning,
    map_paths,
    name_of,
    table,
)

GUIDE = ROOT / "docs" / "integration-guide.md"
SELLING_GUIDE = ROOT / "docs" / "selling-guide.md"
WEBHOOKS_GUIDE = ROOT / "docs" / "webhooks-guide.md"
PAYMENTS_GUIDE = ROOT / "docs" / "payments-guide.md"
BUYERS_GUIDE = ROOT / "docs" / "buyers-guide.md"
SECURITY_MODEL = ROOT / "docs" / "security-model.md"
OPERATIONS = ROOT / "docs" / "operations.md"
PACKAGE = ROOT / "src" / "holdfast"
IN_WORDS = {5: "five"}
METRIC = re.compile(r"\b(holdfast_\w+)(?:\{([^}]*)\})?")
OF_HISTOGRAMS = re.compile(r"_(bucket|sum|count)$")


def test_every_setting_is_in_the_table_with_its_default() -> None:
    shown = {row[0]: row[1] for row in table(OPERATIONS, "Setting")}
    assert shown == {
        f"HOLDFAST_{name.upper()}": _default_text(field.default)
        for name, field in Settings.model_fields.items()
    }


def test_every_problem_is_in_the_table_and_the_guides_show_no_other() -> None:
    known = {kind.name: (str(kind.status), kind.title) for kind in PROBLEM_TYPES.values()}
    assert {row[0]: (row[1], row[2]) for row in table(GUIDE, "Problem")} == known
    for guide in (SELLING_GUIDE, WEBHOOKS_GUIDE):
        assert {(row[0], (row[1], row[2])) for row in table(guide, "Problem")} <= set(known.items())


def test_every_action_of_staff_is_in_the_table_with_what_it_starts_from() -> None:
    shown = {row[0]: (row[1], row[2]) for row in table(SELLING_GUIDE, "Action")}
    of_admins = [row for row in TRANSITIONS if Caller.ADMIN in row.callers]
    assert shown == {
        row.action: (
            "backoffice" if Caller.STAFF in row.callers else "admin",
            ", ".join(one.source for one in of_admins if one.action is row.action),
        )
        for row in of_admins
    }


def test_every_name_is_in_its_table() -> None:
    assert [row[0] for row in table(GUIDE, "Event")] == list(EventName)
    assert [row[0] for row in table(GUIDE, "Scope")] == list(Scope)
    assert [row[0] for row in table(SELLING_GUIDE, "Booking")] == list(BookingStatus)
    assert [row[0] for row in table(WEBHOOKS_GUIDE, "Delivery")] == list(DeliveryStatus)
    fields = {name.strip() for row in table(GUIDE, "Field") for name in row[0].split(",")}
    assert fields == unit_bodies.UnitReplacement.wire_names
    choices = {row[0]: row[2] for row in table(WEBHOOKS_GUIDE, "Member")}
    assert set(choices) == NewEndpoint.wire_names
    assert choices["projects"] == f"up to {MAX_PROJECTS}"


def test_every_metric_is_in_the_table() -> None:
    shown = {row[0] for row in table(OPERATIONS, "Metric")}
    assert shown <= _metrics().keys()
    assert {name for name in _metrics() if name.endswith("_total")} <= shown


def test_limits_are_those_of_the_code() -> None:
    shown, protocol = {row[0]: row[1] for row in table(GUIDE, "Limit")}, HttpProtocol
    assert shown == {
        "Body": f"{BODY_LIMIT // 1024**2} MiB",
        "Body of the bulk route": f"{BULK_BODY_LIMIT // 1024**2} MiB",
        "All bulk bodies at a time in a process": f"{BULK_MEMORY_LIMIT // 1024**2} MiB",
        "Units of one bulk request": f"{MAX_ITEMS:,}".replace(",", " "),
        "One unit of a bulk body": f"{LONGEST_ITEM // 1024**2} MiB",
        "Request line and headers": f"{protocol.head_bytes // 1024} KiB, {protocol.head_lines} lines",
        "Path": f"{protocol.path_bytes // 1024} KiB",
        "Query": f"{QUERY_LIMIT // 1024} KiB, {MAX_QUERY_PARAMETERS} parameters",
        "limit of a list": f"1 to {parameters.LARGEST_LIMIT}, {parameters.DEFAULT_LIMIT} if left out",
        "Elements of images, of files": f"{unit_bodies.MAX_MEDIA} each",
        "URL of an image or file": f"{unit_bodies.LONGEST_URL} characters",
        "Name of an image or file": f"{unit_bodies.LONGEST_MEDIA_NAME} characters",
        "One number in a body": f"{LONGEST_NUMBER} characters",
    }


def test_the_limits_of_strangers_are_those_of_the_code() -> None:
    one = HttpProtocol
    public = {row[0]: row[1] for row in table(SECURITY_MODEL, "Public limit")}
    slow = {row[0]: row[1] for row in table(SECURITY_MODEL, "Limit")}
    kib = {
        "Body of a hold": HOLD_BODY_LIMIT,
        "Body of other public routes and pages": PUBLIC_BODY_LIMIT,
        "Body of the payment callback": callback.CALLBACK_BODY_LIMIT,
        "Query": QUERY_LIMIT,
        "Request line and headers": one.head_bytes,
        "Chunk sizes, chunk extensions and trailers": one.framing_bytes,
        "Rest of a request that is answered already": one.drain_bytes,
    }
    for name, limit in kib.items():
        assert (public | slow)[name].startswith(f"{limit // 1024} KiB"), name
    assert public["Query"].endswith(f", {MAX_QUERY_PARAMETERS} parameters")
    assert public["Fields of a form"].replace(" ", "") == f"{PUBLIC_FIELDS};{SIGNED_IN_FIELDS}afterthesign-in"
    assert public["Fields beside a file"] == str(PUBLIC_FIELDS)
    assert slow["Request line and headers"].endswith(
        f"{one.head_lines} lines, a path of {one.path_bytes // 1024} KiB, {one.head_seconds:g} seconds"
    )
    per_second = one.body_bytes / one.body_seconds / 1024
    assert slow["Body"] == f"{one.body_seconds:g} seconds, or {per_second:g} KiB a second"
    assert slow["Rest of a request that is answered already"].endswith(f", {one.drain_seconds:g} seconds")
    assert slow["Response that the client does not read"] == f"{one.stalled_seconds:g} seconds"


def test_the_attempts_are_made_at_the_times_in_the_table() -> None:
    schedule, seconds = Schedule(), 0.0
    expected = [["1", "–", "–"]]
    for tried in range(1, schedule.attempts):
        gap = schedule.gap_after(tried).total_seconds()
        seconds += gap
        expected.append([str(tried + 1), f"{gap:g} s", _minutes(seconds)])
    assert table(WEBHOOKS_GUIDE, "Attempt") == expected


def test_every_cause_is_in_the_table() -> None:
    shown = {row[0] for row in table(WEBHOOKS_GUIDE, "Cause")}
    fixed = [value for name, value in vars(causes).items() if name.isupper() and isinstance(value, str)]
    tables = [*causes._CONNECTING.values(), *causes._CERTIFICATE.values()]
    timeout_seconds = Settings().attempt_timeout_seconds
    of_workers = delivery.INTERNAL_CAUSES
    of_status = [causes.explain_status(code) for code in (500, 301, 101)]
    of_time = [causes.explain_timeout(phase, timeout_seconds) for phase in causes.Phase]
    known = set(map(str, [*fixed, *tables, *of_time, *of_workers, *of_status]))
    assert known <= shown
    assert {text for text in shown - known if "10.0.0.5" not in text} == {"The receiver does not speak TLS."}


def test_limits_of_webhooks_are_those_of_the_code() -> None:
    settings = Settings()
    assert {row[0]: row[1] for row in table(WEBHOOKS_GUIDE, "Limit")} == {
        "Time for an answer": f"{settings.attempt_timeout_seconds:g} s",
        "Attempts of one series": str(settings.attempts),
        "Attempts on their way to one endpoint, over all workers": (
            f"{endpoint.DEFAULT_IN_FLIGHT}, up to {endpoint.MAX_IN_FLIGHT} by maxInFlight; "
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
        "Length of a description": f"{endpoint.LONGEST_DESCRIPTION} characters",
    }


@pytest.mark.parametrize("document", [README, ARCHITECTURE], ids=name_of)
def test_paths_of_the_map_exist_and_every_package_is_on_that_of_the_architecture(document: Path) -> None:
    shown = map_paths(document)
    assert [path for path in shown if not path.exists()] == []
    if document == ARCHITECTURE:
        assert {path.parent for path in PACKAGE.rglob("__init__.py")} <= set(shown)


def test_figures_in_sentences_are_those_of_the_code() -> None:
    limits, settings = HoldLimits(), Settings()
    address = f"address at most {limits.per_address},"
    first, longest = login.FIRST_WAIT.total_seconds(), login.LONGEST_WAIT.total_seconds() / 60
    waits = f"waits {first:g} seconds, and twice as long after each further one, up to {longest:g} minutes"
    idle, whole = settings.session_idle_minutes, settings.session_hours
    said = {
        OPERATIONS: [
            f"at most {dispatcher.AT_ONCE} on the way, and {dispatcher.KEPT_FREE} more to endpoints",
        ],
        BUYERS_GUIDE: [f"at most {limits.per_visitor} units at the same time, one network {address}"],
        SECURITY_MODEL: [
            f"at most {limits.per_visitor} live ones and one {address[:-1]};",
            f"at most {limits.share_percent} % of a project's available and held units",
            f"after {IN_WORDS[login.FREE_FAILURES]}, the next attempt from there {waits}",
            f"ends after {idle:g} minutes without a click, after {whole:g} hours in any case",
            f"at most {LONGEST_HEAD // 1024} KiB of headers and {LONGEST_BODY // 1024} KiB of body",
            "`default-src 'none'`",
        ],
        PAYMENTS_GUIDE: [
            f"at least {SHORTEST_PAYMENT_SECRET} characters",
            f"up to {callback.LONGEST_ID} visible ASCII characters",
            f"at most {callback.CALLBACK_BODY_LIMIT // 1024} KiB",
            f"good for {TOLERANCE_SECONDS} seconds",
            callback.TIMESTAMP,
            callback.SIGNATURE,
        ],
    }
    for document, sentences in said.items():
        assert [one for one in sentences if one not in _text(document)] == []
    assert _text(SECURITY_MODEL).count(f"older than {TOLERANCE_SECONDS} seconds") == 2
    policy = PAGE_HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "frame-ancestors 'none'" in policy


def test_the_address_of_the_payment_page_is_the_one_that_holdfast_makes() -> None:
    address = block_beginning(PAYMENTS_GUIDE, "text", "https://pay.example.com/").strip()
    asked = dict(parse_qsl(urlsplit(address).query, strict_parsing=True))
    request = PaymentRequest(
        asked["reference"],
        Decimal(asked["amountSar"]),
        asked["returnUrl"],
        asked["callbackUrl"],
        asked["language"],
        datetime.fromisoformat(asked["expiresAt"]),
        datetime.fromtimestamp(int(asked["timestamp"]), UTC),
    )
    signed = signed_query(request, PAYMENT_SECRET.partition("=")[2])
    assert address == f"https://pay.example.com/deposits?{signed}"
    assert block_beginning(PAYMENTS_GUIDE, "text", "sha256=").strip() == asked["signature"]
    assert [row[0] for row in table(PAYMENTS_GUIDE, "Parameter")] == list(asked)
    members = [field.alias for field in callback.Payment.model_fields.values()]
    assert [row[0] for row in table(PAYMENTS_GUIDE, "Member")] == members


def test_the_service_starts_a_command_that_exists_and_waits_for_its_end() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(block_beginning(OPERATIONS, "ini", "[Unit]"))
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert Path(program).name == "holdfast"
    check_complete(words)
    assert int(unit["Service"]["TimeoutStopSec"]) > STOP_SECONDS


def test_every_alert_has_a_meaning_and_metrics_and_labels_that_exist() -> None:
    (group,) = yaml.safe_load(block_beginning(OPERATIONS, "yaml", "groups:"))["groups"]
    rules = group["rules"]
    assert all(rule["annotations"]["summary"].endswith(".") for rule in rules)
    assert len({rule["alert"] for rule in rules}) == len(rules)
    known = _metrics()
    named = [found for rule in rules for found in METRIC.findall(rule["expr"])]
    for name, chosen in named:
        labels = known[OF_HISTOGRAMS.sub("", name)]
        assert set(re.findall(r"(\w+)[=!]", chosen)) <= {*labels, "le"}, name
    assert len(named) >= len(rules) - 1


def test_the_page_on_reliability_has_the_newest_figures() -> None:
    page = reliability.PAGE.read_text(encoding="utf-8")
    assert page == reliability.document(), "The page is out of date; run `make docs`."
    assert [row[0] for row in table(reliability.PAGE, "Invariant")] == list(INVARIANTS)


def test_the_page_of_the_status_machine_is_that_of_the_status_table() -> None:
    page = state_machine.PAGE.read_text(encoding="utf-8")
    assert page == state_machine.document(), "The page is out of date; run `make docs`."
    arrows = {(row.source, row.target) for row in TRANSITIONS}
    assert set(re.findall(r"^    (\w+) --> (\w+) : [^:;\n]+$", page, re.MULTILINE)) == arrows
    shown = [
        (action, frozenset(callers.split(", ")), source, target, event.replace("–", "") or None, archived)
        for action, callers, source, target, event, archived in table(state_machine.PAGE, "Action")
    ]
    assert shown == [(*row[:5], "yes" if row.from_archived else "no") for row in TRANSITIONS]


def _metrics() -> dict[str, tuple[str, ...]]:
    """Their labels, by name."""
    assert metrics.CONTENT_TYPE
    return {
        name: getattr(collector, "_labelnames", ())
        for name, collector in REGISTRY._names_to_collectors.items()
        if name.startswith("holdfast_")
    }


def _text(document: Path) -> str:
    return " ".join(document.read_text().split())


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:g} min {rest:g} s" if minutes else f"{rest:g} s"


def _default_text(default: object) -> str:
    if default is None or default == ():
        return "none"
    if isinstance(default, Path):
        return f"./{default}"
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)

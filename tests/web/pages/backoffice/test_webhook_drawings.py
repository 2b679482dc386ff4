"""What is drawn and written out of deliveries: sparklines, bars of time, timelines, requests."""

import shlex
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from holdfast.domain.delivery import HOURS, Attempt, Delivery, DeliveryStatus, HourlyDeliveries, Trigger
from holdfast.web.pages.backoffice import deliveries as bar
from holdfast.web.pages.backoffice import endpoints as drawn
from holdfast.web.pages.backoffice.deliveries import (
    format_curl,
    format_request,
    format_response_body,
    timeline,
    timing_bar,
)
from holdfast.web.pages.backoffice.endpoints import sparkline

NOW = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
ID = UUID(int=1)
DELIVERY = Delivery(
    ID,
    ID,
    "ping",
    None,
    DeliveryStatus.PENDING,
    None,
    NOW,
    NOW + timedelta(seconds=30),
    None,
    0,
    None,
    None,
    "{}",
)
ATTEMPT = Attempt(
    ID, 1, Trigger.FIRST, NOW, NOW, 100.0, None, None, None, None, "https://erp.example/hook?a=1",
    [("Host", "erp.example"), ("X-Service-Event", "ping"), ("Content-Length", "2")], ID, None, 200, [], b"ok",
    False, None,
)  # fmt: skip


def hour(ago: int, delivered: int, failed: int) -> HourlyDeliveries:
    return HourlyDeliveries(ID, NOW.replace(minute=0) - timedelta(hours=ago), delivered, failed)


def attempt(**changes: Any) -> Attempt:
    return ATTEMPT._replace(**changes)


def test_a_sparkline_has_a_bar_for_each_hour_and_the_present_one_is_the_last() -> None:
    line = sparkline([hour(0, 3, 1), hour(23, 2, 0)], NOW)
    assert len(line.bars) == HOURS
    assert (line.bars[-1].delivered, line.bars[-1].failed, line.bars[0].delivered) == (3, 1, 2)
    assert (line.delivered, line.failed) == (5, 1)
    assert line.bars[5].delivered_height == line.bars[5].failed_height == 0


def test_what_failed_is_seen_among_very_many_and_never_drawn_over_the_edge() -> None:
    line = sparkline([hour(1, 1_000_000, 1), hour(2, 1, 0)], NOW)
    for one in line.bars:
        assert one.delivered_height + one.failed_height <= drawn.HEIGHT
    assert line.bars[-2].failed_height >= 2
    assert line.bars[-3].delivered_height >= 2
    assert line.success_percent == 99.9


def test_success_is_told_only_where_something_ended() -> None:
    assert sparkline([], NOW).success_percent is None
    assert sparkline([hour(0, 4, 0)], NOW).success_percent == 100
    assert sparkline([hour(0, 0, 4)], NOW).success_percent == 0


def test_the_parts_of_a_bar_follow_each_other_and_fill_it() -> None:
    parts = timing_bar(attempt(dns_ms=10, connect_ms=20, tls_ms=30, first_byte_ms=15))
    assert [part.name for part in parts] == ["dns", "connect", "tls", "wait", "rest"]
    assert parts[-1].milliseconds == 25
    assert sum(part.width for part in parts) == pytest.approx(bar.WIDTH, abs=0.1)
    for one, following in pairwise(parts):
        assert following.x == pytest.approx(one.x + one.width, abs=0.1)


def test_a_connection_that_is_used_again_has_no_beginning() -> None:
    assert [part.name for part in timing_bar(attempt(first_byte_ms=99.9999))] == ["wait", "rest"]


def test_an_attempt_that_took_no_time_is_still_drawn() -> None:
    parts = timing_bar(attempt(duration_ms=0.0))
    assert [part.width for part in parts] == [bar.WIDTH]


def test_a_timeline_goes_from_the_commit_to_what_comes_next() -> None:
    later = attempt(number=2, started_at=NOW + timedelta(seconds=31), cause="No.")
    first = attempt(started_at=NOW + timedelta(seconds=1), ended_at=NOW + timedelta(seconds=1), cause="No.")
    steps = timeline(DELIVERY, [first, later], NOW, is_paused=False)
    assert [step.kind for step in steps] == ["committed", "attempt", "attempt", "next"]
    assert [step.gap_seconds for step in steps] == [None, 1, 30, None]
    assert [step.tone for step in steps] == ["", "bad", "bad", "busy"]


@pytest.mark.parametrize(
    ("changes", "is_paused", "last"),
    [
        ({"status": DeliveryStatus.DELIVERED, "ended_at": NOW}, False, "delivered"),
        ({"status": DeliveryStatus.FAILED, "ended_at": NOW}, True, "failed"),
        ({"status": DeliveryStatus.CANCELLED, "ended_at": NOW}, False, "cancelled"),
        ({}, True, "paused"),
        ({"next_attempt_at": NOW}, False, "due"),
    ],
    ids=["delivered", "failed", "cancelled", "paused", "due"],
)
def test_a_timeline_ends_as_the_delivery_does(changes: dict[str, Any], is_paused: bool, last: str) -> None:
    assert timeline(DELIVERY._replace(**changes), [], NOW, is_paused=is_paused)[-1].kind == last


def test_a_request_is_written_as_it_was_sent() -> None:
    expected = "POST /hook?a=1 HTTP/1.1\nHost: erp.example\nX-Service-Event: ping\nContent-Length: 2\n\n{}"
    assert format_request(ATTEMPT, "{}") == expected
    assert format_request(attempt(request_headers=[]), "{}") is None


def test_curl_gets_every_header_but_those_that_it_makes_itself_and_no_shell_is_fooled() -> None:
    odd = attempt(request_headers=[("Host", "x"), ("X-Odd", "it's $(rm -rf) `x`")], url="https://x/?a=1&b='")
    text = format_curl(odd, '{"a":"it\'s"}')
    assert text is not None
    assert shlex.split(text.replace("\\\n", "")) == [
        "curl", "-X", "POST", "https://x/?a=1&b='", "-H", "X-Odd: it's $(rm -rf) `x`", "--data-raw",
        '{"a":"it\'s"}',
    ]  # fmt: skip
    assert format_curl(attempt(request_headers=[]), "{}") is None


@pytest.mark.parametrize(
    ("body", "is_dump"),
    [
        (b"", False),
        ("نعم\r\n\tok".encode(), False),
        ("a\N{NO-BREAK SPACE}b\N{ZERO WIDTH JOINER}".encode(), False),
        (b"\xff", True),
        (b"a\x00", True),
        ("a\N{RIGHT-TO-LEFT OVERRIDE}b".encode(), True),
        (b"\x1b[31m", True),
    ],
    ids=["empty", "arabic", "no-break-space", "not-utf-8", "nul", "bidi-override", "escape"],
)
def test_what_cannot_be_seen_in_an_answer_is_shown_by_its_bytes(body: bytes, is_dump: bool) -> None:
    assert format_response_body(attempt(response_body=body)).is_dump is is_dump

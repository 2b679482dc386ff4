"""What pages draw and write of webhooks: sparklines, timing bars, timelines, requests, code for receivers."""

import json
import shlex
import subprocess
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from holdfast.domain.delivery import HOURS, Attempt, Delivery, DeliveryStatus, HourlyDeliveries, Trigger
from holdfast.domain.signature import TOLERANCE_SECONDS, sign
from holdfast.web.pages.backoffice import deliveries, endpoints
from holdfast.web.pages.backoffice.endpoints import sparkline, verification_snippets
from tests.support.programs import installed
from tests.support.webhooks import an_inbox

NOW = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
ID = UUID(int=1)
DELIVERY = Delivery(
    ID, ID, "ping", None, DeliveryStatus.PENDING, None, NOW, NOW + timedelta(seconds=30), None, 0, None, None,
    "{}",
)  # fmt: skip
ATTEMPT = Attempt(
    ID, 1, Trigger.FIRST, NOW, NOW, 100.0, None, None, None, None, "https://erp.example/hook?a=1",
    [("Host", "erp.example"), ("X-Service-Event", "ping"), ("Content-Length", "2")], ID, None, 200, [], b"ok",
    False, None,
)  # fmt: skip
SNIPPETS = verification_snippets("https://erp.example/hook")
SECRET = "hfs_" + "k" * 43
BODY = '{"id":"1","data":{"unit":{"code":"أ-1"}}}\n'.encode()


def hour(ago: int, delivered: int, failed: int) -> HourlyDeliveries:
    return HourlyDeliveries(ID, NOW.replace(minute=0) - timedelta(hours=ago), delivered, failed)


def test_a_sparkline_has_a_bar_for_each_hour_and_the_present_one_is_the_last() -> None:
    line = sparkline([hour(0, 3, 1), hour(23, 2, 0)], NOW)
    assert len(line.bars) == HOURS
    assert (line.bars[-1].delivered, line.bars[-1].failed, line.bars[0].delivered) == (3, 1, 2)
    assert (line.delivered, line.failed) == (5, 1)
    assert line.bars[5].delivered_height == line.bars[5].failed_height == 0


def test_what_failed_is_seen_among_very_many_and_never_drawn_over_the_edge() -> None:
    line = sparkline([hour(1, 1_000_000, 1), hour(2, 1, 0)], NOW)
    assert all(one.delivered_height + one.failed_height <= endpoints.HEIGHT for one in line.bars)
    assert line.bars[-2].failed_height >= 2
    assert line.bars[-3].delivered_height >= 2
    assert line.success_percent == 99.9
    lines = [sparkline(hours, NOW) for hours in ([], [hour(0, 4, 0)], [hour(0, 0, 4)])]
    assert [line.success_percent for line in lines] == [None, 100, 0]


def test_the_parts_of_a_bar_follow_each_other_and_fill_it() -> None:
    timed = ATTEMPT._replace(dns_ms=10, connect_ms=20, tls_ms=30, first_byte_ms=15)
    parts = deliveries.timing_bar(timed)
    assert [part.name for part in parts] == ["dns", "connect", "tls", "wait", "rest"]
    assert parts[-1].milliseconds == 25
    assert sum(part.width for part in parts) == pytest.approx(deliveries.WIDTH, abs=0.1)
    for one, following in pairwise(parts):
        assert following.x == pytest.approx(one.x + one.width, abs=0.1)
    reused = deliveries.timing_bar(ATTEMPT._replace(first_byte_ms=99.9999))
    assert [part.name for part in reused] == ["wait", "rest"]
    instant = deliveries.timing_bar(ATTEMPT._replace(duration_ms=0.0))
    assert [part.width for part in instant] == [deliveries.WIDTH]


def test_a_timeline_goes_from_the_commit_to_what_comes_next() -> None:
    first, later = (
        ATTEMPT._replace(number=number, started_at=at, ended_at=at, cause="No.")
        for number, at in ((1, NOW + timedelta(seconds=1)), (2, NOW + timedelta(seconds=31)))
    )
    steps = deliveries.timeline(DELIVERY, [first, later], NOW, is_paused=False)
    assert [step.kind for step in steps] == ["committed", "attempt", "attempt", "next"]
    assert [step.gap_seconds for step in steps] == [None, 1, 30, None]
    assert [step.tone for step in steps] == ["", "bad", "bad", "busy"]


@pytest.mark.parametrize("is_paused", [False, True])
def test_a_timeline_ends_as_the_delivery_does(is_paused: bool) -> None:
    def last(**changes: Any) -> str:
        steps = deliveries.timeline(DELIVERY._replace(**changes), [], NOW, is_paused=is_paused)
        return steps[-1].kind

    for status in (DeliveryStatus.DELIVERED, DeliveryStatus.FAILED, DeliveryStatus.CANCELLED):
        assert last(status=status, ended_at=NOW) == status
    assert last(next_attempt_at=NOW) == ("paused" if is_paused else "due")


def test_a_request_is_written_as_it_was_sent_and_for_curl_so_that_no_shell_is_fooled() -> None:
    expected = "POST /hook?a=1 HTTP/1.1\nHost: erp.example\nX-Service-Event: ping\nContent-Length: 2\n\n{}"
    assert deliveries.format_request(ATTEMPT, "{}") == expected
    odd = ATTEMPT._replace(
        request_headers=[("Host", "x"), ("X-Odd", "it's $(rm -rf) `x`")], url="https://x/?a=1&b='"
    )
    text = deliveries.format_curl(odd, '{"a":"it\'s"}')
    assert text is not None
    assert shlex.split(text.replace("\\\n", "")) == [
        "curl", "-X", "POST", "https://x/?a=1&b='", "-H", "X-Odd: it's $(rm -rf) `x`", "--data-raw",
        '{"a":"it\'s"}',
    ]  # fmt: skip
    unsent = ATTEMPT._replace(request_headers=[])
    assert deliveries.format_request(unsent, "{}") is deliveries.format_curl(unsent, "{}") is None


def test_what_cannot_be_seen_in_an_answer_is_shown_by_its_bytes() -> None:
    def is_dump(body: bytes) -> bool:
        return deliveries.format_response_body(ATTEMPT._replace(response_body=body)).is_dump

    for text in ("", "نعم\r\n\tok", "a\N{NO-BREAK SPACE}b\N{ZERO WIDTH JOINER}"):
        assert not is_dump(text.encode()), text
    for body in (b"\xff", b"a\x00", "a\N{RIGHT-TO-LEFT OVERRIDE}b".encode(), b"\x1b[31m"):
        assert is_dump(body), body


class Sent(NamedTuple):
    timestamp: str
    signature: str
    body: bytes = BODY


def sent_cases() -> dict[str, Sent]:
    """Signed now; only the first is genuine."""
    now = int(time.time())
    signature = sign(SECRET, now, BODY)
    old, ahead = now - TOLERANCE_SECONDS - 60, now + TOLERANCE_SECONDS + 60
    return {
        "genuine": Sent(str(now), signature),
        "other secret": Sent(str(now), sign("hfs_other", now, BODY)),
        "other body": Sent(str(now), signature, BODY + b" "),
        "no signature": Sent(str(now), ""),
        "odd signature": Sent(str(now), "sha256=é"),
        "too old": Sent(str(old), sign(SECRET, old, BODY)),
        "too far ahead": Sent(str(ahead), sign(SECRET, ahead, BODY)),
        "no timestamp": Sent("", signature),
        "odd timestamp": Sent("+1", signature),
    }


def run(*command: str, folder: Path) -> str:
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=True)
    return ended.stdout


def test_the_python_lines_tell_the_genuine_from_the_forged() -> None:
    names: dict[str, Any] = {}
    exec(SNIPPETS["python"], names)
    for case, sent in sent_cases().items():
        headers = {"X-Service-Timestamp": sent.timestamp, "X-Service-Signature": sent.signature}
        assert names["is_genuine"](SECRET, headers, sent.body) is (case == "genuine"), case


def test_the_node_lines_tell_the_genuine_from_the_forged(tmp_path: Path) -> None:
    (tmp_path / "snippet.js").write_text(SNIPPETS["node"])
    (tmp_path / "run.js").write_text(
        """
        const { isGenuine } = require("./snippet.js");
        const told = {};
        for (const [name, [timestamp, signature, body]] of Object.entries(JSON.parse(process.argv[3]))) {
          const headers = { "x-service-timestamp": timestamp, "x-service-signature": signature };
          told[name] = isGenuine(process.argv[2], headers, Buffer.from(body));
        }
        console.log(JSON.stringify(told));
        """
    )
    given = {case: [*sent[:2], sent.body.decode()] for case, sent in sent_cases().items()}
    told = run(installed("node"), str(tmp_path / "run.js"), SECRET, json.dumps(given), folder=tmp_path)
    assert json.loads(told) == {case: case == "genuine" for case in given}


def test_the_openssl_lines_tell_the_genuine_from_the_forged(tmp_path: Path) -> None:
    installed("openssl")
    for case in ("genuine", "other secret", "other body", "no signature"):
        timestamp, signature, body = sent_cases()[case]
        (tmp_path / "body.json").write_bytes(body)
        lines = SNIPPETS["openssl"].replace("='hfs_…'", f"='{SECRET}'")
        lines = lines.replace("TIMESTAMP='…'", f"TIMESTAMP='{timestamp}'")
        lines = lines.replace("SIGNATURE='…'", f"SIGNATURE='{signature}'")
        told = run("sh", "-c", lines, folder=tmp_path)
        assert told.strip() == ("genuine" if case == "genuine" else "forged"), case


def test_the_curl_lines_send_a_ping_that_is_genuine(tmp_path: Path) -> None:
    installed("openssl")
    installed("curl")
    with an_inbox() as inbox:
        lines = verification_snippets(f"{inbox.url}?it's=1")["curl"]
        run("sh", "-c", lines.replace("SECRET='hfs_…'", f"SECRET='{SECRET}'"), folder=tmp_path)
        post = inbox.next()
    assert post.event["type"] == post.headers["X-Service-Event"] == "ping"
    assert post.event["id"] == post.headers["X-Service-Delivery"]
    signature = sign(SECRET, int(post.headers["X-Service-Timestamp"]), post.body)
    assert post.headers["X-Service-Signature"] == signature

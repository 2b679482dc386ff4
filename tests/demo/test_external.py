"""The demo's webhook receiver and payment page: their addresses, and what they make of requests."""

import json
import socket
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from http import HTTPStatus

import httpx
import pytest

from holdfast.demo.external import payments
from holdfast.demo.external.app import BODY_LIMIT, ExternalSettings, external_app
from holdfast.demo.external.payments import InvalidLink, parse_link
from holdfast.demo.external.receiver import WebhookReceiver
from holdfast.domain.payment import PaymentRequest, signed_query
from holdfast.domain.signature import sign
from holdfast.server.demo import open_external_systems
from tests.support.ports import free_port

HOST = "127.0.0.1"
SECRET = "a secret of payments"
NOW = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
RETURN_URL = "https://units.example.com/p/palm-court/bookings/Q39-4F6-4K6"
CALLBACK_URL = "https://units.example.com/v1/payments/callback"
LATER = NOW + timedelta(minutes=5)
REQUEST = PaymentRequest("Q39-4F6-4K6", Decimal("129950.00"), RETURN_URL, CALLBACK_URL, "en", LATER, NOW)


def test_it_is_on_the_next_port_or_on_a_free_one_where_that_is_taken_or_none_was_named() -> None:
    port = free_port()
    with open_external_systems(HOST, port - 1, None, {}) as external:
        assert external.address == f"http://{HOST}:{port}"
        assert external.hook_url == f"http://{HOST}:{port}/hook"
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        for asked in (port - 1, 0, 65535):
            with open_external_systems(HOST, asked, None, {}) as external:
                assert external.listener.getsockname()[1] not in (0, port)


def test_people_find_it_beside_the_public_address_and_workers_on_this_machine() -> None:
    with open_external_systems("0.0.0.0", 0, "http://192.168.1.20:8000", {}) as external:
        port = external.listener.getsockname()[1]
        assert external.address == f"http://192.168.1.20:{port}"
        assert external.hook_url == f"http://127.0.0.1:{port}/hook"
        assert external.networks == ()
        assert external.holdfast_settings()["HOLDFAST_PAYMENT_URL"] == f"http://192.168.1.20:{port}/pay"


def test_its_payment_page_gives_way_to_another_and_to_https() -> None:
    another = {"HOLDFAST_PAYMENT_URL": "https://pay.example.com", "HOLDFAST_PAYMENT_SECRET": "x" * 16}
    for public_url, environment in ((None, another), ("https://demo.example.com", {})):
        with open_external_systems(HOST, 0, public_url, environment) as external:
            assert external.holdfast_settings() == {}


# Links to the payment page


def payment_id(request: PaymentRequest) -> str:
    return parse_link(signed_query(request, SECRET), SECRET, request.made_at.timestamp()).payment_id


def test_who_comes_to_pay_again_has_the_same_payment_and_another_booking_or_amount_has_another() -> None:
    later = REQUEST._replace(made_at=NOW + timedelta(minutes=1), language="ar")
    assert signed_query(later, SECRET) != signed_query(REQUEST, SECRET)
    assert payment_id(later) == payment_id(REQUEST)
    others = REQUEST._replace(reference="XMQ-QYX-6YK"), REQUEST._replace(amount_sar=Decimal("129951.00"))
    assert len({payment_id(REQUEST), *map(payment_id, others)}) == 3


def test_a_link_is_valid_for_five_minutes_and_as_it_was_signed() -> None:
    query = signed_query(REQUEST, SECRET)
    for changed, now in ((query, NOW.timestamp() + 301), (query.replace("129950", "1"), NOW.timestamp())):
        with pytest.raises(InvalidLink):
            parse_link(changed, SECRET, now)


async def test_a_late_payment_is_told_after_the_hold_until_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(payments, "FIRST_RETRY_SECONDS", 0)
    monkeypatch.setattr(payments, "LATE_BY_SECONDS", 0)
    expires_at = datetime.now(UTC) + timedelta(seconds=0.2)
    answers, times = [503, 200], []

    def answer(_: httpx.Request) -> httpx.Response:
        times.append(datetime.now(UTC))
        return httpx.Response(answers[len(times) - 1])

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        provider = payments.PaymentProvider(SECRET, client)
        due = parse_link(signed_query(REQUEST._replace(expires_at=expires_at), SECRET), SECRET, None)
        payment = provider.pay(due, after_hold=True)
        assert provider.pay(due) is payment, "it is paid once, however often the button is pressed"
        assert payment.confirmation is not None
        await payment.confirmation
    assert (payment.status, len(times)) == (payments.PaymentStatus.CONFIRMED, 2)
    assert times[0] >= expires_at - timedelta(milliseconds=1)


# The pages


class OneRoundReceiver(WebhookReceiver):
    """Its streams end where they would wait for the next delivery."""

    async def wait_for_delivery(self) -> None:
        self.close()


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    settings = ExternalSettings("hfs_x", SECRET, "http://127.0.0.1:8000", "Asia/Riyadh")
    app = external_app(settings, OneRoundReceiver("hfs_x"))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://outside", follow_redirects=True) as client,
    ):
        yield client


def event_body(code: str) -> bytes:
    unit = {"code": code, "previousStatus": "available", "status": "held"}
    return json.dumps({"type": "unit.held", "data": {"unit": unit, "booking": None}}).encode()


async def deliver(client: httpx.AsyncClient, body: bytes, secret: str = "hfs_x", age: int = 0) -> int:
    timestamp = int(time.time()) - age
    headers = {
        "X-Service-Delivery": "the delivery",
        "X-Service-Timestamp": str(timestamp),
        "X-Service-Signature": sign(secret, timestamp, body),
    }
    return (await client.post("/hook", content=body, headers=headers)).status_code


async def entries(client: httpx.AsyncClient, **headers: str) -> list[str]:
    """The deliveries on the receiver's page, as its stream has them."""
    response = await client.get("/live?after=0&lang=en", headers=headers)
    lines = [line for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


async def test_a_verified_delivery_is_shown_in_both_languages(client: httpx.AsyncClient) -> None:
    assert await deliver(client, event_body("A-0501")) == HTTPStatus.OK
    assert "التوقيع صحيح" in (await client.get("/?lang=ar")).text
    page = (await client.get("/?lang=en")).text
    # A browser that was there before a restart knows a number that this receiver has not reached.
    (entry,) = await entries(client, **{"Last-Event-ID": "5000"})
    assert entry in page
    assert "unit.held" in entry
    assert "signature verified" in entry


async def test_a_forged_delivery_is_refused_with_the_reason(client: httpx.AsyncClient) -> None:
    assert await deliver(client, event_body("forged <b>"), age=600) == HTTPStatus.UNAUTHORIZED
    assert await deliver(client, b'{"type": "\\ud800"}', "another secret") == HTTPStatus.UNAUTHORIZED
    assert (await client.post("/hook", content=b"\xff{")).status_code == HTTPStatus.UNAUTHORIZED
    too_large = await client.post("/hook", content=b"x" * (BODY_LIMIT + 1))
    assert too_large.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    old, wrong, unsigned = await entries(client)
    assert "forged &lt;b&gt;" in old
    assert "more than five minutes old" in old
    assert "There is no signature." in unsigned
    assert not any("signature verified" in entry for entry in (old, wrong, unsigned))


async def test_a_delivery_fails_if_asked_for_on_this_site_and_comes_again(client: httpx.AsyncClient) -> None:
    fail = {"fail": "yes"}
    elsewhere = await client.post("/fail-next", data=fail, headers={"Sec-Fetch-Site": "cross-site"})
    assert "Answer normally" not in elsewhere.text
    assert "Answer normally" in (await client.post("/fail-next", data=fail)).text
    body = event_body("A-0502")
    assert [await deliver(client, body) for _ in range(2)] == [500, 200]
    first, second = await entries(client)
    assert "answered with 500" in first
    assert "repeated" not in first
    assert "repeated" in second
    assert "answered with 500" not in second


async def test_a_link_to_the_payment_page_that_was_changed_is_refused(client: httpx.AsyncClient) -> None:
    for query in ("", "reference=Q39-4F6-4K6&amountSar=1", "reference=X&timestamp=1&signature=sha256%3D00"):
        refused = await client.get(f"/pay?{query}", headers={"Accept-Language": "ar"})
        assert refused.status_code == HTTPStatus.FORBIDDEN
        assert "لا يوجد مبلغ للدفع هنا" in refused.text
    forged = await client.post("/pay", data={"link": "x", "choice": "now"})
    assert forged.status_code == HTTPStatus.FORBIDDEN
    assert (await client.get("/payments/pay_nothing")).status_code == HTTPStatus.NOT_FOUND


async def test_a_declined_payment_leads_back_to_the_booking(client: httpx.AsyncClient) -> None:
    request = REQUEST._replace(return_url=f"{RETURN_URL}?paid=1", made_at=datetime.now(UTC))
    link = signed_query(request, SECRET)
    page = (await client.get(f"/pay?{link}")).text
    assert "129,950" in page
    for told in ("Your payment will reserve", "A late payment will", "If you decline, nothing changes"):
        assert told in page
    back = await client.post("/pay", data={"link": link, "choice": "decline"}, follow_redirects=False)
    assert back.headers["location"] == RETURN_URL

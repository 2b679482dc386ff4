"""The numbers of the payments guide are what the code makes of them."""

from datetime import UTC, datetime
from decimal import Decimal
from urllib.parse import parse_qsl, urlsplit

from holdfast.domain.payment import PaymentRequest, signed_query
from holdfast.domain.signature import TOLERANCE_SECONDS
from holdfast.settings import SHORTEST_PAYMENT_SECRET
from holdfast.web.api.payments.callback import (
    CALLBACK_BODY_LIMIT,
    LONGEST_ID,
    SIGNATURE,
    TIMESTAMP,
    Payment,
)
from tests.docs.commands import PAYMENT_SECRET
from tests.docs.documents import PAYMENTS_GUIDE, block_beginning, table

SECRET = PAYMENT_SECRET.partition("=")[2]
TEXT = PAYMENTS_GUIDE.read_text()


def shown() -> dict[str, str]:
    address = block_beginning(PAYMENTS_GUIDE, "text", "https://pay.example.com/").strip()
    return dict(parse_qsl(urlsplit(address).query, strict_parsing=True))


def test_the_address_of_the_payment_page_is_the_one_that_holdfast_makes() -> None:
    asked = shown()
    request = PaymentRequest(
        asked["reference"],
        Decimal(asked["amountSar"]),
        asked["returnUrl"],
        asked["callbackUrl"],
        asked["language"],
        datetime.fromisoformat(asked["expiresAt"]),
        datetime.fromtimestamp(int(asked["timestamp"]), UTC),
    )
    assert f"https://pay.example.com/deposits?{signed_query(request, SECRET)}" in TEXT


def test_the_signature_that_is_worked_out_is_the_one_of_the_address() -> None:
    assert block_beginning(PAYMENTS_GUIDE, "text", "sha256=").strip() == shown()["signature"]


def test_every_parameter_and_every_member_is_in_a_table() -> None:
    assert [row[0] for row in table(PAYMENTS_GUIDE, "Parameter")] == list(shown())
    members = [row[0] for row in table(PAYMENTS_GUIDE, "Member")]
    assert members == [field.alias for field in Payment.model_fields.values()]


def test_limits_are_those_of_the_code() -> None:
    told = " ".join(TEXT.split())
    assert f"at least {SHORTEST_PAYMENT_SECRET} characters" in told
    assert f"up to {LONGEST_ID} visible ASCII characters" in told
    assert f"at most {CALLBACK_BODY_LIMIT // 1024} KiB" in told
    assert f"good for {TOLERANCE_SECONDS} seconds" in told
    assert TIMESTAMP in TEXT
    assert SIGNATURE in TEXT

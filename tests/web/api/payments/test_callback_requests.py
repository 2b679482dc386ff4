"""Whose word is taken for a payment, and in which form: signatures, bodies, and which check comes first."""

import time
from collections.abc import Mapping
from decimal import Decimal

import pytest

from holdfast.web.api.payments.callback import CALLBACK_BODY_LIMIT
from tests.support.buying import Hold
from tests.support.payment_system import CALLBACK, SECRET, Till, signed_headers
from tests.support.problems import invalid, problem

PAYMENT: dict[str, object] = {"id": "pay_1", "reference": "222-222-222", "amountSar": Decimal("1.00")}
BODY = b'{"id":"pay_1","reference":"222-222-222","amountSar":1.00}'
WRONG = {
    "no timestamp": {"X-Payment-Timestamp": ""},
    "no signature": {"X-Payment-Signature": ""},
    "another scheme": {"X-Payment-Signature": "sha1=" + "0" * 40},
    "no digest": {"X-Payment-Signature": "sha256="},
    "a digest in capitals": {"X-Payment-Signature": "sha256=" + "A" * 64},
    "a digest that is cut off": {"X-Payment-Signature": "sha256=" + "0" * 63},
    "another digest": {"X-Payment-Signature": "sha256=" + "0" * 64},
    "a timestamp in words": {"X-Payment-Timestamp": "today"},
    "another timestamp": {"X-Payment-Timestamp": str(int(time.time()) + 7)},
}
SENTENCES = {
    "no timestamp": "Send `X-Payment-Timestamp` and `X-Payment-Signature: sha256=<hex digest>`.",
    "another scheme": "`X-Payment-Signature` must begin with `sha256=`.",
    "a timestamp in words": "`X-Payment-Timestamp` must be the Unix time in seconds.",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_signature_is_refused_and_says_why(till: Till, name: str) -> None:
    response = till.send(PAYMENT, WRONG[name])
    body = problem(response, 401)
    assert body["type"] == "/problems/signature-refused"
    assert response.headers["www-authenticate"] == "PaymentSignature"
    assert body["detail"] == SENTENCES.get(name, body["detail"])


@pytest.mark.parametrize("away_seconds", [-320, 320])
def test_an_old_signature_is_refused_and_so_is_one_of_tomorrow(till: Till, away_seconds: int) -> None:
    old = signed_headers(BODY, at=int(time.time()) + away_seconds)
    body = problem(till.send(BODY.decode(), old), 401)
    assert body["detail"].startswith("The timestamp is more than 300 seconds from now")


@pytest.mark.parametrize("away_seconds", [-200, 200])
def test_a_clock_that_is_a_little_wrong_does_no_harm(till: Till, away_seconds: int) -> None:
    problem(till.send(BODY.decode(), signed_headers(BODY, at=int(time.time()) + away_seconds)), 404)


def test_another_secret_is_refused(till: Till) -> None:
    problem(till.send(BODY.decode(), signed_headers(BODY, SECRET + "!")), 401)


def test_the_signature_is_of_the_bytes_as_they_are_sent(till: Till) -> None:
    """The same document in other spaces is another body."""
    spaced = BODY.replace(b":", b": ")
    problem(till.send(spaced.decode(), signed_headers(BODY)), 401)
    problem(till.send(spaced.decode()), 404)


def test_a_key_is_no_signature(till: Till, api_key: str) -> None:
    headers = {"Authorization": f"Bearer {api_key}", "X-Payment-Signature": ""}
    problem(till.send(PAYMENT, headers), 401)


@pytest.mark.parametrize(
    ("change", "pointers"),
    [
        ({"id": ""}, ["/id"]),
        ({"id": "a b"}, ["/id"]),
        ({"id": "عملية"}, ["/id"]),
        ({"id": "x" * 201}, ["/id"]),
        ({"id": None}, ["/id"]),
        ({"id": 7}, ["/id"]),
        ({"reference": None}, ["/reference"]),
        ({"reference": "x" * 51}, ["/reference"]),
        ({"reference": "a\x00b"}, ["/reference"]),
        ({"amountSar": "1.00"}, ["/amountSar"]),
        ({"amountSar": -1}, ["/amountSar"]),
        ({"amountSar": Decimal("1.001")}, ["/amountSar"]),
        ({"amountSar": Decimal("1e400")}, ["/amountSar"]),
        ({"amountSar": Decimal("1999999999999.99")}, ["/amountSar"]),
        ({"amountSar": True}, ["/amountSar"]),
        ({"currency": "SAR"}, ["/currency"]),
        ({"id": 7, "amountSar": None, "currency": "SAR"}, ["/amountSar", "/currency", "/id"]),
    ],
)
def test_every_fault_of_a_body_is_told(till: Till, change: Mapping[str, object], pointers: list[str]) -> None:
    invalid(till.send({**PAYMENT, **change}), *pointers)


@pytest.mark.parametrize("name", ["id", "reference", "amountSar"])
def test_nothing_may_be_left_out(till: Till, name: str) -> None:
    invalid(till.send({key: value for key, value in PAYMENT.items() if key != name}), f"/{name}")


def test_a_query_is_refused(till: Till) -> None:
    invalid(till.send(PAYMENT, query="?id=pay_1"), "/query/id")


@pytest.mark.parametrize("body", ["", "{", "[", '{"id": "a", "id": "b"}', "NaN", "\ufeff{}", "{} {}"])
def test_what_is_no_json_is_refused(till: Till, body: str) -> None:
    problem(till.send(body), 400)


@pytest.mark.parametrize("body", ["[]", "null", '"pay_1"', "1"])
def test_what_is_no_object_is_refused(till: Till, body: str) -> None:
    invalid(till.send(body), "")


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": ""},
        {"Content-Type": "application/json; charset=latin1"},
        {"Content-Encoding": "gzip"},
    ],
)
def test_another_type_is_refused(till: Till, headers: dict[str, str]) -> None:
    problem(till.send(PAYMENT, headers), 415)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_another_method_is_refused_to_those_who_signed_and_told_to_nobody_else(
    till: Till, method: str
) -> None:
    answer = till.send(PAYMENT, method=method)
    problem(answer, 405)
    assert answer.headers["allow"] == "POST"
    problem(till.send(PAYMENT, {"X-Payment-Signature": ""}, method), 401)
    problem(till.send(PAYMENT, {"X-Payment-Signature": "sha256=" + "0" * 64}, method), 401)


def test_the_longest_body_is_read_and_a_longer_one_is_not(till: Till) -> None:
    longest = BODY.decode().ljust(CALLBACK_BODY_LIMIT)
    problem(till.send(longest), 404)
    assert problem(till.send(longest + " "), 413)["detail"] == "The body is larger than 64 KiB."


def test_a_body_in_pieces_counts_as_a_whole(till: Till) -> None:
    for body, status in ((BODY, 404), (BODY + b" " * CALLBACK_BODY_LIMIT, 413)):
        headers = {**signed_headers(body), "Content-Type": "application/json"}
        pieces = (body[start : start + 1000] for start in range(0, len(body), 1000))
        problem(till.http.post(CALLBACK, content=pieces, headers=headers), status)


def test_a_request_that_is_wrong_in_two_ways_gets_the_answer_of_the_first_check(
    till: Till, held: Hold
) -> None:
    due = held.read()["terms"]["depositSar"]
    unsigned = {"X-Payment-Signature": "sha256=" + "0" * 64}
    text = {"Content-Type": "text/plain"}
    problem(till.send("{", {**unsigned, **text}), 401)
    problem(till.send("{", text), 415)
    problem(till.send("{", query="?x=1"), 400)
    invalid(till.send({**PAYMENT, "amountSar": -1}), "/amountSar")
    # An amount is only wrong for a booking that is known, and before that booking's state matters.
    invalid(till.send({**PAYMENT, "reference": held.reference, "amountSar": due + 1}), "/amountSar")
    problem(till.send({**PAYMENT, "reference": held.reference, "amountSar": due}), 409)

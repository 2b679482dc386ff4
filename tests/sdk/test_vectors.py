"""The vectors themselves: written by their script, right by openssl, and with nothing left out."""

import re
import shutil
import subprocess

import pytest

from holdfast.domain.event import PING, EventName
from holdfast_webhooks import Reason
from sdk.make_vectors import FILE, document
from tests.sdk.vectors import EVENTS, SIGNED, VECTORS, Vector, each

OPENSSL = shutil.which("openssl")


def test_the_file_is_what_its_script_writes() -> None:
    assert FILE.read_text(encoding="utf-8") == document()


def test_no_two_vectors_have_one_name() -> None:
    assert len({vector.name for vector in VECTORS}) == len(VECTORS)


def test_every_event_and_every_reason_has_a_vector() -> None:
    assert {vector.headers["X-Service-Event"] for vector in EVENTS} >= {*EventName, PING}
    # A header that is given twice cannot be written down as a JSON object.
    expected = {str(reason) for reason in Reason} - {"header-repeated"}
    assert {vector.refused_for for vector in VECTORS} == expected | {None}


@pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")
@pytest.mark.parametrize("vector", each(SIGNED))
def test_openssl_computes_the_same_digest(vector: Vector) -> None:
    assert vector.signature == f"sha256={digest_by_openssl(vector)}"


@pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")
@pytest.mark.parametrize(
    "vector", each([one for one in VECTORS if one.signature_refused_for == "digest-differs"])
)
def test_openssl_computes_another_digest_where_it_differs(vector: Vector) -> None:
    assert vector.signature != f"sha256={digest_by_openssl(vector)}"


def digest_by_openssl(vector: Vector) -> str:
    assert OPENSSL is not None
    assert vector.timestamp is not None
    signed = vector.timestamp.encode() + b"." + vector.body
    command = [OPENSSL, "dgst", "-sha256", "-hmac", vector.secret]
    printed = subprocess.run(
        command, input=signed, capture_output=True, check=True, timeout=60
    ).stdout.decode()
    digest = re.fullmatch(r".*= ([0-9a-f]{64})\n", printed)
    assert digest is not None, printed
    return digest[1]

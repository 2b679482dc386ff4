"""holdfast verify"""

import math
import time
from typing import Any, BinaryIO, NamedTuple, Self

import click

from holdfast.cli.output import print_json, utf8_only
from holdfast.domain import signature as signatures
from holdfast.domain.signature import TOLERANCE_SECONDS, SignatureProblem

_SENTENCES = {
    SignatureProblem.SIGNATURE_MISSING: "The signature is empty.",
    SignatureProblem.SCHEME_NOT_SHA256: (
        "The scheme of the signature is not sha256, as in sha256=<hex digest>."
    ),
    SignatureProblem.DIGEST_MISSING: "The signature has no digest after the scheme.",
    SignatureProblem.DIGEST_MALFORMED: "The digest of the signature is not 64 lower-case hexadecimal digits.",
    SignatureProblem.TIMESTAMP_MISSING: "The timestamp is empty.",
    SignatureProblem.TIMESTAMP_NOT_A_NUMBER: "The timestamp is not a whole number of seconds.",
    SignatureProblem.DIGEST_DIFFERS: "The digest is not that of this body and timestamp with this secret.",
}
_OUT_OF_TIME = (SignatureProblem.TOO_OLD, SignatureProblem.TOO_FAR_AHEAD)


class Captured(NamedTuple):
    """A delivery as somebody noted it down."""

    secret: str
    timestamp: str
    signature: str
    body: bytes

    def verdict(self, now: float | None) -> SignatureProblem | None:
        return signatures.verify(self.secret, self.timestamp, self.signature, self.body, now)

    def without_last_newline(self) -> Self:
        return self._replace(body=self.body.removesuffix(b"\n").removesuffix(b"\r"))

    def age_seconds(self, now: float) -> int | None:
        signed_at = signatures.parse_timestamp(self.timestamp)
        return None if signed_at is None else math.floor(now) - signed_at


@click.command()
@click.option(
    "--secret",
    required=True,
    envvar="HOLDFAST_SECRET",
    show_envvar=True,
    callback=utf8_only,
    help="The endpoint's signing secret; from the environment it stays out of the shell's history.",
)
@click.option("--timestamp", required=True, help="The header X-Service-Timestamp.")
@click.option("--signature", required=True, help="The header X-Service-Signature.")
@click.option("--any-age", is_flag=True, help=f"Accept it however old; else {TOLERANCE_SECONDS} s at most.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument("file", type=click.File("rb"), default="-")
def verify(secret: str, timestamp: str, signature: str, any_age: bool, as_json: bool, file: BinaryIO) -> None:
    """Check a captured delivery, with its raw body in FILE or on stdin.

    The body must be byte for byte what was received: an editor that adds a newline changes it.
    """
    if not secret:
        raise click.UsageError("The secret is empty.")
    captured, now = Captured(secret, timestamp, signature, file.read()), time.time()
    reason = captured.verdict(None if any_age else now)
    if as_json:
        print_json(_document(captured, reason, now))
    if reason is not None:
        click.echo(f"holdfast: {_refused(captured, reason, now)}", err=True)
        raise SystemExit(1)
    if not as_json:
        click.echo(f"The signature is valid; it was made {_distance(captured.age_seconds(now))}.")


def _document(captured: Captured, reason: SignatureProblem | None, now: float) -> dict[str, Any]:
    return {
        "valid": reason is None,
        "reason": None if reason is None else str(reason),
        "detail": None if reason is None else _refused(captured, reason, now),
        "signatureMatches": captured.verdict(None) is None,
        "ageSeconds": captured.age_seconds(now),
    }


def _refused(captured: Captured, reason: SignatureProblem, now: float) -> str:
    if reason in _OUT_OF_TIME:
        return _out_of_time(captured, now)
    if reason is SignatureProblem.DIGEST_DIFFERS and captured.without_last_newline().verdict(None) is None:
        return "The body has a newline at its end that was not received; without it the signature matches."
    return _SENTENCES[reason]


def _out_of_time(captured: Captured, now: float) -> str:
    made = (
        f"The signature was made {_distance(captured.age_seconds(now))}; {TOLERANCE_SECONDS} s are allowed."
    )
    if captured.verdict(None) is None:
        return f"{made} The signature itself matches (--any-age leaves the age out)."
    return f"{made} The signature itself does not match either."


def _distance(age_seconds: int | None) -> str:
    """In words, since a clock that is ahead is another trouble than a delivery that is old."""
    age_seconds = age_seconds or 0
    return f"{age_seconds} s ago" if age_seconds >= 0 else f"{-age_seconds} s ahead of this machine's clock"

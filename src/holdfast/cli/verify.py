"""holdfast verify"""

import math
import time
from typing import BinaryIO, NamedTuple

import click

from holdfast.cli.output import CommandError, check_utf8, print_json
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


class CapturedDelivery(NamedTuple):
    secret: str
    timestamp: str
    signature: str
    body: bytes

    def find_problem(self, now: float | None) -> SignatureProblem | None:
        return signatures.verify(self.secret, self.timestamp, self.signature, self.body, now)

    def age_seconds(self, now: float) -> int | None:
        signed_at = signatures.parse_timestamp(self.timestamp)
        return None if signed_at is None else math.floor(now) - signed_at


@click.command()
@click.option(
    "--secret",
    required=True,
    envvar="HOLDFAST_SECRET",
    show_envvar=True,
    callback=check_utf8,
    help="The endpoint's signing secret. Set it in the environment to keep it out of the shell's history.",
)
@click.option("--timestamp", required=True, help="The header X-Service-Timestamp.")
@click.option("--signature", required=True, help="The header X-Service-Signature.")
@click.option("--any-age", is_flag=True, help=f"Accept any age. Otherwise at most {TOLERANCE_SECONDS} s.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument("file", type=click.File("rb"), default="-")
def verify(secret: str, timestamp: str, signature: str, any_age: bool, as_json: bool, file: BinaryIO) -> None:
    """Check a captured delivery, with its raw body in FILE or on stdin.

    The body must have exactly the bytes that were received: an editor that adds a newline changes it.
    """
    if not secret:
        raise click.UsageError("The secret is empty.")
    captured, now = CapturedDelivery(secret, timestamp, signature, file.read()), time.time()
    problem = captured.find_problem(None if any_age else now)
    detail = None if problem is None else _explain(captured, problem, now)
    if as_json:
        print_json(
            {
                "valid": problem is None,
                "reason": problem,
                "detail": detail,
                "signatureMatches": captured.find_problem(None) is None,
                "ageSeconds": captured.age_seconds(now),
            }
        )
    if detail is not None:
        raise CommandError(detail)
    if not as_json:
        click.echo(f"The signature is valid; it was made {_format_age(captured, now)}.")


def _explain(captured: CapturedDelivery, problem: SignatureProblem, now: float) -> str:
    if problem in (SignatureProblem.TOO_OLD, SignatureProblem.TOO_FAR_AHEAD):
        age = f"The signature was made {_format_age(captured, now)}; {TOLERANCE_SECONDS} s are allowed."
        if captured.find_problem(None) is None:
            return f"{age} The signature itself matches (--any-age leaves the age out)."
        return f"{age} The signature itself does not match either."
    if problem is SignatureProblem.DIGEST_DIFFERS:
        body = captured.body.removesuffix(b"\n").removesuffix(b"\r")
        if captured._replace(body=body).find_problem(None) is None:
            return (
                "The body has a newline at its end that was not received; without it the signature matches."
            )
    return _SENTENCES[problem]


def _format_age(captured: CapturedDelivery, now: float) -> str:
    """Tell a clock that is ahead from a delivery that is old."""
    seconds = captured.age_seconds(now) or 0
    return f"{seconds} s ago" if seconds >= 0 else f"{-seconds} s ahead of this machine's clock"

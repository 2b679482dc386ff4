"""The figures of the security model, and of the buyers' guide, are those of the code."""

from holdfast.domain.holds import HoldLimits
from holdfast.domain.login import FIRST_WAIT, FREE_FAILURES, LONGEST_WAIT
from holdfast.domain.signature import TOLERANCE_SECONDS
from holdfast.settings import Settings
from holdfast.web.pages.base import PAGE_HEADERS
from holdfast.webhooks.connection import LONGEST_BODY, LONGEST_HEAD
from tests.docs.documents import ROOT

TOLD = " ".join((ROOT / "docs" / "security-model.md").read_text().split())
TOLD_TO_BUYERS = " ".join((ROOT / "docs" / "buyers-guide.md").read_text().split())
IN_WORDS = {5: "five"}


def test_limits_on_holds() -> None:
    limits = HoldLimits()
    address = f"address at most {limits.per_address},"
    assert f"at most {limits.per_visitor} live ones and one {address}" in TOLD
    assert f"at most {limits.per_visitor} units at the same time, one network {address}" in TOLD_TO_BUYERS


def test_waits_after_failed_sign_ins() -> None:
    longest = LONGEST_WAIT.total_seconds() / 60
    waits = f"waits {FIRST_WAIT.total_seconds():g} seconds, and twice as long after each further one"
    assert f"After {IN_WORDS[FREE_FAILURES]} failures an account {waits}, up to {longest:g} minutes" in TOLD


def test_the_life_of_a_session() -> None:
    settings = Settings()
    idle, whole = settings.session_idle_minutes, settings.session_hours
    assert f"ends after {idle:g} minutes without a click, after {whole:g} hours in any case" in TOLD


def test_the_age_of_a_signature() -> None:
    assert TOLD.count(f"older than {TOLERANCE_SECONDS} seconds") == 2


def test_what_is_kept_of_an_answer() -> None:
    kept = f"at most {LONGEST_HEAD // 1024} KiB of headers and {LONGEST_BODY // 1024} KiB of body"
    assert kept in TOLD


def test_what_pages_may_run() -> None:
    policy = PAGE_HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "frame-ancestors 'none'" in policy
    assert "`default-src 'none'`" in TOLD

"""Endpoints: their secrets, and the state in which they are shown."""

import base64
import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from holdfast.domain.endpoint import (
    FAILING_AFTER,
    Endpoint,
    EndpointConfig,
    EndpointFailure,
    EndpointState,
    generate_secret,
    is_failing,
)
from holdfast.domain.event import EventName

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
JUST_LESS = FAILING_AFTER - timedelta(milliseconds=1)


def endpoint(trouble: EndpointFailure | None, *, paused: bool = False) -> Endpoint:
    config = EndpointConfig("https://example.com/hook", paused=paused)
    return Endpoint(UUID(int=1), config, UUID(int=2), NOW, trouble, NOW, NOW, NOW)


def trouble(ago: timedelta, gone_at: datetime | None = None) -> EndpointFailure:
    return EndpointFailure(NOW - ago, "The receiver answered 500.", gone_at)


def test_a_secret_is_32_random_bytes_in_letters_that_fit_everywhere() -> None:
    secrets = {generate_secret() for _ in range(100)}
    assert len(secrets) == 100
    for secret in secrets:
        assert re.fullmatch(r"hfs_[A-Za-z0-9_-]{43}", secret)
        assert len(base64.urlsafe_b64decode(secret.removeprefix("hfs_") + "=")) == 32


@pytest.mark.parametrize(
    ("found", "failing"),
    [
        (None, False),
        (trouble(timedelta()), False),
        (trouble(JUST_LESS), False),
        (trouble(FAILING_AFTER), True),
        (trouble(timedelta(days=30)), True),
        (trouble(timedelta(), gone_at=NOW), True),
    ],
)
def test_it_fails_after_a_day_without_a_success_or_at_once_when_it_is_gone(
    found: EndpointFailure | None, failing: bool
) -> None:
    assert is_failing(found, NOW) is failing
    expected = EndpointState.FAILING if failing else EndpointState.ACTIVE
    assert endpoint(found).state is expected
    assert endpoint(found, paused=True).state is EndpointState.PAUSED


def test_who_wishes_nothing_else_gets_every_event_of_every_project() -> None:
    config = EndpointConfig("https://example.com/hook")
    assert config.events == tuple(EventName)
    assert config.project_slugs is None
    assert (config.paused, config.ordered) == (False, False)

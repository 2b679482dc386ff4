"""How names and times are written: alike in answers, in the audit trail and in sentences."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.wire_format import camel_case, format_timestamp
from holdfast.web.json import time_text


@pytest.mark.parametrize(
    ("name", "spelled"),
    [("status", "status"), ("price_sar", "priceSar"), ("hold_expires_at", "holdExpiresAt")],
)
def test_names_are_written_as_the_wire_has_them(name: str, spelled: str) -> None:
    assert camel_case(name) == spelled


def test_a_time_has_three_digits_of_a_second_even_where_they_are_noughts() -> None:
    assert format_timestamp(datetime(2026, 11, 14, 9, 30, tzinfo=UTC)) == "2026-11-14T09:30:00.000Z"
    assert format_timestamp(datetime(2026, 11, 14, 9, 30, 1, 7_000, UTC)) == "2026-11-14T09:30:01.007Z"


@given(st.datetimes(timezones=st.just(UTC)), st.integers(0, 999))
def test_answers_write_times_as_everybody_else_does(second: datetime, milliseconds: int) -> None:
    moment = second.replace(microsecond=0) + timedelta(milliseconds=milliseconds)
    assert time_text(moment) == format_timestamp(moment)

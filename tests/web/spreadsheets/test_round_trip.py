"""Whatever a unit is made of, its export comes back as the same unit."""

import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.domain.audit import COMMAND
from holdfast.domain.decision import UnitSnapshot
from holdfast.domain.imports import Row, guess
from holdfast.domain.project import Project
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit, UnitFields, code_fault, unit_id
from holdfast.operations.imports import ImportUnit, unpack
from holdfast.web.spreadsheets.csv_files import BYTE_ORDER_MARK, csv_lines
from holdfast.web.spreadsheets.file_parser import parse_file
from holdfast.web.spreadsheets.unit_rows import RowParser, headings, unit_row
from holdfast.web.spreadsheets.workbook_writer import END, Heading, encode_frame, write

NOW = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
PROJECT = Project(uuid4(), "palm-court", "Palm Court", 1, NOW)


def canonical(number: Decimal) -> Decimal:
    return number.normalize() + 0


NASTY = st.sampled_from(
    [
        "=1+1", "-5", "+1", "@x", "\t=", "\r", "'=", "''+", "<img onerror>", "#N/A", "٪", "1,5", "x0041_",
        "a;=1", "a; '=1", "a\n-b",
    ]
)  # fmt: skip
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20) | NASTY
CODES = (TEXT | st.integers().map(str)).filter(lambda code: code_fault(code) is None)
ADDRESSES = st.from_regex(r"https://[a-z]+\.example(/[!-~]{0,8})?", fullmatch=True)
MEDIA = st.lists(
    ADDRESSES | st.fixed_dictionaries({"url": ADDRESSES}, optional={"name": st.none() | TEXT}), max_size=3
)
PERCENT = st.none() | st.decimals(0, 100, places=4).map(canonical)


@st.composite
def units(draw: st.DrawFn) -> Unit:
    code = draw(CODES)
    fields = UnitFields(
        draw(TEXT.filter(bool)),
        draw(st.decimals("0.0001", "9999999.9999", places=4).map(canonical)),
        draw(st.decimals(0, "999999999999.99", places=2).map(canonical)),
        draw(st.none() | st.booleans()),
        draw(PERCENT),
        draw(PERCENT),
        draw(st.none() | st.integers(0, 999)),
        draw(st.none() | st.integers(0, 999)),
        draw(st.none() | st.integers(1900, 2200)),
        draw(st.none() | st.integers(-9, 200)),
        draw(st.none() | TEXT),
        tuple(draw(MEDIA)),
        tuple(draw(MEDIA)),
    )
    status = draw(st.sampled_from(Status))
    end = NOW + timedelta(minutes=5)
    held, reserved = end if status is Status.HELD else None, end if status is Status.RESERVED else None
    key = unit_id(PROJECT.id, code)
    return Unit(key, PROJECT.id, code, "U-1", fields, status, False, held, reserved, 1, NOW, NOW)


def as_csv(unit: Unit, language: str) -> bytes:
    return BYTE_ORDER_MARK.encode() + csv_lines([headings(language), unit_row(unit, language)])


def as_workbook(unit: Unit, language: str) -> bytes:
    source = io.BytesIO(
        encode_frame(Heading(headings(language), language == "ar"))
        + encode_frame([unit_row(unit, language)])
        + END
    )
    target = io.BytesIO()
    write(source, target)
    return target.getvalue()


@pytest.mark.parametrize("language", ["en", "ar"])
@pytest.mark.parametrize("export", [as_csv, as_workbook])
@given(unit=units())
@settings(max_examples=30, deadline=None)
def test_an_export_of_a_unit_decides_no_change(export: Any, language: str, unit: Unit) -> None:
    reply = parse_file(export(unit, language))
    assert reply.contents is not None, reply.fault
    choice = guess(reply.contents)._replace(clears_absent=True, sign=".")
    row = unpack(list[Row], reply.parts[0][0])[-1]
    command = RowParser(PROJECT.id, PROJECT.slug, choice, COMMAND)(row).command
    assert isinstance(command, ImportUnit), command
    assert command.key == (PROJECT.id, unit.code)
    assert command.decide(UnitSnapshot(PROJECT, unit), NOW).unit is unit

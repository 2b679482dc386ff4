"""Units from a file, and units as a file: imports are uploaded, mapped, checked and then stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from decimal import Decimal
from typing import IO, Any
from uuid import UUID

from starlette.responses import Response, StreamingResponse

from holdfast.domain import imports
from holdfast.domain.cells import cell_text
from holdfast.domain.errors import Fault, InvalidInput
from holdfast.domain.imports import Import
from holdfast.domain.permissions import Permission
from holdfast.domain.project import Project
from holdfast.domain.status import Status
from holdfast.operations.imports import ROWS_A_PART, Finding
from holdfast.operations.units import OUTCOMES
from holdfast.web.errors import UnknownRoute
from holdfast.web.pages.backoffice.base import PREFIX, StaffRequest, pages, with_query
from holdfast.web.pages.base import PAGE_HEADERS
from holdfast.web.pages.forms import Form, parse_whole_number
from holdfast.web.pages.i18n import translate
from holdfast.web.spreadsheets.csv_files import BYTE_ORDER_MARK, CellRow, csv_lines
from holdfast.web.spreadsheets.unit_rows import EXAMPLES, headings, unit_row

MAX_FILE_BYTES = 32 * 1024**2
FINDINGS_A_PAGE = 50
SECONDS_WAITED = 1.0
"""For a small file, so that whoever uploaded it sees the result at once."""
EXPORTED_AT_ONCE = 500
CSV = "text/csv; charset=utf-8"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

# The parts of the form around the file.
_MAX_FORM_BYTES = MAX_FILE_BYTES + 64 * 1024
_NUMBERS = ("area_sqm", "price_sar", "vat_rate", "deposit_percent")
_LISTED = ("refused", "replaced", "created")
_SAMPLES = 3
_CHUNK_BYTES = 256 * 1024


@pages.get("/projects/{slug}/import", Permission.SELL)
async def show_upload(
    request: StaffRequest, slug: str, status: int = 200, fault: str | None = None
) -> Response:
    return await request.render(
        "import.html",
        status,
        project=await request.services.projects.find(slug),
        tab="import",
        fault=fault,
        files=await request.services.imports.latest(slug, request.staff.id),
        statuses=list(Status),
    )


@pages.post("/projects/{slug}/import", Permission.SELL, body_limit=_MAX_FORM_BYTES)
async def upload(request: StaffRequest, slug: str) -> Response:
    project = await request.services.projects.find(slug)
    sent = request.form.upload("file")
    if sent is None or not sent.content:
        return await show_upload(request, slug, 422, request._("Choose a file."))
    try:
        sheets = await request.context.file_reader.read(sent.content)
    except InvalidInput as error:
        return await show_upload(request, slug, 422, translate(error.faults[0].message, request.language))
    name = sent.filename or request._("Unnamed file")
    import_id = await request.services.imports.add_file(slug, request.staff.id, name, sheets)
    return request.redirect(_path(project, import_id))


@pages.get("/projects/{slug}/import/{id}", Permission.SELL)
async def show_import(request: StaffRequest, slug: str, import_id: UUID) -> Response:
    project, file = await _load(request, slug, import_id)
    if file.is_running or file.is_interrupted:
        counts = await request.services.imports.counts(file.id, stored=file.stage == "importing")
        return await request.render(
            "import_progress_part.html" if request.is_fragment else "import_progress.html",
            project=project,
            tab="import",
            file=file,
            done=sum(counts.values()),
            address=_path(project, file.id),
        )
    if file.stage == "imported":
        return await _render_findings(request, project, file, stored=True)
    if file.choice is None or request.query.has("columns"):
        choice = file.choice
        if choice is None or request.query.has("sheet"):
            choice = imports.guess(file.contents, *_parse_place(file.contents, request.query))
        return await _render_columns(request, project, file, choice)
    return await _render_findings(request, project, file, stored=False)


@pages.post("/projects/{slug}/import/{id}/check", Permission.SELL)
async def check_import(request: StaffRequest, slug: str, import_id: UUID) -> Response:
    project, file = await _load(request, slug, import_id)
    choice = _parse_choice(file.contents, request.form)
    faults = imports.choice_faults(choice, file.contents)
    if faults:
        return await _render_columns(request, project, file, choice, faults)
    if await request.services.imports.start(slug, file, request.author, choice):
        await request.services.imports.wait(file.id, SECONDS_WAITED)
    return request.redirect(_path(project, file.id))


@pages.post("/projects/{slug}/import/{id}/commit", Permission.SELL)
async def commit_import(request: StaffRequest, slug: str, import_id: UUID) -> Response:
    """Store what the person has seen, and nothing that somebody has checked since."""
    project, file = await _load(request, slug, import_id)
    path = _path(project, file.id)
    if request.form.text("seen") != str(file.run_id):
        notice = request._(
            "The file has been checked or imported in the meantime. This is its current state."
        )
        return await request.redirect_with_notice(path, notice, "warning")
    if await request.services.imports.start(slug, file, request.author):
        await request.services.imports.wait(file.id, SECONDS_WAITED)
    return request.redirect(path)


async def _load(request: StaffRequest, slug: str, import_id: UUID) -> tuple[Project, Import]:
    project = await request.services.projects.find(slug)
    file = await request.services.imports.find(slug, import_id, request.staff.id)
    if file is None:
        raise UnknownRoute
    return project, file


def _path(project: Project, import_id: UUID) -> str:
    return f"{PREFIX}/projects/{project.slug}/import/{import_id}"


async def _render_columns(
    request: StaffRequest,
    project: Project,
    file: Import,
    choice: imports.ColumnMapping,
    faults: list[Fault] | None = None,
) -> Response:
    sheet = file.contents.sheets[choice.sheet]
    below = [cells for number, cells in sheet.head if number > choice.heading_row]
    return await request.render(
        "import_columns.html",
        422 if faults else 200,
        project=project,
        tab="import",
        file=file,
        choice=choice,
        sheet=sheet,
        columns=[
            (heading, [cell_text(row[at]) for row in below if at < len(row) and row[at] != ""][:_SAMPLES])
            for at, heading in enumerate(imports.headings(sheet, choice.heading_row))
        ],
        heading_rows=[(number, " · ".join(map(cell_text, cells))[:60]) for number, cells in sheet.head],
        fields=imports.FIELDS,
        required=("code", *imports.REQUIRED),
        absent=[field for field in imports.FIELDS if field not in choice.fields and field != "status"],
        faults=request.faults(InvalidInput(faults)) if faults else {},
    )


async def _render_findings(
    request: StaffRequest, project: Project, file: Import, *, stored: bool
) -> Response:
    if request.is_fragment:
        # The page that asks shows the progress of a run, which has ended.
        page = await request.render("import_ended_part.html")
        page.headers["HX-Refresh"] = "true"
        return page
    files, query, path = request.services.imports, request.query, _path(project, file.id)
    counts = dict.fromkeys(OUTCOMES, 0) | await files.counts(file.id, stored=stored)
    outcome = _chosen_outcome(query.text("show"), counts, stored=stored)
    start = parse_whole_number(query.text("from"), 10**6) or 0
    end = start + FINDINGS_A_PAGE
    assert file.choice is not None
    names = imports.headings(file.contents.sheets[file.choice.sheet], file.choice.heading_row)
    findings = await files.findings(file.id, outcome, start, FINDINGS_A_PAGE, stored=stored)
    return await request.render(
        "import_done.html" if stored else "import_checked.html",
        project=project,
        tab="import",
        file=file,
        counts=counts,
        outcome=outcome,
        start=start,
        findings=[
            finding._replace(before=_exact_numbers(finding.before), after=_exact_numbers(finding.after))
            for finding in findings
        ],
        headings={field: name for field, name in zip(file.choice.fields, names, strict=True) if field},
        address=path,
        first=with_query(path, **{"show": outcome, "from": "0"}) if start else None,
        next=with_query(path, **{"show": outcome, "from": str(end)}) if end < counts[outcome] else None,
    )


def _chosen_outcome(chosen: str, counts: dict[str, int], *, stored: bool) -> str:
    """Return the outcome whose rows are listed; at first the one that needs somebody's eyes."""
    listed = ("refused",) if stored else _LISTED
    if chosen in listed and counts[chosen]:
        return chosen
    return next((name for name in listed if counts[name]), listed[0])


def _exact_numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers are stored as text, so that none of their digits is lost."""
    return {name: Decimal(value) if name in _NUMBERS else value for name, value in values.items()}


# The choice of columns.


def _parse_place(contents: imports.Contents, form: Form) -> tuple[int | None, int | None]:
    """Return the sheet, and the row that names its columns."""
    sheet = parse_whole_number(form.text("sheet"), len(contents.sheets) - 1)
    last = max((number for number, _ in contents.sheets[sheet or 0].head), default=1)
    return sheet, parse_whole_number(form.text("heading"), last)


def _parse_choice(contents: imports.Contents, form: Form) -> imports.ColumnMapping:
    """Return the choice of a form; anything that it does not offer is ignored."""
    sheet, heading_row = _parse_place(contents, form)
    guessed = imports.guess(contents, sheet or 0, heading_row)
    fields = [form.text(f"column{at}") for at in range(contents.sheets[sheet or 0].width)]
    sign = form.text("sign")
    return guessed._replace(
        fields=[field if field in imports.FIELDS else None for field in fields],
        clears_absent=form.text("absent") == "clear",
        sign=sign if sign in imports.SIGNS else guessed.sign,
    )


# Files to download: CSV and XLSX in the form that an import understands.


@pages.get("/projects/{slug}/export.csv", Permission.SEE_UNITS)
@pages.get("/projects/{slug}/export.xlsx", Permission.SEE_UNITS)
async def export_units(request: StaffRequest, slug: str) -> Response:
    # An unknown project is an error before the response begins.
    await request.services.units.project_id(slug)
    heading = headings(request.language.code)
    return await _download(request, f"{slug}-units", heading, _exported_rows(request, slug))


@pages.get("/projects/{slug}/template.csv", Permission.SELL)
@pages.get("/projects/{slug}/template.xlsx", Permission.SELL)
async def export_template(request: StaffRequest, slug: str) -> Response:
    await request.services.units.project_id(slug)
    heading = headings(request.language.code)[: len(imports.FIELDS)]
    return await _download(request, f"{slug}-template", heading, _template_rows(request))


@pages.get("/projects/{slug}/import/{id}/refused.csv", Permission.SELL)
async def export_refused(request: StaffRequest, slug: str, import_id: UUID) -> Response:
    """Return the refused rows with their numbers and reasons, in a file that can be mended and imported."""
    _, file = await _load(request, slug, import_id)
    if file.choice is None or file.stage not in ("checked", "imported"):
        raise UnknownRoute
    names = imports.headings(file.contents.sheets[file.choice.sheet], file.choice.heading_row)
    columns = {field: name for field, name in zip(file.choice.fields, names, strict=True) if field}
    added = [request._("Row"), request._("Reason")]
    if names[-2:] == added:
        # The file is the refused rows of another.
        names = names[:-2]
    rows = _refused_rows(request, file, columns, len(names))
    return await _download(request, f"{slug}-refused-rows", names + added, rows)


async def _download(
    request: StaffRequest, name: str, heading: list[str], rows: AsyncIterator[list[CellRow]]
) -> Response:
    """Return a file of the type with which the path ends."""
    ending = request.path.rpartition(".")[2]
    headers = {**PAGE_HEADERS, "Content-Disposition": f'attachment; filename="{name}.{ending}"'}
    if ending == "csv":
        return StreamingResponse(_csv_lines(heading, rows), headers=headers, media_type=CSV)
    right_to_left = request.language.direction == "rtl"
    file = await request.context.workbook_writer.write(heading, rows, right_to_left=right_to_left)
    headers["Content-Length"] = str(file.seek(0, 2))
    file.seek(0)
    return StreamingResponse(_chunks(file), headers=headers, media_type=XLSX)


async def _csv_lines(heading: list[str], pages_of_rows: AsyncIterator[list[CellRow]]) -> AsyncIterator[bytes]:
    yield BYTE_ORDER_MARK.encode() + csv_lines([heading])
    async for rows in pages_of_rows:
        yield csv_lines(rows)


async def _template_rows(request: StaffRequest) -> AsyncIterator[list[CellRow]]:
    yield EXAMPLES[request.language.code]


async def _refused_rows(
    request: StaffRequest, file: Import, columns: Mapping[str, str], width: int
) -> AsyncIterator[list[CellRow]]:
    def row(one: Finding) -> CellRow:
        told = [
            (columns.get(field or ""), translate(text, request.language)) for field, _, text in one.reasons
        ]
        reasons = "; ".join(f"{heading}: {text}" if heading else text for heading, text in told)
        return [*map(cell_text, one.cells[:width]), one.row, reasons]

    files, stored, start = request.services.imports, file.stage == "imported", 0
    while found := await files.findings(file.id, "refused", start, ROWS_A_PART, stored=stored):
        yield list(map(row, found))
        start += len(found)


async def _exported_rows(request: StaffRequest, slug: str) -> AsyncIterator[list[CellRow]]:
    """Yield the rows page by page: no connection is kept while one is sent. Without a status: all units."""
    statuses = {Status(name) for name in request.query.all("status") if name in tuple(Status)}
    only = next(iter(statuses)) if len(statuses) == 1 else None
    after, more = "", True
    while more:
        units, _ = await request.services.units.page(slug, after, EXPORTED_AT_ONCE, only)
        units, more = units[:EXPORTED_AT_ONCE], len(units) > EXPORTED_AT_ONCE
        if units:
            after = units[-1].code
            yield [
                unit_row(unit, request.language.code)
                for unit in units
                if not statuses or unit.status in statuses
            ]


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while chunk := await asyncio.to_thread(file.read, _CHUNK_BYTES):
            yield chunk

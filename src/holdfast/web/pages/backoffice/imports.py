"""What somebody chose for the columns of a file."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.cells import Cell, cell_text
from holdfast.domain.errors import Fault, InvalidInput
from holdfast.domain.imports import (
    FIELDS,
    REQUIRED,
    SIGNS,
    Choice,
    Contents,
    Row,
    choice_faults,
    guess,
    headings,
    is_field,
)
from holdfast.domain.permissions import Permission
from holdfast.domain.project import Project
from holdfast.domain.status import Status
from holdfast.operations.imports import Finding, Import, ImportFiles, ImportRuns
from holdfast.operations.projects import Projects
from holdfast.operations.units import OUTCOMES, Units
from holdfast.web.api.parameters import id_in_path, slug_in_path
from holdfast.web.http_errors import UnknownRoute
from holdfast.web.pages.backoffice.base import PREFIX, Desk, Visit
from holdfast.web.pages.backoffice.exports import ExportPages
from holdfast.web.pages.forms import Form
from holdfast.web.pages.i18n import translate
from holdfast.web.spreadsheets.processes import FileReader

_LONGEST_NUMBER = 6


def asked_for(contents: Contents, chosen: Choice | None, query: Form) -> Choice:
    """What the page shows at first: as it was chosen, or guessed for the sheet and the row of the query."""
    if chosen is not None and not query.has("sheet"):
        return chosen
    sheet = _number(query.text("sheet"), len(contents.sheets) - 1)
    row = _number(query.text("heading"), _last_heading(contents, sheet or 0))
    return guess(contents, sheet, row)


def choice_of(contents: Contents, form: Form) -> Choice:
    """Whatever is no choice of ours is as if it had not been made."""
    sheet = _number(form.text("sheet"), len(contents.sheets) - 1) or 0
    guessed = guess(contents, sheet, _number(form.text("heading"), _last_heading(contents, sheet)))
    sent = [form.text(f"column{at}") for at in range(contents.sheets[sheet].width)]
    sign = form.text("sign")
    return guessed._replace(
        fields=[field if is_field(field) else None for field in sent],
        clears_absent=form.text("absent") == "clear",
        sign=sign if sign in SIGNS else guessed.sign,
    )


def samples(head: list[Row], heading_row: int, column: int, many: int = 3) -> list[Cell]:
    """The first cells of a column that have something in them."""
    below = (cells for number, cells in head if number > heading_row)
    found = [cells[column] for cells in below if column < len(cells) and cells[column] != ""]
    return found[:many]


def _last_heading(contents: Contents, sheet: int) -> int:
    return max((number for number, _ in contents.sheets[sheet].head), default=1)


def _number(text: str, most: int) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    return int(text) if is_number and int(text) <= most else None


# Units from a file: uploaded, its columns named, checked, and then brought in.

FILE_AT_MOST = 32 * 1024**2
FINDINGS_A_PAGE = 50
SECONDS_WAITED = 1.0
"""For a small file, so that whoever sent it sees at once what came of it."""

# The parts of the form around the file.
_FORM_AT_MOST = FILE_AT_MOST + 64 * 1024
_NUMBERS = ("area_sqm", "price_sar", "vat_rate", "deposit_percent")
_LISTED = ("refused", "replaced", "created")


class ImportPages:
    def __init__(self, files: ImportFiles, runs: ImportRuns, projects: Projects) -> None:
        self._files = files
        self._runs = runs
        self._projects = projects
        self._sheets = FileReader()

    async def start(self, visit: Visit, status: int = 200, fault: str | None = None) -> Response:
        project = await self._project(visit)
        return await visit.render(
            "import.html",
            status,
            project=project,
            tab="import",
            fault=fault,
            files=await self._files.latest(project.slug, visit.staff.id),
            statuses=list(Status),
        )

    async def upload(self, visit: Visit) -> Response:
        project = await self._project(visit)
        sent = visit.form.upload("file")
        if sent is None or not sent.content:
            return await self.start(visit, 422, visit._("Choose a file."))
        try:
            read = await self._sheets.read(sent.content)
        except InvalidInput as refusal:
            return await self.start(visit, 422, translate(refusal.faults[0].message, visit.language))
        name = sent.filename or visit._("Unnamed file")
        import_id = await self._files.keep(project.slug, visit.staff.id, name, read)
        return await visit.go(f"{_base(project)}/{import_id}")

    async def show(self, visit: Visit) -> Response:
        project, file = await self._found(visit)
        if file.is_running or file.is_interrupted:
            return await self._progress(visit, project, file)
        if file.stage == "imported":
            return await self._findings(visit, project, file, stored=True)
        if file.choice is None or visit.query.has("columns"):
            return await self._columns(
                visit, project, file, asked_for(file.contents, file.choice, visit.query)
            )
        return await self._findings(visit, project, file, stored=False)

    async def check(self, visit: Visit) -> Response:
        project, file = await self._found(visit)
        choice = choice_of(file.contents, visit.form)
        faults = choice_faults(choice, file.contents)
        if faults:
            return await self._columns(visit, project, file, choice, faults)
        if await self._runs.check(project.slug, file, choice, visit.author):
            await self._runs.settle(file.id, SECONDS_WAITED)
        return await visit.go(f"{_base(project)}/{file.id}")

    async def bring_in(self, visit: Visit) -> Response:
        """What the person has seen, and nothing that somebody has checked since."""
        project, file = await self._found(visit)
        address = f"{_base(project)}/{file.id}"
        if visit.form.text("seen") != str(file.run_id):
            told = visit._("The file was checked or imported in the meantime; this is how it stands now.")
            return await visit.go(address, told, "warning")
        if await self._runs.store(project.slug, file, visit.author):
            await self._runs.settle(file.id, SECONDS_WAITED)
        return await visit.go(address)

    async def _columns(
        self, visit: Visit, project: Project, file: Import, choice: Choice, faults: list[Fault] | None = None
    ) -> Response:
        sheet = file.contents.sheets[choice.sheet]
        return await visit.render(
            "import_columns.html",
            422 if faults else 200,
            project=project,
            tab="import",
            file=file,
            choice=choice,
            sheet=sheet,
            columns=[
                (heading, [cell_text(cell) for cell in samples(sheet.head, choice.heading_row, at)])
                for at, heading in enumerate(headings(sheet, choice.heading_row))
            ],
            heading_rows=[(number, " · ".join(map(cell_text, cells))[:60]) for number, cells in sheet.head],
            fields=FIELDS,
            required=("code", *REQUIRED),
            signs=SIGNS,
            absent=[field for field in FIELDS if field not in choice.fields and field != "status"],
            faults={
                fault.pointer.strip("/"): translate(fault.message, visit.language) for fault in faults or ()
            },
        )

    async def _progress(self, visit: Visit, project: Project, file: Import) -> Response:
        counts = await self._files.counts(file.id, stored=file.stage == "importing")
        return await visit.render(
            "import_progress_part.html" if visit.is_fragment else "import_progress.html",
            project=project,
            tab="import",
            file=file,
            done=sum(counts.values()),
            address=f"{_base(project)}/{file.id}",
        )

    async def _findings(self, visit: Visit, project: Project, file: Import, *, stored: bool) -> Response:
        if visit.is_fragment:
            # The page that asks shows how far a run is, which has ended.
            page = await visit.render("import_ended_part.html")
            page.headers["HX-Refresh"] = "true"
            return page
        counts = dict.fromkeys(OUTCOMES, 0) | await self._files.counts(file.id, stored=stored)
        shown = _shown(visit.query.text("show"), counts, stored=stored)
        start = _start(visit.query.text("from"))
        found = await self._files.findings(file.id, shown, start, FINDINGS_A_PAGE, stored=stored)
        address = f"{_base(project)}/{file.id}"
        return await visit.render(
            "import_done.html" if stored else "import_checked.html",
            project=project,
            tab="import",
            file=file,
            counts=counts,
            shown=shown,
            start=start,
            findings=[_told(finding, visit) for finding in found],
            headings=_headings_of(file),
            address=address,
            first=_page(address, shown, 0) if start else None,
            next=_page(address, shown, start + FINDINGS_A_PAGE)
            if start + FINDINGS_A_PAGE < counts[shown]
            else None,
        )

    async def _found(self, visit: Visit) -> tuple[Project, Import]:
        project = await self._project(visit)
        try:
            import_id = id_in_path(visit.request)
        except InvalidInput:
            raise UnknownRoute from None
        found = await self._files.find(project.slug, import_id, visit.staff.id)
        if found is None:
            raise UnknownRoute
        return project, found

    async def _project(self, visit: Visit) -> Project:
        return await self._projects.find(slug_in_path(visit.request))


def _base(project: Project) -> str:
    return f"{PREFIX}/projects/{project.slug}/import"


def _shown(asked: str, counts: dict[str, int], *, stored: bool) -> str:
    """What needs somebody's eyes first."""
    listed = ("refused",) if stored else _LISTED
    if asked in listed and counts[asked]:
        return asked
    return next((name for name in listed if counts[name]), listed[0])


def _start(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else 0


def _page(address: str, shown: str, start: int) -> str:
    return f"{address}?{urlencode({'show': shown, 'from': start})}"


def _headings_of(file: Import) -> dict[str, str]:
    """Of each field, how the file calls its column."""
    assert file.choice is not None
    names = headings(file.contents.sheets[file.choice.sheet], file.choice.heading_row)
    return {field: name for field, name in zip(file.choice.fields, names, strict=True) if field is not None}


def _told(finding: Finding, visit: Visit) -> dict[str, Any]:
    reasons = [
        reason._replace(message=translate(reason.message, visit.language)) for reason in finding.reasons
    ]
    before, after = _exact(finding.before), _exact(finding.after)
    return {"row": finding.row, "code": finding.code, "reasons": reasons, "before": before, "after": after}


def _exact(values: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers are kept as text, so that none of their digits is lost."""
    return {name: Decimal(value) if name in _NUMBERS else value for name, value in values.items()}


def import_routes(
    desk: Desk, files: ImportFiles, runs: ImportRuns, projects: Projects, inventory: Units
) -> list[Route]:
    pages, exports = ImportPages(files, runs, projects), ExportPages(inventory)
    project = f"{PREFIX}/projects/{{slug}}"
    own = f"{project}/import/{{id}}"
    sell, see = Permission.SELL, Permission.SEE_UNITS
    return [
        desk.page(f"{project}/import", sell, GET=pages.start, POST=pages.upload, limit=_FORM_AT_MOST),
        desk.page(own, sell, GET=pages.show),
        desk.page(f"{own}/check", sell, POST=pages.check),
        desk.page(f"{own}/commit", sell, POST=pages.bring_in),
        desk.page(f"{project}/export.csv", see, GET=exports.csv),
        desk.page(f"{project}/export.xlsx", see, GET=exports.xlsx),
    ]

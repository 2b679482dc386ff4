"""PUT, PATCH and GET of one unit, and the list of a project's units."""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

from msgspec import UNSET, Meta, UnsetType
from pydantic import StringConstraints
from starlette.responses import Response

from holdfast.domain import errors
from holdfast.domain.audit import Author
from holdfast.domain.decision import UNCONDITIONAL
from holdfast.domain.errors import DomainError, Fault, InvalidInput
from holdfast.domain.permissions import Permission
from holdfast.domain.status import Status
from holdfast.domain.unit import CODE_LENGTH, UnitFields, code_fault
from holdfast.operations import units as operations
from holdfast.operations.write_path import Outcome, WriteResult
from holdfast.web import json
from holdfast.web.api import models, unit_bodies
from holdfast.web.api.bodies import Body
from holdfast.web.api.parameters import FloorFilter, Limit, TextCursor, UnitStatusFilter, flag, time_parameter
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import key_guard
from holdfast.web.errors import TooManyItems
from holdfast.web.pagination import TEXT_CURSOR
from holdfast.web.problems import problem_document
from holdfast.web.request import JSON, Request

PREFIX = "/v1/integration"
UNIT_PATH = f"{PREFIX}/projects/{{slug}}/units/{{code}}"
_WRITE_ERRORS = (
    errors.PreconditionFailed,
    errors.StatusLocked,
    errors.TermsLocked,
    errors.TransitionNotAllowed,
)

routes = ApiRoutes(PREFIX, "Units", key_guard(Permission.INTEGRATE))


@routes.get(
    "/projects/{slug}/units/{code}",
    summary="Read a unit",
    headers=("If-None-Match",),
    responses={200: models.UnitDocument, 304: None},
    errors=(errors.UnknownUnit,),
)
async def get_unit(request: Request, slug: str, code: str) -> Response:
    """The `ETag` names this revision. Send it as `If-Match` with a change, or as `If-None-Match`: the
    response is then 304 while nothing has changed."""
    unit, project = await request.services.units.find(slug, code)
    return models.not_modified(request, unit, project) or json.JsonResponse(
        models.unit_document(unit, project), 200, (models.etag_header(unit, project),)
    )


@routes.put(
    "/projects/{slug}/units/{code}",
    summary="Create or replace a unit",
    body=unit_bodies.UnitBody(unit_bodies.UnitReplacement),
    headers=("If-Match", "If-None-Match"),
    responses={200: models.UnitDocument, 201: models.UnitDocument},
    errors=_WRITE_ERRORS,
)
async def put_unit(
    request: Request, slug: str, code: str, body: unit_bodies.UnitValues | unit_bodies.PlainUnit
) -> Response:
    """Clears optional fields that are left out, including `images` and `files`; `status` stays as it is. A
    new unit without `status` is `available`. Repeating a call stores nothing new.

    - `status` of a unit that is held, reserved or sold is rejected: 409 `status-locked`.
    - While a buyer is mid-booking (the unit is held or reserved), price, deposit and VAT cannot change: 409
      `terms-locked`. Stored values may be sent again.
    - A unit as it was read can be sent back whole, without its `status`; fields that only the server sets are
      ignored."""
    units = request.services.units
    project_id = await units.project_id(slug)
    body.check_claims(project_id, code)
    command = operations.ReplaceUnit(
        (project_id, code), body.replacement(), body.status, request.precondition, request.author
    )
    return _written_response(await units.write(command))


@routes.patch(
    "/projects/{slug}/units/{code}",
    summary="Change some fields of a unit",
    body=unit_bodies.UnitBody(unit_bodies.UnitPatch),
    headers=("If-Match", "If-None-Match"),
    responses={200: models.UnitDocument},
    errors=(*_WRITE_ERRORS, errors.UnknownUnit),
)
async def patch_unit(request: Request, slug: str, code: str, body: unit_bodies.UnitValues) -> Response:
    """Changes only the fields that are sent; `null` clears an optional one. `{}` is valid and changes
    nothing.

    `status`, price, deposit and VAT are rejected in the same cases as with PUT. A rejected PATCH changes no
    field."""
    units = request.services.units
    project_id = await units.project_id(slug)
    body.check_claims(project_id, code)
    command = operations.PatchUnit(
        (project_id, code), body.fields, body.status, request.precondition, request.author
    )
    return _written_response(await units.write(command))


@routes.get("/projects/{slug}/units", summary="List the units of a project")
async def list_units(
    request: Request,
    slug: str,
    *,
    status: UnitStatusFilter,
    updated_since: Annotated[
        datetime | None,
        time_parameter("Only units that changed at this time or later. UTC without an offset."),
    ],
    floor: FloorFilter,
    cursor: TextCursor,
    limit: Limit,
) -> models.UnitListDocument:
    """Sorted by code. Pages are stable while units change: follow `nextCursor` until it is null. With
    `updatedSince`, the list has only the units that have changed since then."""
    rows, project = await request.services.units.page(slug, cursor, limit, status, updated_since, floor=floor)
    document = partial(models.unit_document, project=project)
    return models.page_document(
        models.UnitListDocument, rows, limit, document, lambda unit: TEXT_CURSOR.encode(unit.code)
    )


def _written_response(written: WriteResult) -> Response:
    unit, project = written.unit, written.project
    return json.JsonResponse(
        models.unit_document(unit, project),
        201 if written.created else 200,
        (models.etag_header(unit, project),),
    )


# Bulk PUT: many units in one request, each standing on its own.
#
# The body is read and checked for syntax whole, but its units are never in memory all at once: only
# where each one starts and ends is kept, and they are parsed again, a transaction's worth at a time.

NDJSON = "application/x-ndjson"
BULK_BODY_LIMIT = 32 * 1024**2
BULK_MEMORY_LIMIT = 128 * 1024**2
# Other requests have their turn after so many characters.
CHARACTERS_A_TURN = 64 * 1024
# The answer to a unit may be a hundred times as long as the unit.
MAX_ITEMS = 200_000


class _Item(NamedTuple):
    code: str | None
    """None where no text stood in its place."""
    command: operations.ReplaceUnit | DomainError


class _SentUnits:  # a body: counted for as long as it lives, and emptied when it is stored
    text: str
    positions: array[int]


_body_sizes: WeakKeyDictionary[_SentUnits, int] = WeakKeyDictionary()  # How much of each has come.


class BulkUnit(unit_bodies.UnitReplacement):
    """The body of a PUT, and the code of its unit."""

    example: ClassVar[Any] = {"code": "A-0304", **unit_bodies.UnitReplacement.example}

    code: Annotated[str, StringConstraints(min_length=CODE_LENGTH[0], max_length=CODE_LENGTH[1])]


class BulkBody(Body):
    """Read whole and checked for syntax first; the handler gets where each unit stands."""

    is_required = True
    media_types = (JSON, NDJSON)
    model = BulkUnit

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": super().json_schema(), "maxItems": MAX_ITEMS}

    def example(self) -> Any:
        return [super().example()]

    async def read(self, request: Request, path: Sequence[Any], faults: list[Fault]) -> _SentUnits:
        media_type = request.require_media_type(self.media_types)
        sent = _SentUnits()
        sent.text = json.decode_body(await request.read_body(self.limit, partial(_reserve, sent)))
        request.whole_body = b""  # The request lives until the client has read the response.
        sent.positions = await _positions(sent.text, media_type)
        return sent


class BulkCounts(models.Document):
    created: int
    replaced: int
    unchanged: int
    refused: int


Problem = Annotated[Any, Meta(extra_json_schema={"$ref": "#/components/schemas/Problem"})]


class BulkUnitResult(models.Document):
    code: Annotated[str | None, "Null where the item has no code that is text."]
    outcome: Literal["created", "replaced", "unchanged", "refused"]
    problem: Problem | UnsetType = UNSET


class BulkResultDocument(models.Document):
    """What became of each unit, in the order sent."""

    counts: BulkCounts
    results: list[BulkUnitResult]
    missing: Annotated[
        list[str] | UnsetType,
        "With `reconcile`: the codes of the project that the body did not name.",
    ] = UNSET


@routes.put(
    "/projects/{slug}/units",
    summary="Create or replace many units",
    body=BulkBody(BULK_BODY_LIMIT),
    responses={200: BulkResultDocument},
)
async def put_units(
    request: Request,
    slug: str,
    body: _SentUnits,
    *,
    dry_run: Annotated[bool, flag("Decide everything and store nothing.")],
    reconcile: Annotated[bool, flag("Add `missing` to the report.")],
) -> Response:
    """Takes a JSON array, or one unit per line as `application/x-ndjson`, each a body of PUT with its `code`;
    at most 200 000. A syntax error is 400 and stores nothing. Otherwise each unit is stored or refused on
    its own, in transactions of at most 1 000. If a code occurs twice, the second is refused."""
    units = request.services.units
    project_id = await units.project_id(slug)
    run = _BulkRun(units, request.author, slug, project_id, store=not dry_run)
    try:
        await run.write(body)
    finally:
        _body_sizes.pop(body, None)
        body.text = ""  # A traceback may refer to the body until garbage is collected.
    missing = await units.missing_codes(slug, run.named) if reconcile else None
    return json.JsonPartsResponse(run.document(missing))


class _BulkRun:
    def __init__(
        self, units: operations.Units, author: Author, slug: str, project_id: UUID, *, store: bool
    ) -> None:
        self._units = units
        self._author = author
        self._request_id = author.request_id or ""
        self._slug = slug
        self._project_id = project_id
        self._store = store
        self._counts: Counter[str] = Counter()
        self._results = bytearray()
        self.named: set[str] = set()
        """Every valid code of the body, whatever became of its unit."""

    async def write(self, sent: _SentUnits) -> None:
        await self._units.write_all(self._batches(sent), self._record, store=self._store)

    def document(self, missing: list[str] | None) -> list[bytes | bytearray]:
        """In parts: the results may be many megabytes, and are not copied once more."""
        counts = {outcome: self._counts[outcome] for outcome in operations.OUTCOMES}
        tail = b"" if missing is None else b',"missing":' + json.encode(missing)
        return [b'{"counts":' + json.encode(counts) + b',"results":[', self._results, b"]" + tail + b"}"]

    async def _batches(self, sent: _SentUnits) -> AsyncIterator[list[_Item]]:
        items, read, positions = [], 0, sent.positions
        for start, end, names in zip(positions[::3], positions[1::3], positions[2::3], strict=True):
            items.append(self._item(sent.text[start:end], names))
            read += end - start
            if read >= CHARACTERS_A_TURN:
                read = 0
                await asyncio.sleep(0)
            if len(items) == operations.BULK_TRANSACTION_SIZE:
                yield items
                items = []
        if items:
            yield items

    def _item(self, text: str, names: int) -> _Item:
        unit = unit_bodies.read_plain_unit(text, names)
        if unit is None or unit.code is None or code_fault(unit.code) or unit.code in self.named:
            return self._strict_item(text)
        self.named.add(unit.code)
        return _Item(unit.code, self._replacement(unit.code, unit.fields, unit.status))

    def _strict_item(self, text: str) -> _Item:
        code = None
        try:
            value = json.parse_json(text)
            code = value.get("code") if type(value) is dict else None
            command: operations.ReplaceUnit | DomainError = self._command(value, code)
        except DomainError as error:
            command = error
        shown = code.encode(errors="backslashreplace").decode() if isinstance(code, str) else None
        return _Item(shown, command)

    def _command(self, value: Any, code: Any) -> operations.ReplaceUnit:
        faults = _code_faults(value, code) or self._named_before(code)
        body = unit_bodies.check_unit(unit_bodies.UnitReplacement, value, self._slug, code)
        if isinstance(body, list):
            raise InvalidInput(unit_bodies.with_status_fault(faults + body, unit_bodies.sent_status(value)))
        faults += body.false_claims(self._project_id, code)
        if faults:
            raise InvalidInput(unit_bodies.with_status_fault(faults, body.status))
        return self._replacement(code, body.replacement(), body.status)

    def _replacement(self, code: str, fields: UnitFields, status: Status | None) -> operations.ReplaceUnit:
        return operations.ReplaceUnit((self._project_id, code), fields, status, UNCONDITIONAL, self._author)

    def _named_before(self, code: str | None) -> list[Fault]:
        if code in self.named:
            return [Fault("/code", "This code was given earlier in the same request; this one is refused.")]
        if code is not None:
            self.named.add(code)
        return []

    async def _record(self, items: Sequence[_Item], outcomes: list[Outcome]) -> None:
        results = []
        for item, outcome in zip(items, outcomes, strict=True):
            result: dict[str, Any] = {"code": item.code, "outcome": operations.outcome_name(outcome)}
            if isinstance(outcome, DomainError):
                result["problem"] = problem_document(outcome, self._request_id)
            results.append(result)
        self._counts.update(result["outcome"] for result in results)
        if self._results:
            self._results += b","
        # Without the brackets: it is one array with those before and after it.
        self._results += json.encode(results)[1:-1]


def _reserve(sent: _SentUnits, size: int, announced: int) -> None:
    others = sum(_body_sizes.values()) - _body_sizes.get(sent, 0)
    if others + max(size, announced) > BULK_MEMORY_LIMIT:
        raise errors.Overloaded("Too many large bodies are being stored, so this one was not.")
    _body_sizes[sent] = size  # What is announced may never come, and must not keep others out.


async def _positions(text: str, media_type: str) -> array[int]:
    """Start, end and names of every item, three numbers each."""
    positions = array("q")
    read_from = 0
    for item in json.line_items(text) if media_type == NDJSON else json.array_items(text):
        if len(positions) == 3 * MAX_ITEMS:
            raise TooManyItems(MAX_ITEMS)
        positions.extend(item)
        if item.end - read_from >= CHARACTERS_A_TURN:
            read_from = item.end
            await asyncio.sleep(0)
    return positions


def _code_faults(value: Any, code: Any) -> list[Fault]:
    if type(value) is not dict:
        return []
    if not isinstance(code, str):
        message = "This must be text." if "code" in value else "This field is required."
        return [Fault("/code", message)]
    fault = code_fault(code, "/code")
    return [] if fault is None else [fault]

"""The layout of a project: the building, floor and position of its units."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, ClassVar, NamedTuple, cast

from msgspec import Meta
from pydantic import AfterValidator, Field, StringConstraints
from starlette.responses import Response

from holdfast.domain.errors import Fault, UnknownProject, raise_faults
from holdfast.domain.layout import FLOORS, POSITIONS, Position, guess_position
from holdfast.domain.permissions import Permission
from holdfast.operations.layouts import run_in_thread
from holdfast.operations.projects import PlacedUnit
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.bodies import Body, BodyModel, validated
from holdfast.web.api.models import Document
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import check_project_access
from holdfast.web.fields import PRINTABLE_PATTERN, Bounds, Code, check_printable
from holdfast.web.json import JsonPartsResponse, encode, read_json
from holdfast.web.request import Request

# Reading stops here: half a million faults, which fit into a body, take seconds and hundreds of megabytes.
FAULTS_AT_MOST = 10_000

_FLOORS, _POSITIONS = (Bounds(Decimal(least), Decimal(most), 0) for least, most in (FLOORS, POSITIONS))
_BUILDING = "Printable text with no space at either end. Null: not known."
_FLOOR = "0 is the ground floor. Null: not known."
_POSITION = "Counted from 1 on each floor. Null: not known."

Floor = Annotated[Decimal, _FLOORS]
PositionNumber = Annotated[Decimal, _POSITIONS]
Building = Annotated[
    str,
    StringConstraints(min_length=1, max_length=50),
    AfterValidator(check_printable),
    Field(json_schema_extra={"pattern": PRINTABLE_PATTERN}),
]

routes = ApiRoutes(PREFIX, "Settings")


class PlaceReplacement(BodyModel):
    code: Code
    building: Building | None = Field(description=_BUILDING)
    floor: Floor | None = Field(description=_FLOOR)
    position: PositionNumber | None = Field(description=_POSITION)
    guessed: bool = Field(
        False,
        description="A guess that is sent back unchanged stays a guess; changed, it is a choice.",
    )


class LayoutReplacement(BodyModel):
    """A layout as it is read can be sent back: guesses that are not changed stay guesses."""

    example: ClassVar[Any] = {"units": [{"code": "A-0304", "building": "A", "floor": 3, "position": 4}]}

    units: list[PlaceReplacement] = Field(
        description="The places that you choose. Units that are left out stand where their code says."
    )
    project_slug: str = Field(  # type: ignore[assignment]
        None,
        description="May be sent back; must be the addressed project's.",
    )


class PlaceDocument(Document):
    code: str
    building: Annotated[str | None, Meta(description=_BUILDING)]
    floor: Annotated[int | None, Meta(description=_FLOOR)]
    position: Annotated[int | None, Meta(description=_POSITION)]
    guessed: Annotated[bool, Meta(description="Whether the place comes from the code alone.")]


class LayoutDocument(Document):
    project_slug: str
    units: Annotated[list[PlaceDocument], Meta(description="Building by building, from the lowest floor up.")]


class ParsedLayout(NamedTuple):
    places: list[tuple[str | None, Position | None]]
    """In the order sent, so that a fault can point at its place. The code is None where none can be told;
    the place is, where it is the guess."""
    faults: list[Fault]


class LayoutBody(Body):
    """Its faults are raised by the handler, together with codes that the project does not have."""

    is_required = True
    model = LayoutReplacement

    async def read(self, request: Request, path: Sequence[Any], faults: list[Fault]) -> ParsedLayout:
        sent = await _read_layout(await read_json(request, self.limit), path[0])
        faults += sent.faults
        if any(fault.pointer.startswith("/path/") for fault in faults):
            return sent
        sent = sent._replace(faults=faults[:])
        faults.clear()
        return sent


@routes.get(
    "/projects/{slug}/layout",
    summary="Read the layout of a project",
    permission=Permission.SEE_UNITS,
    responses={200: LayoutDocument},
    errors=(UnknownProject,),
)
async def get_layout(request: Request, slug: str) -> Response:
    """The place of every unit. Where none was chosen, it is guessed from the code."""
    check_project_access(request, slug)
    return await _layout_response(slug, await request.services.projects.layout(slug))


@routes.put(
    "/projects/{slug}/layout",
    summary="Replace the layout of a project",
    permission=Permission.SELL,
    body=LayoutBody(),
    responses={200: LayoutDocument},
    errors=(UnknownProject,),
)
async def put_layout(request: Request, slug: str, sent: ParsedLayout) -> Response:
    """Replaces the whole layout. A layout as it was read can be sent back: guesses stay guesses, unless
    their place was changed. Every code must be one of the project's, and stand once.

    A body has 1 MiB at most, which is some 12 000 units: of a larger project, send those whose place you
    chose, and leave out the others."""
    try:
        check_project_access(request, slug)
        placed = await request.services.projects.arrange(slug, sent.places, request.author, sent.faults)
    except UnknownProject:
        raise_faults(sent.faults)
        raise
    return await _layout_response(slug, placed)


async def _layout_response(slug: str, placed: list[PlacedUnit]) -> Response:
    return JsonPartsResponse([await run_in_thread(len(placed), _encoded, slug, placed)])


def _encoded(slug: str, placed: list[PlacedUnit]) -> bytes:
    return encode(layout_document(slug, placed))


def layout_document(slug: str, placed: list[PlacedUnit]) -> LayoutDocument:
    return LayoutDocument(
        slug, [PlaceDocument(code, *place, is_guessed) for code, place, is_guessed in placed]
    )


async def _read_layout(body: Any, slug: str) -> ParsedLayout:
    """Read a layout with every fault that it has, but for codes that the project does not have."""
    units = body.get("units") if type(body) is dict else None
    places = units if type(units) is list else []
    return await run_in_thread(len(places), _read, body, places, slug)


def _read(body: Any, places: list[Any], slug: str) -> ParsedLayout:
    # The places are looked at one by one, so that one that is wrong does not hide the others.
    rest = {**body, "units": []} if places else body
    sent = ParsedLayout([], _faults_outside_units(rest, slug))
    seen: set[str] = set()
    for value in places:
        if len(sent.faults) > FAULTS_AT_MOST:
            break
        _read_place(value, sent, seen)
    return sent


def _faults_outside_units(rest: Any, slug: str) -> list[Fault]:
    found = validated(LayoutReplacement, rest)
    faults = found if isinstance(found, list) else []
    claimed = rest.get("projectSlug") if type(rest) is dict else None
    if isinstance(claimed, str) and claimed != slug:
        faults.append(Fault("/projectSlug", "This is not the slug of the addressed project."))
    return faults


def _read_place(value: Any, sent: ParsedLayout, seen: set[str]) -> None:
    pointer = f"/units/{len(sent.places)}"
    found = (
        validated(PlaceReplacement, value)
        if type(value) is dict
        else [Fault("", "This must be an object.")]
    )  # fmt: skip
    if isinstance(found, list):
        code = _valid_code(value, found)
        sent.faults.extend(Fault(pointer + fault.pointer, fault.message) for fault in found)
    else:
        code = found.code
    if code in seen:
        sent.faults.append(Fault(f"{pointer}/code", "This code stands twice."))
    if code is not None:
        seen.add(code)
    sent.places.append((code, None if isinstance(found, list) else _chosen(found)))


def _valid_code(value: Any, faults: list[Fault]) -> str | None:
    """Return the code of a place that has other faults."""
    if any(fault.pointer in ("", "/code") for fault in faults):
        return None
    code: str = value["code"]
    return code


def _chosen(unit: PlaceReplacement) -> Position | None:
    """Return None for a guess. One that comes back changed is a choice, whatever it is marked as."""
    place = Position(unit.building, cast("int | None", unit.floor), cast("int | None", unit.position))
    return None if unit.guessed and place == guess_position(unit.code) else place

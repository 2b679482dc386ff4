"""The layout of a project: the building, floor and position of its units."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, ClassVar, NamedTuple, cast

from pydantic import AfterValidator, Field, StringConstraints
from starlette.responses import Response

from holdfast.domain.errors import Fault, UnknownProject, raise_faults
from holdfast.domain.layout import FLOORS, POSITIONS, PlacedUnit, Placement
from holdfast.domain.permissions import Permission
from holdfast.operations.layouts import run_in_thread
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.bodies import Body, BodyModel, validated
from holdfast.web.api.models import Document
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import key_guard
from holdfast.web.fields import PRINTABLE_PATTERN, Bounds, Code, check_printable
from holdfast.web.json import JsonPartsResponse, encode, read_json
from holdfast.web.request import Request

# Reading stops here: half a million faults, which fit into a body, take seconds and hundreds of megabytes.
MAX_FAULTS = 10_000

_BUILDING = "Printable text with no space at either end. Null: not known."
_FLOOR = "0 is the ground floor. Null: not known."
_POSITION = "Counted from 1 on each floor. Null: not known."

Floor = Annotated[Decimal, Bounds(*map(Decimal, FLOORS), 0)]
PositionNumber = Annotated[Decimal, Bounds(*map(Decimal, POSITIONS), 0)]
Building = Annotated[
    str,
    StringConstraints(min_length=1, max_length=50),
    AfterValidator(check_printable),
    Field(json_schema_extra={"pattern": PRINTABLE_PATTERN}),
]

routes = ApiRoutes(PREFIX, "Settings", key_guard(Permission.SEE_UNITS))


class PlaceReplacement(BodyModel):
    code: Code
    building: Building | None = Field(description=_BUILDING)
    floor: Floor | None = Field(description=_FLOOR)
    position: PositionNumber | None = Field(description=_POSITION)
    guessed: bool = Field(
        False, description="A guess that is sent back unchanged stays a guess; changed, it is a choice."
    )


class LayoutReplacement(BodyModel):
    """A layout as it is read can be sent back: guesses that are not changed stay guesses."""

    example: ClassVar[Any] = {"units": [{"code": "A-0304", "building": "A", "floor": 3, "position": 4}]}

    units: list[PlaceReplacement] = Field(
        description="The places that you choose. Units that are left out stand where their code says."
    )
    project_slug: str = Field(None, description="May be sent back; must be the addressed project's.")  # type: ignore[assignment]


class PlaceDocument(Document):
    code: str
    building: Annotated[str | None, _BUILDING]
    floor: Annotated[int | None, _FLOOR]
    position: Annotated[int | None, _POSITION]
    guessed: Annotated[bool, "Whether the place comes from the code alone."]


class LayoutDocument(Document):
    project_slug: str
    units: Annotated[list[PlaceDocument], "Building by building, from the lowest floor up."]


class ParsedLayout(NamedTuple):
    places: list[tuple[str | None, Placement | None]]
    """In the order sent, so that a fault can point at its place. None: not readable."""
    guessed: set[str]
    """The codes whose place is sent as guessed."""
    faults: list[Fault]


class LayoutBody(Body):
    """Its faults are raised by the handler, together with codes that the project does not have."""

    is_required = True
    model = LayoutReplacement

    async def read(self, request: Request, path: Sequence[Any], faults: list[Fault]) -> ParsedLayout:
        (slug,) = path
        body = await read_json(request, self.limit)
        units = body.get("units") if type(body) is dict else None
        places = units if type(units) is list else []
        layout = await run_in_thread(len(places), _parse_layout, body, places, slug)
        faults += layout.faults
        has_path_faults = any(fault.pointer.startswith("/path/") for fault in faults)
        if has_path_faults or not request.key.may_use(slug):
            return layout
        layout = layout._replace(faults=faults[:])
        faults.clear()
        return layout


@routes.get(
    "/projects/{slug}/layout", summary="Read the layout of a project", responses={200: LayoutDocument}
)
async def get_layout(request: Request, slug: str) -> Response:
    """The position of every unit. Without one set by staff, it is guessed from the code."""
    return await _layout_response(slug, await request.services.projects.layout(slug))


@routes.put(
    "/projects/{slug}/layout",
    summary="Replace the layout of a project",
    permission=Permission.SELL,
    body=LayoutBody(),
    responses={200: LayoutDocument},
)
async def put_layout(request: Request, slug: str, layout: ParsedLayout) -> Response:
    """Replaces the whole layout. A layout can be sent back as it was read: guesses stay guesses, unless their
    position was changed. Every code must be one of the project's, and may occur once.

    The limit of 1 MiB is enough for some 12 000 units. For a larger project, send only the units whose
    position you set."""
    try:
        placed = await request.services.projects.arrange(
            slug, layout.places, request.author, layout.faults, layout.guessed
        )
    except UnknownProject:
        raise_faults(layout.faults)
        raise
    return await _layout_response(slug, placed)


async def _layout_response(slug: str, placed: list[PlacedUnit]) -> Response:
    return JsonPartsResponse([await run_in_thread(len(placed), encode_layout, slug, placed)])


def encode_layout(slug: str, placed: list[PlacedUnit]) -> bytes:
    places = [PlaceDocument(code, *position, is_guessed) for code, position, is_guessed in placed]
    return encode(LayoutDocument(slug, places))


def _parse_layout(body: Any, places: list[Any], slug: str) -> ParsedLayout:
    """Parse a layout with every fault that it has, but for codes that the project does not have."""
    # The places are checked one by one, so that one that is wrong does not hide the others.
    rest = {**body, "units": []} if places else body
    checked = validated(LayoutReplacement, rest)
    layout = ParsedLayout([], set(), checked if isinstance(checked, list) else [])
    claimed = rest.get("projectSlug") if type(rest) is dict else None
    if isinstance(claimed, str) and claimed != slug:
        layout.faults.append(Fault("/projectSlug", "This is not the slug of the addressed project."))
    seen: set[str] = set()
    for value in places:
        if len(layout.faults) > MAX_FAULTS:
            break
        _parse_place(value, layout, seen)
    return layout


def _parse_place(value: Any, layout: ParsedLayout, seen: set[str]) -> None:
    pointer, code, position = f"/units/{len(layout.places)}", None, None
    is_object = type(value) is dict
    place = validated(PlaceReplacement, value) if is_object else [Fault("", "This must be an object.")]
    if not isinstance(place, list):
        code, floor = place.code, cast("int | None", place.floor)
        position = Placement(place.building, floor, cast("int | None", place.position))
        if place.guessed:
            layout.guessed.add(code)
    else:
        if not any(fault.pointer in ("", "/code") for fault in place):
            code = value["code"]
        layout.faults.extend(Fault(pointer + fault.pointer, fault.message) for fault in place)
    if code in seen:
        layout.faults.append(Fault(f"{pointer}/code", "This code is given twice."))
    if code is not None:
        seen.add(code)
    layout.places.append((code, position))

"""A project's layout, as it is sent and as it is answered."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.domain.layout import Place, guess
from holdfast.domain.refusals import Fault
from holdfast.operations.long_work import worked_out
from holdfast.operations.projects import Placed
from holdfast.web.answer import JsonAnswer
from holdfast.web.backoffice.bodies import LAYOUT, LAYOUT_NAMES, PLACE, PLACE_NAMES
from holdfast.web.backoffice.documents import layout_document
from holdfast.web.checking import checked
from holdfast.web.wire import encode

# A fault takes more room than what is wrong: who has so many learns enough from these.
FAULTS_AT_MOST = 10_000


class SentLayout(NamedTuple):
    places: list[tuple[str | None, Place | None]]
    """In the order sent, so that a fault can point at its place. The code is None where none can be told;
    the place is, where it is the guess."""
    faults: list[Fault]


async def read_layout(body: Any, slug: str) -> SentLayout:
    """With every fault that it has, but for codes that the project does not have."""
    units = body.get("units") if type(body) is dict else None
    places = units if type(units) is list else []
    return await worked_out(len(places), _read, body, places, slug)


async def layout_answer(slug: str, placed: list[Placed]) -> JsonAnswer:
    return JsonAnswer.of_parts([await worked_out(len(placed), _encoded, slug, placed)])


def _encoded(slug: str, placed: list[Placed]) -> bytes:
    return encode(layout_document(slug, placed))


def _read(body: Any, places: list[Any], slug: str) -> SentLayout:
    # The places are looked at one by one, so that one that is wrong does not hide the others.
    rest = {**body, "units": []} if places else body
    sent = SentLayout([], _faults_of_the_rest(rest, slug))
    seen: set[str] = set()
    for value in places:
        if len(sent.faults) > FAULTS_AT_MOST:
            break
        _read_place(value, sent, seen)
    return sent


def _faults_of_the_rest(rest: Any, slug: str) -> list[Fault]:
    found = checked(LAYOUT, rest, LAYOUT_NAMES)
    faults = found if isinstance(found, list) else []
    claimed = rest.get("projectSlug") if type(rest) is dict else None
    if isinstance(claimed, str) and claimed != slug:
        faults.append(Fault("/projectSlug", "This is not the slug of the addressed project."))
    return faults


def _read_place(value: Any, sent: SentLayout, seen: set[str]) -> None:
    pointer = f"/units/{len(sent.places)}"
    found = (
        checked(PLACE, value, PLACE_NAMES) if type(value) is dict else [Fault("", "This must be an object.")]
    )
    code = found["code"] if isinstance(found, dict) else _sound_code(value, found)
    if isinstance(found, list):
        sent.faults.extend(Fault(pointer + fault.pointer, fault.message) for fault in found)
    if code in seen:
        sent.faults.append(Fault(f"{pointer}/code", "This code stands twice."))
    if code is not None:
        seen.add(code)
    sent.places.append((code, _chosen(found) if isinstance(found, dict) else None))


def _sound_code(value: Any, faults: list[Fault]) -> str | None:
    """Of a place that has other faults."""
    if any(fault.pointer in ("", "/code") for fault in faults):
        return None
    code: str = value["code"]
    return code


def _chosen(unit: dict[str, Any]) -> Place | None:
    """What was read as a guess and comes back changed is a choice, whatever it is marked as."""
    place = Place(unit["building"], unit["floor"], unit["position"])
    return None if unit.get("guessed", False) and place == guess(unit["code"]) else place

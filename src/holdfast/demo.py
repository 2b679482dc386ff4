"""A believable project to try things on: Narjis Heights, two towers of twelve floors in Riyadh."""

import secrets
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from holdfast.domain.access import Scope
from holdfast.domain.audit import COMMAND
from holdfast.domain.permissions import Role
from holdfast.domain.precondition import Precondition
from holdfast.domain.refusals import PreconditionFailed, Refusal, UnknownStaff
from holdfast.domain.status import Status
from holdfast.domain.unit import UnitFields
from holdfast.operations.administering import add_project, issue_key, list_projects, revoke_keys_named
from holdfast.operations.inventory import Inventory, ReplaceUnit
from holdfast.operations.setup_links import SetupLinks
from holdfast.operations.staffing import Staffing
from holdfast.storage import installation
from holdfast.storage.database import Database

SLUG = "narjis-heights"
NAME = "Narjis Heights"
KEY_NAME = "holdfast serve --demo"
EMAIL = "demo@holdfast.example"
STAFF_NAME = "Demo"
PAGES = "/backoffice"

# What a visitor may paste first: a unit that is not there yet, so that nothing is overwritten.
EXAMPLE_PATH = f"/v1/integration/projects/{SLUG}/units/C-0101"
EXAMPLE_HOLD_PATH = f"/v1/storefront/projects/{SLUG}/units/C-0101/hold"
EXAMPLE_BODY = {"type": "3-bedroom apartment", "areaSqm": 148.6, "priceSar": 1_299_000, "bedrooms": 3}

FLOORS = 12
_PASSWORD_BYTES = 12
_TOP_FLOOR_PREMIUM = Decimal("0.22")
_PREMIUM_PER_FLOOR = Decimal("0.012")
_ROUNDED_TO = 5_000
_MEDIA = "https://example.com/narjis-heights"


class Plan(NamedTuple):
    """One kind of home; the same plan lies above itself on every floor."""

    type: str
    arabic: str
    area_sqm: Decimal
    bedrooms: int
    bathrooms: int
    price_per_sqm: int


STUDIO = Plan("Studio", "استوديو", Decimal("46.5"), 0, 1, 9_400)
ONE_BEDROOM = Plan("1-bedroom apartment", "شقة بغرفة نوم واحدة", Decimal("71.25"), 1, 1, 8_900)
TWO_BEDROOMS = Plan("2-bedroom apartment", "شقة بغرفتي نوم", Decimal("112.8"), 2, 2, 8_450)
THREE_BEDROOMS = Plan("3-bedroom apartment", "شقة بثلاث غرف نوم", Decimal("148.6"), 3, 3, 8_200)
FAMILY = Plan("4-bedroom apartment", "شقة عائلية بأربع غرف نوم", Decimal("189.4"), 4, 4, 8_050)
PENTHOUSE = Plan("Penthouse", "بنتهاوس", Decimal("312.75"), 4, 5, 10_900)

_TOWERS = {
    "A": (STUDIO, ONE_BEDROOM, TWO_BEDROOMS, THREE_BEDROOMS, TWO_BEDROOMS, FAMILY),
    "B": (ONE_BEDROOM, TWO_BEDROOMS, THREE_BEDROOMS, TWO_BEDROOMS, FAMILY),
}
_TOP_FLOOR = (PENTHOUSE, PENTHOUSE)
_VIEWS = (("the garden", "الحديقة"), ("King Salman Road", "طريق الملك سلمان"), ("the pool", "المسبح"))


class DemoUnit(NamedTuple):
    code: str
    fields: UnitFields
    status: Status


class DemoAccess(NamedTuple):
    key: str
    password: str
    """Of ``EMAIL``, who is an admin."""
    has_project: bool


def demo_units() -> Iterator[DemoUnit]:
    """The same units each time: 125 of them, the penthouses not yet on sale."""
    for tower, plans in _TOWERS.items():
        for floor in range(1, FLOORS + 1):
            for position, plan in enumerate(_TOP_FLOOR if floor == FLOORS else plans, start=1):
                code = f"{tower}-{floor:02}{position:02}"
                status = Status.UNAVAILABLE if plan is PENTHOUSE else Status.AVAILABLE
                yield DemoUnit(code, _fields(plan, tower, floor, position), status)


async def fill(database: Database) -> DemoAccess:
    """Fill a database that has no project yet; key and password are this start's, the last one's are void."""
    slugs = [project.slug for project in await list_projects(database)]
    if not slugs:
        await add_project(database, SLUG, NAME)
    if slugs in ([], [SLUG]):
        await _add_missing_units(database)
    await revoke_keys_named(database, KEY_NAME)
    issued = await issue_key(database, KEY_NAME, [Scope.INTEGRATION, Scope.BACKOFFICE])
    return DemoAccess(issued.text, await _new_password(database), not slugs or SLUG in slugs)


async def is_demo(database: Database) -> bool:
    async with database.reading() as connection:
        return await installation.is_demo(connection)


async def _new_password(database: Database) -> str:
    """For the demo's admin, who is made if need be, and whose sessions end."""
    staffing, password = Staffing(database), secrets.token_urlsafe(_PASSWORD_BYTES)
    try:
        person = await staffing.find_by_email(EMAIL)
    except UnknownStaff:
        await staffing.add(EMAIL, STAFF_NAME, Role.ADMIN, password, COMMAND)
        return password
    await staffing.change(person.id, {"role": Role.ADMIN, "disabled": False}, COMMAND)
    _, token = await staffing.reset(person.id, COMMAND)
    await SetupLinks(database).choose_password(token, password, None)
    return password


async def _add_missing_units(database: Database) -> None:
    """All of them, or what an earlier start was interrupted in; never those that a visitor has changed."""
    inventory = Inventory(database)
    project_id = await inventory.project_id(SLUG)
    absent = Precondition(none_match=frozenset("*"))
    commands = [
        ReplaceUnit((project_id, unit.code), unit.fields, unit.status, absent) for unit in demo_units()
    ]
    for outcome in await inventory.write_many(commands, store=True):
        if isinstance(outcome, Refusal) and not isinstance(outcome, PreconditionFailed):
            raise outcome


def _fields(plan: Plan, tower: str, floor: int, position: int) -> UnitFields:
    return UnitFields(
        type=plan.type,
        area_sqm=plan.area_sqm,
        price_sar=_price(plan, floor),
        vat_included=False,
        vat_rate=Decimal(15),
        deposit_percent=Decimal(5) if plan is PENTHOUSE else Decimal(10),
        bedrooms=plan.bedrooms,
        bathrooms=plan.bathrooms,
        delivery_year=2028 if tower == "A" else 2029,
        description=_description(plan, floor, position),
        images=_images(plan),
        files=({"url": f"{_MEDIA}/plans/{_file_name(plan)}.pdf", "name": f"Floor plan, {plan.type}"},),
    )


def _price(plan: Plan, floor: int) -> Decimal:
    premium = 1 + _PREMIUM_PER_FLOOR * (floor - 1) + (_TOP_FLOOR_PREMIUM if plan is PENTHOUSE else 0)
    exact = plan.area_sqm * plan.price_per_sqm * premium
    return Decimal(round(exact / _ROUNDED_TO) * _ROUNDED_TO)


def _description(plan: Plan, floor: int, position: int) -> str:
    view, arabic_view = _VIEWS[(floor + position) % len(_VIEWS)]
    return (
        f"{plan.type} of {plan.area_sqm} m² on floor {floor}, facing {view};"
        " fitted kitchen, one parking space.\n"
        f"{plan.arabic} بمساحة {plan.area_sqm} م² في الطابق {floor}، بإطلالة على {arabic_view}؛"
        " مطبخ مجهز وموقف سيارة."
    )


def _images(plan: Plan) -> tuple[str, ...]:
    return tuple(f"{_MEDIA}/{_file_name(plan)}/{view}.jpg" for view in ("living-room", "kitchen", "view"))


def _file_name(plan: Plan) -> str:
    return plan.type.lower().replace(" ", "-")

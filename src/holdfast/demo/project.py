"""A believable project to try things on: Narjis Heights, two towers of twelve floors in Riyadh."""

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from holdfast.domain.status import Status
from holdfast.domain.unit import Media, UnitFields

SLUG = "narjis-heights"
NAME = "Narjis Heights | مرتفعات النرجس"
PROJECT_PAGE = f"/p/{SLUG}"
DRAWINGS = "/static/demo"
ELEVATION = "elevation"
PICTURE = f"demo/{ELEVATION}.svg"

# What a visitor may paste first: a unit that is not there yet, so that nothing is overwritten.
EXAMPLE_PATH = f"/v1/integration/projects/{SLUG}/units/C-0101"
EXAMPLE_HOLD_PATH = f"/v1/storefront/projects/{SLUG}/units/C-0101/hold"
EXAMPLE_PRICE_PATH = f"/v1/integration/projects/{SLUG}/units/B-0703"
EXAMPLE_PRICE_BODY = {"priceSar": 1_355_000}
EXAMPLE_BODY = {"type": "3-bedroom apartment", "areaSqm": 148.6, "priceSar": 1_299_000, "bedrooms": 3}

FLOORS = 12
ADDRESS = "http://127.0.0.1:8000"
"""Of a server that was told nothing else."""

_TOP_FLOOR_PREMIUM = Decimal("0.22")
_PREMIUM_PER_FLOOR = Decimal("0.012")
_ROUNDED_TO = 5_000


class Home(NamedTuple):
    """One kind of home; the same plan lies above itself on every floor."""

    english: str
    arabic: str
    area_sqm: Decimal
    bedrooms: int
    bathrooms: int
    price_per_sqm: int
    drawing: str
    """The name of its plan."""

    @property
    def type(self) -> str:
        return f"{self.english} | {self.arabic}"


STUDIO = Home("Studio", "استوديو", Decimal("46.5"), 0, 1, 9_400, "studio")
ONE_BEDROOM = Home("1-bedroom apartment", "شقة بغرفة نوم واحدة", Decimal("71.25"), 1, 1, 8_900, "one-bedroom")
TWO_BEDROOMS = Home("2-bedroom apartment", "شقة بغرفتي نوم", Decimal("112.8"), 2, 2, 8_450, "two-bedroom")
THREE_BEDROOMS = Home(
    "3-bedroom apartment", "شقة بثلاث غرف نوم", Decimal("148.6"), 3, 3, 8_200, "three-bedroom"
)
FAMILY = Home(
    "4-bedroom apartment", "شقة عائلية بأربع غرف نوم", Decimal("189.4"), 4, 4, 8_050, "four-bedroom"
)
PENTHOUSE = Home("Penthouse", "بنتهاوس", Decimal("312.75"), 4, 5, 10_900, "penthouse")
HOMES = (STUDIO, ONE_BEDROOM, TWO_BEDROOMS, THREE_BEDROOMS, FAMILY, PENTHOUSE)

TOWERS = {
    "A": (STUDIO, ONE_BEDROOM, TWO_BEDROOMS, THREE_BEDROOMS, TWO_BEDROOMS, FAMILY),
    "B": (ONE_BEDROOM, TWO_BEDROOMS, THREE_BEDROOMS, TWO_BEDROOMS, FAMILY),
}
TOP_FLOOR = (PENTHOUSE, PENTHOUSE)
_VIEWS = (("the garden", "الحديقة"), ("King Salman Road", "طريق الملك سلمان"), ("the pool", "المسبح"))


class DemoUnit(NamedTuple):
    code: str
    fields: UnitFields
    status: Status


def demo_units(public_url: str = ADDRESS) -> Iterator[DemoUnit]:
    """The same units each time: 125 of them, the penthouses not yet on sale.

    ``public_url``: of the server, which has their drawings.
    """
    for tower, homes in TOWERS.items():
        for floor in range(1, FLOORS + 1):
            for position, home in enumerate(TOP_FLOOR if floor == FLOORS else homes, start=1):
                code = f"{tower}-{floor:02}{position:02}"
                status = Status.UNAVAILABLE if home is PENTHOUSE else Status.AVAILABLE
                yield DemoUnit(code, _fields(home, tower, floor, position, public_url), status)


def _fields(home: Home, tower: str, floor: int, position: int, public_url: str) -> UnitFields:
    plan = drawing(public_url, home.drawing, f"Floor plan, {home.english} | المخطط، {home.arabic}")
    street = drawing(public_url, ELEVATION, "The towers from the street | البرجان من الشارع")
    return UnitFields(
        type=home.type,
        area_sqm=home.area_sqm,
        price_sar=_price(home, floor),
        vat_included=False,
        vat_rate=Decimal(15),
        deposit_percent=Decimal(5) if home is PENTHOUSE else Decimal(10),
        bedrooms=home.bedrooms,
        bathrooms=home.bathrooms,
        delivery_year=2028 if tower == "A" else 2029,
        description=_description(home, floor, position),
        images=(plan, street),
        files=(plan,),
    )


def drawing(public_url: str, name: str, label: str) -> Media:
    return {"url": f"{public_url}{DRAWINGS}/{name}.svg", "name": label}


def _price(home: Home, floor: int) -> Decimal:
    premium = 1 + _PREMIUM_PER_FLOOR * (floor - 1) + (_TOP_FLOOR_PREMIUM if home is PENTHOUSE else 0)
    exact = home.area_sqm * home.price_per_sqm * premium
    return Decimal(round(exact / _ROUNDED_TO) * _ROUNDED_TO)


def _description(home: Home, floor: int, position: int) -> str:
    view, arabic_view = _VIEWS[(floor + position) % len(_VIEWS)]
    return (
        f"{home.english} of {home.area_sqm} m² on floor {floor}, facing {view};"
        " fitted kitchen, one parking space.\n"
        f"{home.arabic} بمساحة {home.area_sqm} م² في الطابق {floor}، بإطلالة على {arabic_view}؛"
        " مطبخ مجهز وموقف سيارة."
    )

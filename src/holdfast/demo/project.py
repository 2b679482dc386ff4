"""The demo project: Narjis Heights, two towers of twelve floors in Riyadh."""

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from holdfast.domain.seller import Seller
from holdfast.domain.status import Status
from holdfast.domain.unit import Media, UnitFields

SLUG = "narjis-heights"
NAME = "Narjis Heights | مرتفعات النرجس"
EMAIL = "demo@holdfast.example"
"""Of the visitor as staff."""
PROJECT_PATH = f"/p/{SLUG}"
BOARD_PATH = f"/backoffice/projects/{SLUG}"
DRAWINGS_PATH = "/static/demo"
PICTURE = "demo/elevation.svg"

# The first example creates a unit that neither exists yet nor is created by an example of the documents.
EXAMPLE_PATH = f"/v1/integration/projects/{SLUG}/units/C-0301"
EXAMPLE_HOLD_PATH = f"/v1/storefront/projects/{SLUG}/units/C-0301/hold"
EXAMPLE_PRICE_PATH = f"/v1/integration/projects/{SLUG}/units/B-0703"
EXAMPLE_PRICE_BODY = {"priceSar": 1_355_000}
EXAMPLE_BODY = {"type": "3-bedroom apartment", "areaSqm": 148.6, "priceSar": 1_299_000, "bedrooms": 3}

# Nothing of it is real.
SELLER = Seller(
    legal_name="Narjis Development Company | شركة النرجس للتطوير العقاري",
    commercial_registration="1010998877",
    vat_number="310099887700003",
    phone="+966 11 555 0100",
    whatsapp="+966505550100",
    email="sales@narjis.example",
    bank_name="Example Bank | بنك المثال",
    iban="SA0380000000608010167519",
    terms="The seller announces the handover of a unit to its buyer at least 60 days in advance.\n"
    "يُبلغ البائع المشتري بموعد تسليم وحدته قبل 60 يومًا على الأقل.",
)

FLOORS = 12
DEFAULT_URL = "http://127.0.0.1:8000"

_TOP_FLOOR_PREMIUM = Decimal("0.22")
_PREMIUM_PER_FLOOR = Decimal("0.012")
_ROUNDED_TO = 5_000


class UnitType(NamedTuple):
    """A kind of apartment; the same floor plan repeats on every floor."""

    english: str
    arabic: str
    area_sqm: Decimal
    bedrooms: int
    bathrooms: int
    price_per_sqm: int
    drawing: str


STUDIO = UnitType("Studio", "استوديو", Decimal("46.5"), 0, 1, 9_400, "studio")
ONE_BEDROOM = UnitType(
    "1-bedroom apartment", "شقة بغرفة نوم واحدة", Decimal("71.25"), 1, 1, 8_900, "one-bedroom"
)
TWO_BEDROOMS = UnitType("2-bedroom apartment", "شقة بغرفتي نوم", Decimal("112.8"), 2, 2, 8_450, "two-bedroom")
THREE_BEDROOMS = UnitType(
    "3-bedroom apartment", "شقة بثلاث غرف نوم", Decimal("148.6"), 3, 3, 8_200, "three-bedroom"
)
FAMILY = UnitType(
    "4-bedroom apartment", "شقة عائلية بأربع غرف نوم", Decimal("189.4"), 4, 4, 8_050, "four-bedroom"
)
PENTHOUSE = UnitType("Penthouse", "بنتهاوس", Decimal("312.75"), 4, 5, 10_900, "penthouse")

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


def demo_units(public_url: str = DEFAULT_URL) -> Iterator[DemoUnit]:
    """Yield the same 125 units each time, with drawings at ``public_url``; penthouses are not on sale yet."""
    for tower, unit_types in TOWERS.items():
        for floor in range(1, FLOORS + 1):
            for position, unit_type in enumerate(TOP_FLOOR if floor == FLOORS else unit_types, start=1):
                code = f"{tower}-{floor:02}{position:02}"
                status = Status.UNAVAILABLE if unit_type is PENTHOUSE else Status.AVAILABLE
                yield DemoUnit(code, _fields(unit_type, tower, floor, position, public_url), status)


def _fields(unit_type: UnitType, tower: str, floor: int, position: int, public_url: str) -> UnitFields:
    plan = _drawing(
        public_url, unit_type.drawing, f"Floor plan, {unit_type.english} | المخطط، {unit_type.arabic}"
    )
    street = _drawing(public_url, "elevation", "The towers from the street | البرجان من الشارع")
    premium = 1 + _PREMIUM_PER_FLOOR * (floor - 1) + (_TOP_FLOOR_PREMIUM if unit_type is PENTHOUSE else 0)
    price = unit_type.area_sqm * unit_type.price_per_sqm * premium
    return UnitFields(
        type=f"{unit_type.english} | {unit_type.arabic}",
        area_sqm=unit_type.area_sqm,
        price_sar=Decimal(round(price / _ROUNDED_TO) * _ROUNDED_TO),
        vat_included=False,
        vat_rate=Decimal(15),
        deposit_percent=Decimal(5) if unit_type is PENTHOUSE else Decimal(10),
        bedrooms=unit_type.bedrooms,
        bathrooms=unit_type.bathrooms,
        delivery_year=2028 if tower == "A" else 2029,
        floor=floor,
        description=_description(unit_type, floor, position),
        images=(plan, street),
        files=(plan,),
    )


def _drawing(public_url: str, name: str, label: str) -> Media:
    return {"url": f"{public_url}{DRAWINGS_PATH}/{name}.svg", "name": label}


def _description(unit_type: UnitType, floor: int, position: int) -> str:
    view, arabic_view = _VIEWS[(floor + position) % len(_VIEWS)]
    return (
        f"{unit_type.english} of {unit_type.area_sqm} m² on floor {floor}, facing {view};"
        " fitted kitchen, one parking space.\n"
        f"{unit_type.arabic} بمساحة {unit_type.area_sqm} م² في الطابق {floor}، بإطلالة على {arabic_view}؛"
        " مطبخ مجهز وموقف سيارة."
    )

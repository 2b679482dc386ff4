"""The seller of the demo project. Nothing of it is real."""

from pathlib import Path

from holdfast.demo.project import SLUG
from holdfast.domain.audit import COMMAND
from holdfast.domain.seller import NOBODY_NAMED, Seller
from holdfast.operations.projects import Projects
from holdfast.operations.sellers import Sellers
from holdfast.operations.units import Units
from holdfast.storage.database import Database

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


async def add_seller(database: Database, units: Units) -> None:
    """List the project and name its seller, unless that was done before."""
    sellers = Sellers(database, units)
    if await sellers.own(None) == NOBODY_NAMED:
        await Projects(database, units).settle(SLUG, {"listed": True}, COMMAND)
        logo = ("/p/logos/narjis.png", Path(__file__).with_name("logo.png").read_bytes())
        await sellers.settle(None, SELLER.set_fields | {"logo": logo}, COMMAND)

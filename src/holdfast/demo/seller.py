"""The seller of the demo project. Nothing of it is real."""

from pathlib import Path

from holdfast.domain.audit import COMMAND
from holdfast.domain.seller import NOBODY_NAMED, Seller, read_logo
from holdfast.operations.sellers import Sellers

_LOGO = read_logo(Path(__file__).with_name("logo.png").read_bytes())
assert _LOGO is not None
SELLER = Seller(
    legal_name="Narjis Development Company | شركة النرجس للتطوير العقاري",
    commercial_registration="1010998877",
    vat_number="310099887700003",
    phone="+966 11 555 0100",
    whatsapp="+966505550100",
    email="sales@narjis.example",
    bank_name="Example Bank | بنك المثال",
    iban="SA0380000000608010167519",
    terms="The handover of each unit is announced to its buyer at least 60 days ahead.\n"
    "يُبلَّغ المشتري بموعد تسليم وحدته قبل 60 يومًا على الأقل.",
    logo=_LOGO.name,
)


async def add_seller(sellers: Sellers) -> None:
    """Name the seller, unless a visitor has named one."""
    if await sellers.own(None) == NOBODY_NAMED:
        await sellers.replace(None, SELLER, _LOGO, COMMAND)

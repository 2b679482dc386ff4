"""What staff see of the payment of a deposit."""

from collections.abc import Iterator
from uuid import uuid4

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import Desk
from tests.support.client import Unit, integration_client
from tests.support.payment_system import Till
from tests.support.staff_client import Person
from tests.web.pages.backoffice.sales import Market, booking_page, unit_page

AUDIT = "/backoffice/audit"
SHOWN = '<p class="faint">Payment '


@pytest.fixture(scope="module")
def till(server: InProcessApp) -> Iterator[Till]:
    with integration_client(server.address, None) as public:
        yield Till(public)


@pytest.fixture(scope="module")
def market(till: Till, staff_http: httpx.Client) -> Market:
    return Market(till.http, Desk(staff_http))


def test_the_payment_stands_on_the_bookings_page_once_it_is_told(
    sales: Person, stored: Unit, market: Market, till: Till
) -> None:
    held, payment = market.signed(stored), f"pay_{uuid4().hex}<b>"
    assert SHOWN not in sales.see(booking_page(held))
    assert till.told(payment, held.read().json()) == "reserved"
    page = sales.see(booking_page(held))
    assert SHOWN in page
    assert payment.replace("<b>", "&lt;b&gt;") in page
    assert payment not in page


def test_the_payment_is_who_confirmed_the_deposit(
    sales: Person, admin: Person, stored: Unit, market: Market, till: Till
) -> None:
    held, payment = market.signed(stored), f"pay_{uuid4().hex}"
    till.told(payment, held.read().json())
    history = sales.see(unit_page(stored))
    assert f'Payment <bdi class="name">{payment}</bdi>' in history
    trail = admin.see(f"{AUDIT}?by=payment&project={stored.project.slug}")
    assert payment in trail
    assert held.reference in trail
    assert payment in admin.see(f"{AUDIT}?actor={payment}")

"""The pages of units and bookings, and the forms on them."""

from urllib.parse import quote

from tests.support.buying import Hold
from tests.support.client import Unit
from tests.support.staff_client import Person

BOOKINGS = "/backoffice/bookings"


def unit_page(unit: Unit) -> str:
    return f"/backoffice/projects/{unit.project.slug}/units/{quote(unit.code, safe='')}"


def booking_page(held: Hold) -> str:
    return f"{BOOKINGS}/{held.reference}"


def known(person: Person, unit: Unit) -> dict[str, str]:
    """What the forms of the unit's page send along."""
    page = person.see(unit_page(unit))
    return {"revision": page.split('name="revision" value="')[1].split('"')[0]}


def offered(page: str) -> set[str]:
    """Where the forms of a page go to, by the last part."""
    actions = [part.split('"')[0] for part in page.split('<form method="post" action="')[1:]]
    return {path.rpartition("/")[2] for path in actions if "/units/" in path or "/bookings/" in path}

"""Who asks for holds."""

from holdfast.domain.audit import ActorKind, Author
from holdfast.operations.bookings import Bookings, Held, Requester
from tests.support.inventory import SLUG

NORA, OMAR = Requester("192.0.2.1", "noras-cookie"), Requester("192.0.2.2", "omars-cookie")
KEYED = NORA._replace(idempotency_key="key-1")
STAFF = Author(ActorKind.STAFF, "staff@example.com", "request-1")


async def hold(
    selling: Bookings, requester: Requester = NORA, code: str = "A-1", token: str | None = None
) -> Held:
    return await selling.hold(SLUG, code, requester, token, "request-1")


async def cancel(selling: Bookings, held: Held) -> None:
    await selling.cancel_as_buyer(await selling.find(held.booking.reference), "request-2")

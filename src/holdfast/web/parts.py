"""What the routes need of the rest of the house."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.domain.periods import Periods
from holdfast.operations.accounts import Accounts
from holdfast.operations.announcing import Announcing
from holdfast.operations.auditing import Auditing
from holdfast.operations.boards import Boards
from holdfast.operations.buying import Buying
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.delivery_search import DeliverySearch
from holdfast.operations.feed import EventFeed
from holdfast.operations.figures import Figures
from holdfast.operations.health import Health
from holdfast.operations.importing.files import ImportFiles
from holdfast.operations.importing.runs import ImportRuns
from holdfast.operations.inventory import Inventory
from holdfast.operations.key_ring import KeyRing
from holdfast.operations.keys import Keys
from holdfast.operations.offering import Offering
from holdfast.operations.paying import Paying
from holdfast.operations.projects import Projects
from holdfast.operations.selling import Selling
from holdfast.operations.setup_links import SetupLinks
from holdfast.operations.signing_in import SigningIn
from holdfast.operations.staffing import Staffing
from holdfast.operations.subscribing import Subscribing
from holdfast.operations.watching import Watching
from holdfast.web.client_address import ClientAddresses
from holdfast.web.html.cookies import Cookies
from holdfast.web.papers.making import Papers
from holdfast.web.rate_limit import RateLimit
from holdfast.web.tour import Tour


class Parts(NamedTuple):
    inventory: Inventory
    selling: Selling
    buying: Buying
    paying: Paying
    payment_url: str | None
    """Where buyers are sent to pay."""
    projects: Projects
    boards: Boards
    offering: Offering
    figures: Figures
    import_files: ImportFiles
    import_runs: ImportRuns
    watching: Watching
    subscribing: Subscribing
    deliveries: Deliveries
    delivery_search: DeliverySearch
    keys: Keys
    auditing: Auditing
    feed: EventFeed
    key_ring: KeyRing
    health: Health
    addresses: ClientAddresses
    rate_limit: RateLimit
    public_rate_limit: RateLimit
    signing_in: SigningIn
    setup_links: SetupLinks
    staffing: Staffing
    accounts: Accounts
    public_url: str
    announcing: Announcing
    cookies: Cookies
    time_zone: str
    cors_origins: tuple[str, ...]
    periods: Periods
    papers: Papers
    tour: Tour | None
    """Of a demo."""

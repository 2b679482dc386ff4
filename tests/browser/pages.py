"""Every page of the back office: where it is, and who looks at it. A test holds it against the routes."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import quote

from playwright.sync_api import Page

from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.transitions import TRANSITIONS, Caller
from holdfast.web.pages.routes import PagePath
from tests.browser import steps
from tests.browser.scene import Scene
from tests.support.in_process import all_routes, app_with

BASE = "/backoffice"
PROJECT = BASE + "/projects/{slug}"
UNIT = PROJECT + "/units/{code}"
BOOKING = BASE + "/bookings/{reference}"
WEBHOOKS = BASE + "/settings/api/webhooks"
ENDPOINT = WEBHOOKS + "/{id}"
DELIVERY = BASE + "/deliveries/{id}"


AnyScene = TypeVar("AnyScene")


class BrowserPage(NamedTuple, Generic[AnyScene]):
    name: str
    """Of its screenshot, too."""
    route: str | None
    """None: what is shown where there is no page, or a page of somebody else."""
    path: Callable[[AnyScene], str]
    role: str | None = "admin"
    """Of staff; None: nobody is signed in. Buyers have none. A newcomer is an integrator who has yet to set
    up the second factor that the role requires."""
    status: int = 200
    both_sizes: bool = False
    """Whether there is a screenshot of it at the width of a desk and of a phone."""
    then: Callable[[Page, AnyScene], None] | None = None
    """What is done on it first."""


def pages_of(request_class: type[object]) -> set[str]:
    """The paths of the pages of staff or buyers."""
    endpoints = (route.endpoint for route in all_routes(app_with().routes))
    pages = (one for one in endpoints if isinstance(one, PagePath) and "GET" in one.pages)
    return {page.path for page in pages if page.request_class is request_class}


def _at(path: str) -> Callable[[Scene], str]:
    return lambda scene: path.format(slug=quote(scene.project.slug, safe=""))


def _elsewhere(rest: str) -> Callable[[Scene], str]:
    return lambda scene: PROJECT.format(slug=quote(scene.elsewhere.slug, safe="")) + rest


def _unit(status: str, rest: str = "") -> Callable[[Scene], str]:
    return lambda scene: (
        UNIT.format(slug=quote(scene.project.slug, safe=""), code=quote(scene.units[status], safe="")) + rest
    )


def _booking(status: str) -> Callable[[Scene], str]:
    return lambda scene: BOOKING.format(reference=scene.bookings[status])


def _endpoint(kind: str, rest: str = "") -> Callable[[Scene], str]:
    return lambda scene: ENDPOINT.format(id=scene.endpoints[kind]) + rest


def _delivery(status: str) -> Callable[[Scene], str]:
    return lambda scene: DELIVERY.format(id=scene.deliveries[status])


def _person() -> Callable[[Scene], str]:
    return lambda scene: f"{STAFF}/{scene.person('sales', 'en').id}"


IMPORT = PROJECT + "/import"
KEYS = BASE + "/settings/api/keys"
STAFF = BASE + "/staff"
ACCOUNT = BASE + "/account"
SIGN_IN = BASE + "/sign-in"

PAGES: tuple[BrowserPage[Scene], ...] = (
    BrowserPage("sign-in", SIGN_IN, _at(SIGN_IN), None, both_sizes=True),
    BrowserPage("sign-in-refused", SIGN_IN, _at(SIGN_IN), None, then=steps.fail_to_sign_in),
    BrowserPage("sign-in-code", SIGN_IN, _at(SIGN_IN), None, then=steps.give_the_password),
    BrowserPage("set-up", BASE + "/set-up/{token}", lambda scene: scene.set_up_link, None),
    BrowserPage("set-up-over", BASE + "/set-up/{token}", _at(BASE + "/set-up/" + "x" * 43), None, 404),
    BrowserPage("projects", BASE + "/projects", _at(BASE + "/projects"), both_sizes=True),
    BrowserPage("project-new", BASE + "/new-project", _at(BASE + "/new-project")),
    BrowserPage("board", PROJECT, _at(PROJECT), both_sizes=True),
    BrowserPage("board-filtered", PROJECT, _at(PROJECT + "?status=available&bedrooms=2&priceTo=1000000")),
    BrowserPage("table", PROJECT, _at(PROJECT + "?view=table"), both_sizes=True),
    BrowserPage("figures", PROJECT + "/figures", _at(PROJECT + "/figures")),
    BrowserPage("layout", PROJECT + "/layout", _at(PROJECT + "/layout")),
    BrowserPage("project-settings", PROJECT + "/settings", _at(PROJECT + "/settings")),
    BrowserPage("seller", BASE + "/settings/seller", _at(BASE + "/settings/seller"), both_sizes=True),
    BrowserPage("project-seller", PROJECT + "/seller", _at(PROJECT + "/seller"), role="viewer"),
    BrowserPage("import", IMPORT, _at(IMPORT)),
    BrowserPage("import-columns", IMPORT + "/{id}", _at(IMPORT), then=steps.upload_a_file),
    BrowserPage("import-checked", IMPORT + "/{id}", _at(IMPORT), then=steps.check_the_file),
    BrowserPage("import-done", IMPORT + "/{id}", _elsewhere("/import"), then=steps.import_the_file),
    BrowserPage(
        "import-interrupted", IMPORT + "/{id}", _elsewhere("/import"), then=steps.find_the_import_interrupted
    ),
    BrowserPage("unit-available", UNIT, _unit("available"), then=steps.send_a_bad_walk_in),
    BrowserPage("unit-held", UNIT, _unit("held"), role="sales", then=steps.ask_before_the_hold_ends),
    BrowserPage("unit-reserved", UNIT, _unit("reserved"), both_sizes=True),
    BrowserPage("unit-sold", UNIT, _unit("sold"), role="viewer"),
    BrowserPage("unit-archived", UNIT, _unit("archived")),
    BrowserPage("unit-history", UNIT + "/history", _unit("sold", "/history")),
    BrowserPage("bookings", BASE + "/bookings", _at(BASE + "/bookings"), both_sizes=True),
    BrowserPage("booking-open", BOOKING, _booking("open")),
    BrowserPage("booking-signed", BOOKING, _booking("signed"), role="sales"),
    BrowserPage("booking-reserved", BOOKING, _booking("reserved")),
    BrowserPage("booking-sold", BOOKING, _booking("sold")),
    BrowserPage("booking-link", BOOKING, _booking("sold"), then=steps.make_a_new_link),
    BrowserPage("booking-refund-due", BOOKING, _booking("refund-due")),
    BrowserPage("emails", BASE + "/emails", _at(BASE + "/emails"), role="sales", both_sizes=True),
    BrowserPage("settings", BASE + "/settings", _at(BASE + "/settings")),
    BrowserPage("keys", KEYS, _at(KEYS)),
    BrowserPage("key-new", KEYS + "/new", _at(KEYS + "/new"), role="integrator"),
    BrowserPage("key-issued", KEYS + "/new", _at(KEYS + "/new"), then=steps.make_a_key),
    BrowserPage("webhooks", WEBHOOKS, _at(WEBHOOKS), both_sizes=True),
    BrowserPage("webhook-new", WEBHOOKS + "/new", _at(WEBHOOKS + "/new"), role="integrator"),
    BrowserPage(
        "webhook-registered", WEBHOOKS + "/new", _at(WEBHOOKS + "/new"), then=steps.register_an_endpoint
    ),
    BrowserPage("webhook", ENDPOINT, _endpoint("healthy")),
    BrowserPage("webhook-refusing", ENDPOINT, _endpoint("refusing"), both_sizes=True),
    BrowserPage("webhook-paused", ENDPOINT, _endpoint("paused"), role="viewer"),
    BrowserPage("webhook-pinged", ENDPOINT, _endpoint("healthy"), then=steps.send_a_ping),
    BrowserPage("webhook-rotated", ENDPOINT, _endpoint("paused"), then=steps.rotate_the_secret),
    BrowserPage("webhook-edit", ENDPOINT + "/edit", _endpoint("healthy", "/edit")),
    BrowserPage("webhook-recover", ENDPOINT + "/recover", _endpoint("refusing", "/recover")),
    BrowserPage(
        "webhook-recover-counted",
        ENDPOINT + "/recover",
        _endpoint("refusing", "/recover?since=2026-01-01T00:00"),
    ),
    BrowserPage("webhook-reconciled", ENDPOINT + "/reconciliation", _endpoint("healthy", "/reconciliation")),
    BrowserPage("deliveries", BASE + "/deliveries", _at(BASE + "/deliveries"), both_sizes=True),
    BrowserPage("deliveries-failed", BASE + "/deliveries", _at(BASE + "/deliveries?status=failed")),
    BrowserPage("delivery-delivered", DELIVERY, _delivery("delivered")),
    BrowserPage("delivery-failed", DELIVERY, _delivery("failed"), both_sizes=True),
    BrowserPage("delivery-pending", DELIVERY, _delivery("pending")),
    BrowserPage("staff", STAFF, _at(STAFF)),
    BrowserPage("staff-new", STAFF + "/new", _at(STAFF + "/new")),
    BrowserPage("staff-invited", STAFF + "/new", _at(STAFF + "/new"), then=steps.invite_somebody),
    BrowserPage("staff-person", STAFF + "/{id}", _person()),
    BrowserPage("audit", BASE + "/audit", _at(BASE + "/audit")),
    BrowserPage("account", ACCOUNT, _at(ACCOUNT), role="viewer"),
    BrowserPage("account-factor", ACCOUNT, _at(ACCOUNT), role="viewer", then=steps.set_up_a_factor),
    BrowserPage(
        "account-factor-remove", ACCOUNT, _at(ACCOUNT), role="sales", then=steps.show_how_to_remove_a_factor
    ),
    BrowserPage("second-factor", ACCOUNT, _at(ACCOUNT), role="newcomer", both_sizes=True),
    BrowserPage("second-factor-code", ACCOUNT, _at(ACCOUNT), role="newcomer", then=steps.set_up_a_factor),
    BrowserPage("nothing-here", None, _at(BASE + "/nothing"), status=404),
    BrowserPage("not-yours", None, _at(STAFF), role="viewer", status=403),
)

# What answers GET with something else than a page: a part of one, a stream, a file, or a way back to one.
NOT_PAGES: frozenset[str] = frozenset(
    {
        BASE,
        PROJECT + "/live",
        PROJECT + "/export.csv",
        IMPORT + "/{id}/refused.csv",
        PROJECT + "/export.xlsx",
        PROJECT + "/template.csv",
        PROJECT + "/template.xlsx",
        UNIT + "/panel",
        SIGN_IN + "/code",
        SIGN_IN + "/language",
        *(f"{UNIT}/{row.action}" for row in TRANSITIONS if Caller.ADMIN in row.callers),
        *(f"{BOOKING}/{action}" for action in BookingAction),
        # They speak the language of their signature; test_papers looks at them.
        *(f"{BOOKING}/{paper}{ending}" for paper in ("agreement", "receipt") for ending in ("", ".pdf")),
        DELIVERY + "/resend",
        DELIVERY + "/result",
        *(f"{ENDPOINT}/{act}" for act in ("pause", "ping", "remove", "resume", "rotate")),
        *(f"{STAFF}/{{id}}/{act}" for act in ("disable", "enable", "reset", "role")),
        *(f"{ACCOUNT}/{act}" for act in ("name", "password", "preferences")),
        *(f"{ACCOUNT}/sign-out-{where}" for where in ("elsewhere", "everywhere")),
        *(f"{ACCOUNT}/second-factor{act}" for act in ("", "/confirm", "/remove")),
    }
)

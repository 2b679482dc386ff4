"""A project in the midst of being sold, with something of everything: what every page has to show."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path

from holdfast.demo.project import NAME, SLUG, demo_units
from tests.browser.office import Office, body_of, open_office
from tests.browser.staff import Person
from tests.support.buying import Hold
from tests.support.chromium import beside_playwright
from tests.support.client import Project
from tests.support.webhooks import Inbox, an_inbox

FLOORS = 6
SETTLED_DAYS = {"holdSeconds": 86_400, "reservationDays": 14}
BUYERS = (
    ("Nora Al-Harbi", "nora@example.com", "+966 50 123 4567"),
    ("عبدالله القحطاني", "abdullah@example.com", "+966 55 765 4321"),
    ("Layla Haddad", "layla@example.com", "+966 54 222 1111"),
    ("سارة العتيبي", "sarah@example.com", "+966 56 888 9999"),
)
SOLD = ("A-0102", "A-0203", "A-0304", "A-0401", "B-0101", "B-0202", "B-0303", "B-0404", "A-0505", "B-0605")
WALK_IN = ("A-0606", "B-0102")
RESERVED = ("A-0103", "A-0202", "A-0404", "B-0201", "B-0305", "B-0403")
SIGNED = ("A-0105", "B-0302")
HELD = ("A-0201", "A-0306", "B-0405")
CANCELLED = ("A-0501", "B-0504")
REFUND_DUE = ("A-0502", "B-0505")
REFUNDED = ("A-0503",)
OFF_SALE = ("A-0601", "A-0602", "B-0601")
ARCHIVED = ("B-0602",)
UNITS = {
    "available": "A-0101",
    "held": HELD[0],
    "reserved": RESERVED[0],
    "sold": SOLD[0],
    "unavailable": OFF_SALE[0],
    "archived": ARCHIVED[0],
}


# Nothing sends them: the server has no e-mail set up.
EMAILS = """
    with signed as (
        select number, row_number() over (order by number) as place from booking where signed_at is not null
    ), queued as (
        insert into email (booking_number, kind, status, attempts, last_error, ended_at)
        select number, 'signed', status, 1, error, case when status <> 'queued' then now() end
        from signed join (values
            (1, 'sent', null), (2, 'queued', '451 Try again later'), (3, 'failed', '550 No such user'),
            (4, 'suppressed', 'The link was replaced before the e-mail was sent.')
        ) as state (place, status, error) using (place)
        returning id
    )
    select count(*) from queued
"""


@dataclass
class Scene:
    office: Office
    project: Project
    elsewhere: Project
    """Another, in which nothing happens."""
    inbox: Inbox
    units: dict[str, str] = field(default_factory=dict)
    """A code by status."""
    people: dict[tuple[str, str], Person] = field(default_factory=dict)
    """By role and language."""
    bookings: dict[str, str] = field(default_factory=dict)
    """A reference by status."""
    endpoints: dict[str, str] = field(default_factory=dict)
    """An id for each of ``healthy``, ``refusing`` and ``paused``."""
    deliveries: dict[str, str] = field(default_factory=dict)
    """An id by status."""
    numbers: Iterator[int] = field(default_factory=count)

    def next_number(self) -> int:
        """For names that may stand once."""
        return next(self.numbers)

    @cached_property
    def with_factor(self) -> Person:
        return self.office.people.add(has_factor=True)

    @cached_property
    def set_up_link(self) -> str:
        return self.office.people.invite("Omar Haddad")

    def person(self, role: str, language: str) -> Person:
        if (role, language) not in self.people:
            name = {"en": "Salma Farsi", "ar": "سلمى الفارسي"}[language]
            digits = {"en": "latn", "ar": "arab"}[language]
            self.people[role, language] = self.office.people.add(
                "integrator" if role == "newcomer" else role,
                name=name,
                email=f"{role}.{language}@narjis.example",
                language=language,
                digits=digits,
                has_factor={"newcomer": False, "sales": True}.get(role),
            )
        return self.people[role, language]


@contextmanager
def opened_scene(folder: Path, database_url: str) -> Iterator[Scene]:
    with open_office(folder, database_url) as office, an_inbox() as inbox, an_inbox() as refusing:
        yield set_up(office, inbox, refusing)


def set_up(office: Office, inbox: Inbox, refusing: Inbox) -> Scene:
    units = [body_of(unit) for unit in demo_units() if int(unit.code[2:4]) <= FLOORS]
    project = office.new_project(SLUG, NAME, units)
    office.desk.settle(project, **SETTLED_DAYS)
    refusing.status, refusing.body = 503, b'{"error": "down for maintenance"}'
    elsewhere = office.new_project("olaya-gardens", "Olaya Gardens")
    scene = Scene(office, project, elsewhere, inbox, dict(UNITS))
    # They were here before anything failed, so they are told of it.
    for language in ("en", "ar"):
        scene.person("admin", language)
    _register(scene, refusing)
    _sell(scene)
    _find_deliveries(scene)
    with beside_playwright():
        office.sql.value(EMAILS)
    return scene


def _register(scene: Scene, refusing: Inbox) -> None:
    registrar, projects = scene.office.registrar, [scene.project.slug]
    for name, url in (("healthy", scene.inbox.url), ("refusing", refusing.url), ("paused", refusing.url)):
        added = registrar.add(url, projects=projects, description=f"ERP, {name}")
        scene.endpoints[name] = added["id"]
    registrar.change(scene.endpoints["paused"], paused=True)


def _sell(scene: Scene) -> None:
    """Every way that a booking can go."""
    desk, project = scene.office.desk, scene.project
    for code in (*OFF_SALE, *ARCHIVED):
        desk.did(scene.office.unit(project, code), "archive" if code in ARCHIVED else "take-off-sale")
    for at, code in enumerate(WALK_IN):
        name, email, phone = BUYERS[at]
        buyer = {"buyerName": name, "buyerEmail": email, "buyerPhone": phone}
        desk.did(scene.office.unit(project, code), "close-sale", buyer)
    scene.bookings["open"] = _held(scene, HELD)[0].reference
    scene.bookings["signed"] = _signed(scene, SIGNED)[0].reference
    scene.bookings["reserved"] = _reserved(scene, RESERVED)[0]
    for status, codes, actions in (
        ("sold", SOLD, ["close-sale"]),
        ("refund-due", REFUND_DUE, ["cancel"]),
        ("refunded", REFUNDED, ["cancel", "mark-refunded"]),
    ):
        for reference in _reserved(scene, codes):
            for action in actions:
                desk.did_to_booking(reference, action)
            scene.bookings[status] = reference
    for hold in _held(scene, CANCELLED):
        desk.did_to_booking(hold.reference, "cancel")
        scene.bookings["cancelled"] = hold.reference


def _held(scene: Scene, codes: Sequence[str]) -> list[Hold]:
    return [scene.office.buyer.hold(scene.office.unit(scene.project, code)) for code in codes]


def _signed(scene: Scene, codes: Sequence[str]) -> list[Hold]:
    holds = _held(scene, codes)
    for at, hold in enumerate(holds):
        name, email, phone = BUYERS[at % len(BUYERS)]
        assert hold.try_to_sign(buyerName=name, buyerEmail=email, buyerPhone=phone).status_code == 200
    return holds


def _reserved(scene: Scene, codes: Sequence[str]) -> list[str]:
    references = [hold.reference for hold in _signed(scene, codes)]
    for reference in references:
        scene.office.desk.did_to_booking(reference, "confirm-deposit")
    return references


def _find_deliveries(scene: Scene) -> None:
    """One that arrived, one that was given up, one that waits: each as soon as there is one."""
    registrar = scene.office.registrar
    for status, endpoint in (("delivered", "healthy"), ("failed", "refusing"), ("pending", "paused")):
        first = registrar.deliveries(endpoint=scene.endpoints[endpoint])["deliveries"][-1]
        registrar.when(first["id"], lambda it, wanted=status: it["status"] == wanted)  # type: ignore[misc]
        scene.deliveries[status] = first["id"]

"""A project whose names contain markup, which pages must show as text."""

from collections.abc import Callable

from tests.browser.office import Office
from tests.browser.scene import Scene
from tests.support.bodies import full
from tests.support.webhooks import NOBODY_LISTENS, Inbox

IMAGE = "<img src=x onerror=alert(1)>"
SCRIPT = "</script><script>alert(2)</script>"
QUOTED = "\"'><svg onload=alert(3)>"
BUYER = {"buyerName": IMAGE, "buyerEmail": "nora@example.com", "buyerPhone": "+966 50 123 4567"}


def hostile_scene(office: Office, inbox: Inbox) -> Scene:
    body = full(
        type=IMAGE, description=SCRIPT, images=[], files=[{"url": "https://a.example/", "name": QUOTED}]
    )
    statuses = ("available", "held", "reserved", "sold", "unavailable", "archived")
    units = {status: f"{sign}{IMAGE}" for status, sign in zip(statuses, "ABCDEF", strict=True)}
    project = office.new_project("hostile", IMAGE, [body | {"code": code} for code in units.values()])
    elsewhere = office.new_project("hostile-elsewhere", QUOTED)
    scene = Scene(office, project, elsewhere, inbox, units)
    for role in ("admin", "sales"):
        scene.people[role, "en"] = office.people.add(role, name=QUOTED)
    _register(scene)
    _sell(scene)
    return scene


def _register(scene: Scene) -> None:
    registrar, inbox = scene.office.registrar, scene.inbox
    inbox.body, inbox.headers = SCRIPT.encode(), [("X-Answer", IMAGE), ("Content-Type", "text/html")]
    for name, url in (("healthy", inbox.url), ("refusing", NOBODY_LISTENS), ("paused", NOBODY_LISTENS)):
        added = registrar.add(url, projects=[scene.project.slug], description=f"{name}{IMAGE}")
        scene.endpoints[name] = added["id"]
    registrar.change(scene.endpoints["paused"], paused=True)


def _sell(scene: Scene) -> None:
    desk = scene.office.desk
    desk.did(scene.office.unit(scene.project, scene.units["unavailable"]), "take-off-sale")
    desk.did(scene.office.unit(scene.project, scene.units["archived"]), "archive")
    steps: dict[str, Callable[[str], object]] = {
        "held": lambda _: None,
        "reserved": lambda reference: desk.did_to_booking(reference, "confirm-deposit"),
        "sold": lambda reference: (
            desk.did_to_booking(reference, "confirm-deposit"),
            desk.did_to_booking(reference, "close-sale"),
        ),
    }
    for status, step in steps.items():
        hold = scene.office.buyer.hold(scene.office.unit(scene.project, scene.units[status]))
        assert hold.send_signature(BUYER).status_code == 200
        step(hold.reference)
        scene.bookings[status] = hold.reference
    _find(scene)


def _find(scene: Scene) -> None:
    """A booking and a delivery for every status that the table of pages asks for, alike or not."""
    for status in ("open", "signed", "refund-due", "refunded", "cancelled"):
        scene.bookings[status] = scene.bookings["held"]
    for status, endpoint in (("delivered", "healthy"), ("failed", "refusing"), ("pending", "paused")):
        first = scene.office.registrar.deliveries(endpoint=scene.endpoints[endpoint])["deliveries"][0]
        if status != "pending":
            scene.office.registrar.ended(first["id"])
        scene.deliveries[status] = first["id"]

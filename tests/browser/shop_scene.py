"""The demo with a booking in every state: what every page of buyers has to show."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from holdfast.demo.project import NAME, SLUG
from tests.browser.buyers import outside
from tests.browser.office import Office
from tests.browser.scene import BUYERS
from tests.support.buying import Hold
from tests.support.chromium import beside_playwright
from tests.support.client import Project

HALF_A_DAY = 43_200
"""Seconds of a hold, so that none ends while it is looked at."""
CODES = {
    "open": "B-0801",
    "signed": "B-0802",
    "reserved": "B-0803",
    "sold": "B-0804",
    "cancelled": "B-0805",
    "refund-due": "A-0701",
    "refunded": "A-0702",
    "lapsed": "A-0703",
}
FREE = ("B-1001", "B-1002", "B-1003", "B-1004")
GONE = "A-0101"


@dataclass
class ShopScene:
    demo: Office
    project: Project
    holds: dict[str, Hold] = field(default_factory=dict)
    """Of each status of a booking one."""

    @cached_property
    def outside(self) -> str:
        return outside(self.demo)

    def link(self, status: str, rest: str = "") -> str:
        """What the buyer of that booking has been given; ``rest`` is for one who has used it before."""
        hold = self.holds[status]
        return f"/p/{SLUG}/bookings/{hold.reference}{rest or '/' + hold.token}"


def set_up_shop(demo: Office) -> ShopScene:
    slug_of = {one["slug"]: one for one in demo.http.get("/v1/integration/projects").json()["projects"]}
    scene = ShopScene(demo, Project(slug_of[SLUG]["id"], SLUG, NAME))
    demo.desk.settle(scene.project, holdSeconds=HALF_A_DAY)
    for at, (status, code) in enumerate(CODES.items()):
        scene.holds[status] = demo.buyer.hold(demo.unit(scene.project, code))
        if status not in ("open", "cancelled", "lapsed"):
            _settle(demo, scene.holds[status], status, BUYERS[at % len(BUYERS)])
    scene.holds["cancelled"].cancel()
    with beside_playwright():
        scene.holds["lapsed"].end_now(demo.sql)
    return scene


def _settle(demo: Office, hold: Hold, status: str, buyer: tuple[str, str, str]) -> None:
    """Signed, and all that comes after."""
    name, email, phone = buyer
    assert hold.try_to_sign(buyerName=name, buyerEmail=email, buyerPhone=phone).status_code == 200
    steps = {
        "reserved": ["confirm-deposit"],
        "sold": ["confirm-deposit", "close-sale"],
        "refund-due": ["confirm-deposit", "cancel"],
        "refunded": ["confirm-deposit", "cancel", "mark-refunded"],
    }
    for step in steps.get(status, []):
        demo.desk.did_to_booking(hold.reference, step)

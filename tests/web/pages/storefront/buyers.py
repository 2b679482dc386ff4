"""Somebody who buys, in front of a browser without scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from holdfast.web.pages.forms import csrf_token
from tests.support.buying import BUYER
from tests.support.client import Project, Unit
from tests.support.sql import Sql
from tests.support.staff_client import Person
from tests.support.unit_rows import end_now
from tests.web.api.storefront.limits import new_address

VISITOR = "holdfast_visitor"
SECRET = "__Host-holdfast_buyer"
BOOKING_COOKIE = "__Host-holdfast_booking_"
_READ = re.compile(r'name="read" value="([0-9a-f]{64})"')
_OWN_LINK = re.compile(r'id="own-link".*?value="([^"]+)"', re.DOTALL)


def project_page(project: Project) -> str:
    return f"/p/{project.slug}"


def unit_page(unit: Unit) -> str:
    return f"{project_page(unit.project)}/units/{quote(unit.code, safe='')}"


class Buyer(Person):
    """Known by the cookies that the first page brings, and by an address of their own."""

    def __init__(self, address: str, **headers: str) -> None:
        super().__init__(address)
        self.headers.update({"x-forwarded-for": new_address(), **headers})
        self.look("/p/nowhere")

    @property
    def cookies_kept(self) -> dict[str, str]:
        return dict(self._jar)

    def post_form(self, path: str, fields: Mapping[str, Any] | None = None, **headers: str) -> httpx.Response:
        """A form of ours."""
        return self.post(
            path,
            data={"csrf": csrf_token(self._jar[SECRET]), **(fields or {})},
            headers={**self.sent(), "sec-fetch-site": "same-origin", **headers},
        )

    def try_to_hold(self, unit: Unit, **headers: str) -> httpx.Response:
        return self.post_form(f"{unit_page(unit)}/hold", None, **headers)

    def refused_hold(self, unit: Unit, status: int = 409, **headers: str) -> str:
        """The page that says why the unit cannot be held; it can be reloaded."""
        answer = self.try_to_hold(unit, **headers)
        path = f"{unit_page(unit)}/hold"
        assert (answer.status_code, answer.headers["location"]) == (303, path)
        return self.see(path, status)

    def hold(self, unit: Unit) -> str:
        """The path of the booking that comes of it."""
        answer = self.try_to_hold(unit)
        assert answer.status_code == 303, f"{answer.status_code}: {answer.text[:2000]}"
        assert "/bookings/" in answer.headers["location"], "it is refused"
        return str(answer.headers["location"])

    def sign(self, path: str, **changes: str) -> httpx.Response:
        """What the page shows, as a buyer fills it in."""
        read = _READ.search(self.see(path))
        fields = {**BUYER, "consent": "yes", "read": read[1] if read else "", **changes}
        return self.post_form(f"{path}/sign", fields)

    def signed(self, unit: Unit) -> str:
        path = self.hold(unit)
        assert self.sign(path).headers["location"] == path
        return path

    def state(self, path: str) -> dict[str, Any]:
        return dict(self.look(f"{path}/state").json())

    def lapsed(self, unit: Unit, sql: Sql) -> str:
        path = self.hold(unit)
        end_now(sql, reference_in(path))
        return path


def reference_in(path: str) -> str:
    return path.rpartition("/")[2]


def link_on(page: str) -> str:
    """The path of the link that the page of a booking shows."""
    found = _OWN_LINK.search(page)
    assert found is not None
    return urlsplit(found[1]).path

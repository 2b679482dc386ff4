"""By what a buyer is known again: two cookies, which no other site takes away, and which it cannot plant."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from holdfast.web.pages.forms import csrf_token
from tests.support.app import InProcessApp
from tests.support.client import Unit, integration_client
from tests.web.pages.storefront.buyers import BOOKING_COOKIE, SECRET, VISITOR, Buyer, link_on, unit_page

CROSS_SITE = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.fixture
def stranger(server: InProcessApp) -> Iterator[httpx.Client]:
    """Somebody who has no cookies, and keeps none."""
    with integration_client(server.address, None) as client:
        yield client


def names_set(answer: httpx.Response) -> set[str]:
    return {line.partition("=")[0] for line in answer.headers.get_list("set-cookie")}


def test_the_first_page_brings_both_cookies(buyer: Buyer, stranger: httpx.Client, stored: Unit) -> None:
    answer = stranger.get(unit_page(stored), headers=CROSS_SITE)
    assert {VISITOR, SECRET} <= names_set(answer)
    (line,) = [line for line in answer.headers.get_list("set-cookie") if line.startswith(SECRET)]
    assert len(line.partition("=")[2].partition(";")[0]) == 32
    assert {"HttpOnly", "Secure", "SameSite=lax", "Path=/", "Max-Age=34560000"} <= set(line.split("; "))
    assert names_set(buyer.look(unit_page(stored))) == set()
    for value in ("", "x" * 31, "x" * 33, "x" * 31 + "é", "x" * 31 + "."):
        odd = [(b"cookie", f"{SECRET}={value}".encode())]
        assert SECRET in names_set(stranger.get(unit_page(stored), headers=odd)), value


def test_another_site_leaves_the_cookies_alone(stranger: httpx.Client, stored: Unit) -> None:
    """A browser sends no cookies with its forms, and would take new ones in their place."""
    page = unit_page(stored)
    for site in ("cross-site", "same-site"):
        for method, rest in (("POST", "/hold"), ("POST", ""), ("DELETE", ""), ("POST", "/nothing/here")):
            headers = {**CROSS_SITE, "sec-fetch-site": site}
            answer = stranger.request(method, f"{page}{rest}", headers=headers)
            assert answer.status_code in (403, 404, 405, 415)
            assert names_set(answer) == set()
    picture = {**CROSS_SITE, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
    answer = stranger.get(f"{page}?lang=ar", headers=picture)
    assert (answer.status_code, names_set(answer)) == (200, set())


def test_a_payment_page_may_send_a_form(buyer: Buyer, stranger: httpx.Client, stored: Unit) -> None:
    path = buyer.signed(stored)
    headers = {**CROSS_SITE, "content-type": "a/b"}
    answer = stranger.post(f"{path}?paid=1", content=b"\xff{no form", headers=headers)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}?paid=1")
    assert names_set(answer) == set()
    assert buyer.look(answer.headers["location"], **CROSS_SITE).status_code == 200


def test_the_visitor_cookie_opens_nothing(
    buyer: Buyer, new_buyer: Callable[..., Buyer], stored: Unit
) -> None:
    """A host beside ours can plant it, and so may know it."""
    path = buyer.hold(stored)
    thief = new_buyer()
    cookies = {"cookie": f"{VISITOR}={buyer.cookies_kept[VISITOR]}; {SECRET}={thief.cookies_kept[SECRET]}"}
    assert thief.get(path, headers=cookies).status_code == 404
    form = {"csrf": csrf_token(buyer.cookies_kept[VISITOR])}
    assert thief.post(f"{path}/cancel", data=form, headers=cookies).status_code == 403
    assert thief.get(path, headers={"cookie": f"{VISITOR}={buyer.cookies_kept[VISITOR]}"}).status_code == 404


def test_cookies_may_come_in_several_lines(buyer: Buyer, stranger: httpx.Client, stored: Unit) -> None:
    path = buyer.hold(stored)
    lines = [("cookie", f"{name}={value}") for name, value in buyer.cookies_kept.items()]
    answer = stranger.get(path, headers=[*lines, ("cookie", "theme=dark")])
    assert (answer.status_code, names_set(answer)) == (200, set())
    odd = "; ".join(f"{BOOKING_COOKIE}a[{number}]b=x" for number in range(25))
    answer = stranger.get(link_on(buyer.see(path)), headers={"cookie": f'{odd}; {BOOKING_COOKIE}"="x"'})
    assert answer.status_code == 303
    assert len([name for name in names_set(answer) if name.startswith(BOOKING_COOKIE)]) == 1


def test_who_keeps_no_cookies_is_told_so_with_the_way_back(stranger: httpx.Client, stored: Unit) -> None:
    answer = stranger.post(f"{unit_page(stored)}/hold", data={"csrf": "0" * 64})
    assert answer.status_code == 403
    assert "blocks cookies" in answer.text
    assert f'href="{unit_page(stored)}"' in answer.text


def test_another_name_of_this_machine_leads_to_that_of_the_cookies(buyer: Buyer, stored: Unit) -> None:
    home = str(buyer.base_url).rstrip("/")
    other = {"host": f"localhost:{buyer.base_url.port}"}
    answer = buyer.look(f"{unit_page(stored)}?lang=ar", **other)
    assert (answer.status_code, answer.headers["location"]) == (307, f"{home}{unit_page(stored)}?lang=ar")
    assert names_set(answer) == set()
    behind_a_proxy = {**other, "x-forwarded-host": "shop.example"}
    assert buyer.look(unit_page(stored), **behind_a_proxy).status_code == 200
    for headers in (
        {"host": "sales.example.com"},
        {"host": "localhost:1"},
        {"host": "localhost:x"},
        {"host": "[::1"},
        {**other, "hx-request": "true"},
        {**other, "sec-fetch-mode": "cors"},
    ):
        assert buyer.look(unit_page(stored), **headers).status_code in (200, 400), headers

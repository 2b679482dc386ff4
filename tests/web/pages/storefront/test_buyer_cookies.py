"""By what a buyer is known again: two cookies, which no other site takes away, and which it cannot plant."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from holdfast.web.pages.forms import csrf_token
from tests.support.app import InProcessApp
from tests.support.client import Unit, integration_client
from tests.web.pages.storefront.buyers import BOOKING_COOKIE, SECRET, VISITOR, Buyer, unit_page

NewBuyer = Callable[..., Buyer]

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


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/hold"), ("POST", ""), ("DELETE", ""), ("POST", "/nothing/here")]
)
def test_a_form_of_another_site_leaves_the_cookies_alone(
    buyer: Buyer, stranger: httpx.Client, stored: Unit, method: str, path: str, site: str
) -> None:
    """A browser sends no cookies with it, and would take new ones in their place."""
    headers = {**CROSS_SITE, "sec-fetch-site": site}
    answer = stranger.request(method, f"{unit_page(stored)}{path}", headers=headers)
    assert answer.status_code in (403, 404, 405, 415)
    assert names_set(answer) == set()


def test_a_part_of_another_sites_page_sets_no_cookies(
    buyer: Buyer, stranger: httpx.Client, stored: Unit
) -> None:
    headers = {**CROSS_SITE, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
    answer = stranger.get(f"{unit_page(stored)}?lang=ar", headers=headers)
    assert (answer.status_code, names_set(answer)) == (200, set())


def test_a_payment_page_may_send_the_buyer_back_by_a_form(
    buyer: Buyer, stranger: httpx.Client, stored: Unit
) -> None:
    path = buyer.signed(stored)
    answer = stranger.post(
        f"{path}?paid=1",
        content=b"\xff{no form",
        headers={**CROSS_SITE, "content-type": "a/b"},
    )
    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}?paid=1")
    assert names_set(answer) == set()
    assert buyer.look(answer.headers["location"], **CROSS_SITE).status_code == 200


def test_the_cookie_by_which_holds_are_counted_opens_nothing(
    buyer: Buyer, new_buyer: NewBuyer, stored: Unit
) -> None:
    """A host beside ours can plant it, and so may know it."""
    path = buyer.hold(stored)
    thief = new_buyer()
    cookies = {"cookie": f"{VISITOR}={buyer.visitor}; {SECRET}={thief.secret}"}
    assert thief.get(path, headers=cookies).status_code == 404
    form = {"csrf": csrf_token(buyer.visitor)}
    assert thief.post(f"{path}/cancel", data=form, headers=cookies).status_code == 403
    assert thief.get(path, headers={"cookie": f"{VISITOR}={buyer.visitor}"}).status_code == 404


@pytest.mark.parametrize("value", ["", "x" * 31, "x" * 33, "x" * 31 + "é", "x" * 31 + "."])
def test_a_secret_that_is_not_of_our_making_is_none(
    buyer: Buyer, stranger: httpx.Client, stored: Unit, value: str
) -> None:
    lines = [(b"cookie", f"{SECRET}={value}".encode())]
    answer = stranger.get(unit_page(stored), headers=lines)
    assert SECRET in names_set(answer)


def test_cookies_may_come_in_several_lines(buyer: Buyer, stranger: httpx.Client, stored: Unit) -> None:
    path = buyer.hold(stored)
    lines = [("cookie", f"{name}={value}") for name, value in buyer.cookies_kept.items()]
    answer = stranger.get(path, headers=[*lines, ("cookie", "theme=dark")])
    assert (answer.status_code, names_set(answer)) == (200, set())


def test_many_cookies_with_names_that_are_none_do_no_harm(
    buyer: Buyer, stranger: httpx.Client, stored: Unit
) -> None:
    page = buyer.see(buyer.hold(stored))
    link = page.split('id="own-link"')[1].split('value="')[1].split('"')[0]
    odd = "; ".join(f"{BOOKING_COOKIE}a[{number}]b=x" for number in range(25))
    answer = stranger.get(link, headers={"cookie": f'{odd}; {BOOKING_COOKIE}"="x"'})
    assert answer.status_code == 303
    assert len([name for name in names_set(answer) if name.startswith(BOOKING_COOKIE)]) == 1


def test_who_keeps_no_cookies_is_told_so_with_the_way_back(
    buyer: Buyer, stranger: httpx.Client, stored: Unit
) -> None:
    answer = stranger.post(f"{unit_page(stored)}/hold", data={"csrf": "0" * 64})
    assert answer.status_code == 403
    assert "keeps no cookies" in answer.text
    assert f'href="{unit_page(stored)}"' in answer.text


# One host, of several names


def test_another_name_of_this_machine_leads_to_the_one_that_cookies_are_kept_for(
    buyer: Buyer, stored: Unit
) -> None:
    home = str(buyer.base_url).rstrip("/")
    other = f"localhost:{buyer.base_url.port}"
    answer = buyer.look(f"{unit_page(stored)}?lang=ar", host=other)
    assert (answer.status_code, answer.headers["location"]) == (307, f"{home}{unit_page(stored)}?lang=ar")
    assert names_set(answer) == set()


def test_behind_a_proxy_that_names_this_machine_otherwise_a_buyer_stays(buyer: Buyer, stored: Unit) -> None:
    other = {"host": f"localhost:{buyer.base_url.port}", "x-forwarded-host": "shop.example"}
    assert buyer.look(unit_page(stored), **other).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "sales.example.com"},
        {"host": "localhost:1"},
        {"host": "localhost:x"},
        {"host": "[::1"},
        {"host": "localhost:{port}", "hx-request": "true"},
        {"host": "localhost:{port}", "sec-fetch-mode": "cors"},
    ],
)
def test_by_any_other_name_a_page_stays_where_it_is(
    buyer: Buyer, stored: Unit, headers: dict[str, str]
) -> None:
    sent = {name: value.format(port=buyer.base_url.port) for name, value in headers.items()}
    assert buyer.look(unit_page(stored), **sent).status_code in (200, 400)


# Addresses with a slip in them


def test_no_slip_in_a_link_brings_its_token_into_the_log(
    buyer: Buyer, stored: Unit, server: InProcessApp
) -> None:
    path = buyer.hold(stored)
    link = buyer.see(path).split('id="own-link"')[1].split('value="')[1].split('"')[0]
    token = link.rpartition("/")[2]
    project, reference = f"/p/{stored.project.slug}", path.rpartition("/")[2]
    for slip in (
        f"{project}/bookings%2F{reference}%2F{token}",
        f"{project}%2Fbookings%2F{reference}%2F{token}",
        f"{path}%2F{token}",
        f"{project}/bookings/{token}",
        f"{project}/{token}",
        f"/p/{token}",
    ):
        assert buyer.look(slip).status_code == 404
    assert token not in server.log.read_text()

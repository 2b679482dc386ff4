"""Who gets at a booking: the browser that made it, whoever has its link, and nobody else."""

from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import Desk
from tests.support.client import Project, Unit
from tests.web.pages.storefront.buyers import BOOKING_COOKIE, Buyer, reference_in

NewUnit = Callable[..., Unit]
NewBuyer = Callable[..., Buyer]

CLOSED = "This booking does not open here"


def link_on(page: str) -> str:
    """The path of the link that the page shows."""
    return urlsplit(page.split('id="own-link"')[1].split('value="')[1].split('"')[0]).path


def booking_cookies(buyer: Buyer) -> dict[str, str]:
    return {name: value for name, value in buyer.cookies_kept.items() if name.startswith(BOOKING_COOKIE)}


def test_the_link_opens_the_booking_on_another_device(
    buyer: Buyer, new_buyer: NewBuyer, stored: Unit
) -> None:
    path = buyer.hold(stored)
    phone = new_buyer()
    assert CLOSED in phone.see(path, 404)
    answer = phone.look(link_on(buyer.see(path)))
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert answer.headers["cache-control"] == "no-store"
    assert "is held for you" in phone.see(path)
    assert phone.sign(path).status_code == 303
    assert "Signed. Now the deposit" in buyer.see(path)


def without_hyphens(path: str) -> str:
    return path[:-11] + path[-11:].replace("-", "")


def in_lower_case(path: str) -> str:
    return path[:-11] + path[-11:].lower()


@pytest.mark.parametrize("spelled", [in_lower_case, without_hyphens])
def test_a_reference_opens_however_it_is_spelled(
    buyer: Buyer, new_buyer: NewBuyer, stored: Unit, spelled: Callable[[str], str]
) -> None:
    path = buyer.hold(stored)
    assert "is held for you" in buyer.see(spelled(path))
    phone = new_buyer()
    phone.look(link_on(buyer.see(path)))
    assert "is held for you" in phone.see(spelled(path))


def test_a_wrong_token_opens_nothing_and_sets_nothing(
    buyer: Buyer, new_buyer: NewBuyer, stored: Unit
) -> None:
    path = buyer.hold(stored)
    token = link_on(buyer.see(path)).rpartition("/")[2]
    stranger = new_buyer()
    for wrong in (token[:-1], token + "x", "nonsense", "%FF", "hft_" + "0" * 40):
        answer = stranger.look(f"{path}/{wrong}")
        assert answer.status_code == 404
        assert "<html" in answer.text
        assert booking_cookies(stranger) == {}


def test_a_booking_is_found_in_its_own_project_alone(
    buyer: Buyer, new_buyer: NewBuyer, stored: Unit, new_project: Callable[[], Project]
) -> None:
    path = buyer.hold(stored)
    link = link_on(buyer.see(path))
    slug, other = stored.project.slug, new_project().slug
    for wrong in (path, link, f"{path}/state"):
        assert buyer.look(wrong.replace(slug, other)).status_code == 404
    assert booking_cookies(buyer) == {}


@pytest.mark.parametrize("reference", ["AAA-AAA-AAA", "nonsense", "%F0%9F%8F%A0", "%00", "2" * 500])
def test_an_unknown_reference_is_answered_as_any_closed_one(
    buyer: Buyer, project: Project, reference: str
) -> None:
    assert CLOSED in buyer.see(f"/p/{project.slug}/bookings/{reference}", 404)


@pytest.mark.parametrize("deed", ["sign", "pay", "cancel"])
def test_strangers_change_nothing(buyer: Buyer, new_buyer: NewBuyer, stored: Unit, deed: str) -> None:
    path = buyer.hold(stored)
    answer = new_buyer().post_form(f"{path}/{deed}")
    assert answer.status_code == 404
    assert CLOSED in answer.text
    assert buyer.state(path)["status"] == "open"


def test_a_new_link_of_the_seller_closes_the_old_ones(
    buyer: Buyer, new_buyer: NewBuyer, stored: Unit, desk: Desk
) -> None:
    path = buyer.signed(stored)
    old = link_on(buyer.see(path))
    issued = desk.did_to_booking(reference_in(path), "reissue-link")
    assert CLOSED in buyer.see(path, 404)
    assert new_buyer().look(old).status_code == 404
    assert urlsplit(issued["url"]).path == f"{path}/{issued['token']}"
    buyer.look(urlsplit(issued["url"]).path)
    assert "Signed. Now the deposit" in buyer.see(path)


def test_a_sale_without_a_hold_opens_by_the_link_that_the_seller_makes(
    buyer: Buyer, stored: Unit, desk: Desk
) -> None:
    who = {"buyerName": "Omar", "buyerEmail": "omar@example.com", "buyerPhone": "0501112223"}
    desk.did(stored, "close-sale", who)
    reference = desk.bookings(project=stored.project.slug)["bookings"][0]["reference"]
    link = urlsplit(desk.did_to_booking(reference, "reissue-link")["url"]).path
    assert "is yours" in buyer.see(buyer.look(link).headers["location"])


def test_the_oldest_of_many_links_is_forgotten(buyer: Buyer, new_unit: NewUnit, desk: Desk) -> None:
    paths = []
    for number in range(22):
        reference = desk.did(new_unit(f"A-{number}"), "open")["bookingReference"]
        link = urlsplit(desk.did_to_booking(reference, "reissue-link")["url"]).path
        paths.append(buyer.look(link).headers["location"])
    assert len(booking_cookies(buyer)) == 20
    assert [buyer.look(path).status_code for path in paths[:3]] == [404, 404, 200]
    assert buyer.look(paths[-1]).status_code == 200


def test_tokens_are_not_in_the_log(
    buyer: Buyer, new_buyer: NewBuyer, stored: Unit, server: InProcessApp
) -> None:
    path = buyer.hold(stored)
    link = link_on(buyer.see(path))
    new_buyer().look(link)
    new_buyer().look(link + "x")
    new_buyer().look(link + "/")
    log = server.log.read_text()
    assert "/bookings/{reference}/{token}" in log
    assert link.rpartition("/")[2] not in log

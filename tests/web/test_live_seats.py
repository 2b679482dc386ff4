"""How many may watch live at a time, for an address and in all. The peer is a trusted proxy."""

from ipaddress import ip_network

import pytest

from holdfast.domain.errors import TooManyRequests
from holdfast.web.client_address import ClientAddresses
from holdfast.web.pages.storefront.live_limits import LiveLimits
from holdfast.web.request import Request


@pytest.fixture
def seats() -> LiveLimits:
    """Two seats for an address, three in all."""
    return LiveLimits(ClientAddresses((ip_network("127.0.0.0/8"),)), per_address=2, in_all=3)


def coming_from(address: str) -> Request:
    headers = [(b"x-forwarded-for", address.encode())]
    state = {"headers": dict(headers)}
    return Request({"type": "http", "client": ("127.0.0.1", 50_000), "headers": headers, "state": state})


def test_an_address_has_so_many_seats_and_is_told_when_they_are_taken(seats: LiveLimits) -> None:
    for _ in range(2):
        seats.take(coming_from("192.0.2.1"))
    with pytest.raises(TooManyRequests, match=r"^This address") as refused:
        seats.take(coming_from("192.0.2.1"))
    assert refused.value.retry_after_seconds == 60
    seats.take(coming_from("192.0.2.2"))


def test_the_machine_itself_has_only_the_limit_of_all(seats: LiveLimits) -> None:
    for _ in range(3):
        seats.take(coming_from("127.0.0.1"))
    with pytest.raises(TooManyRequests, match="no place for more"):
        seats.take(coming_from("192.0.2.1"))


def test_a_seat_is_free_again_when_its_watcher_has_left(seats: LiveLimits) -> None:
    for _ in range(5):
        give_back = seats.take(coming_from("192.0.2.1"))
        give_back()

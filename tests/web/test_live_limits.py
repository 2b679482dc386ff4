"""Limits of live connections, for an address and in all."""

from ipaddress import ip_address

import pytest

from holdfast.domain.errors import TooManyRequests
from holdfast.web.client_address import Client
from holdfast.web.rate_limit import LiveLimits


@pytest.fixture
def limits() -> LiveLimits:
    return LiveLimits(per_address=2, in_all=3)


def client(address: str) -> Client:
    return Client(ip_address(address), address, address)


def test_an_address_has_so_many_places_and_is_told_when_they_are_taken(limits: LiveLimits) -> None:
    for _ in range(2):
        limits.take(client("192.0.2.1"))
    with pytest.raises(TooManyRequests, match=r"^This address") as refused:
        limits.take(client("192.0.2.1"))
    assert refused.value.retry_after_seconds == 60
    limits.take(client("192.0.2.2"))


def test_the_machine_itself_has_only_the_limit_of_all(limits: LiveLimits) -> None:
    for _ in range(3):
        limits.take(client("127.0.0.1"))
    with pytest.raises(TooManyRequests, match="no place for more"):
        limits.take(client("192.0.2.1"))


def test_a_place_is_free_again_when_its_watcher_has_left(limits: LiveLimits) -> None:
    for _ in range(5):
        release = limits.take(client("192.0.2.1"))
        release()

"""The stream of the shop window: what is taken elsewhere is told at once, and nothing more."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.client import Project, Unit
from tests.support.server import RunningServer
from tests.web.pages.backoffice.test_live import Stream
from tests.web.pages.storefront.buyers import Buyer, project_page


class ShopStream(Stream):
    def next(self, *names: str) -> dict[str, Any]:
        while True:
            name, data = self._event()
            if name in names:
                found: dict[str, Any] = json.loads(data)
                return {**found, "event": name}


@pytest.fixture
def buyer(new_buyer: Callable[..., Buyer], real_server: RunningServer) -> Buyer:
    """At a real server: a stream has no end."""
    return new_buyer(real_server.address)


@contextmanager
def watching(buyer: Buyer, project: Project, query: str = "") -> Iterator[ShopStream]:
    with buyer.stream("GET", f"{project_page(project)}/live{query}", headers=buyer.sent()) as response:
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        stream = ShopStream(response)
        stream.next("heartbeat")
        yield stream


def test_a_unit_that_is_taken_is_told_with_the_counts(
    buyer: Buyer, new_buyer: Callable[..., Buyer], stored: Unit
) -> None:
    with watching(buyer, stored.project) as stream:
        new_buyer().hold(stored)
        told = stream.change_of(stored.code)
    assert told["status"] == "held"
    assert isinstance(told["endsAt"], int)
    assert told["counts"] == {"available": 0, "held": 1, "reserved": 0, "sold": 0}


def test_what_leaves_the_shop_is_not_named(buyer: Buyer, stored: Unit) -> None:
    with watching(buyer, stored.project) as stream:
        stored.patch({"status": "unavailable"})
        told = stream.next("anew")
        assert stored.code not in json.dumps(told)
        assert stream.next("units")["units"] == []


def test_an_unknown_project_has_no_stream(buyer: Buyer) -> None:
    assert buyer.look("/p/nowhere/live").status_code == 404


def test_the_head_of_a_stream_ends(buyer: Buyer, stored: Unit) -> None:
    answer = buyer.request("HEAD", f"{project_page(stored.project)}/live", headers=buyer.sent())
    assert answer.status_code == 200
    assert answer.content == b""

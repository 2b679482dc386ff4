"""A nightly sync must not undo what staff archived."""

import pytest

from tests.support import states
from tests.support.bodies import full, minimal
from tests.support.client import Unit, exact
from tests.support.feed import Feed
from tests.support.problems import conflict, invalid
from tests.support.sql import Sql


@pytest.fixture
def archived(stored: Unit, sql: Sql) -> Unit:
    states.archive(sql, stored)
    return stored


def test_fields_of_an_archived_unit_may_change(archived: Unit) -> None:
    assert exact(archived.put(full(type="villa", priceSar=1)))["priceSar"] == 1
    assert exact(archived.patch({"depositPercent": None}))["depositPercent"] is None


def test_an_archived_unit_is_unavailable(archived: Unit) -> None:
    assert archived.read()["status"] == "unavailable"


def test_a_put_cannot_put_an_archived_unit_on_sale(archived: Unit, feed: Feed) -> None:
    etag = archived.etag
    conflict(archived.put(minimal(status="available")), "transition-not-allowed", "unavailable")
    assert (archived.etag, feed.types_of(archived)) == (etag, ["unit.unavailable"])


def test_a_patch_cannot_put_an_archived_unit_on_sale(archived: Unit, feed: Feed) -> None:
    etag = archived.etag
    response = archived.patch({"status": "available", "type": "villa"})
    conflict(response, "transition-not-allowed", "unavailable")
    assert (archived.etag, feed.types_of(archived)) == (etag, ["unit.unavailable"])


def test_an_archived_unit_may_be_called_unavailable(archived: Unit, feed: Feed) -> None:
    etag = archived.etag
    assert archived.put(full(status="unavailable")).headers["etag"] == etag
    assert archived.patch({"status": "unavailable"}).headers["etag"] == etag
    assert feed.types_of(archived) == ["unit.unavailable"]


def test_a_change_of_fields_does_not_bring_it_back(archived: Unit, sql: Sql) -> None:
    archived.put(full(type="villa"))
    assert sql.value("select archived from unit where id = $1", archived.read()["id"]) is True


@pytest.mark.parametrize("name", ["held", "reserved", "sold"])
def test_an_archived_unit_is_not_locked(archived: Unit, name: str) -> None:
    invalid(archived.put(full(status=name)), "/status")

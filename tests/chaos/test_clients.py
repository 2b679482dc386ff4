"""The clients of a chaos run, on servers that nothing happens to."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial

import pytest

from tests.chaos.clients import BUYERS, ERPS, SETTINGS, STAFF, Clients
from tests.chaos.history import History, Record, read
from tests.support.delivery_engine import eventually
from tests.support.server import serving
from tests.support.sql import Sql, connected
from tests.support.webhooks import NOBODY_LISTENS

pytestmark = pytest.mark.slow

OPERATIONS = {
    "put", "put-bulk", "patch", "set-status", "read", "hold", "sign", "cancel", "pay", "confirm-deposit",
    "close-sale", "cancel-booking", "mark-refunded", "take-off-sale", "put-on-sale", "revoke-sale",
    "cancel-reservation", "extend", "feed",
}  # fmt: skip
AT_LEAST = 400
RECEIVERS = {name: f"{NOBODY_LISTENS}/{name}" for name in ("ordered", "flaky", "hanging")}
AT_REST = """
    select not exists (select from unit where status = 'held')
        and not exists (select from event where position is null)
"""


async def use(clients: Clients, url: str) -> None:
    """Until each operation was acknowledged, and the feeds are read."""
    acknowledged = clients.journal.acknowledged
    await clients.prepare()
    running = asyncio.create_task(clients.run())
    await eventually(lambda: acknowledged.total() >= AT_LEAST and acknowledged.keys() >= OPERATIONS)
    clients.stop()
    await running
    async with connected(url) as keeper:
        await eventually(partial(keeper.fetchval, AT_REST))
    await clients.read_feeds_to_the_end()


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory, module_postgres_url: str
) -> tuple[Clients, list[Record]]:
    folder = tmp_path_factory.mktemp("clients")
    settings = {"HOLDFAST_DATABASE_URL": module_postgres_url, "HOLDFAST_HOLD_SECONDS": "1", **SETTINGS}
    with (
        serving(folder / "one", settings) as one,
        serving(folder / "two", settings) as two,
        History(folder / "history.jsonl") as history,
    ):
        clients = Clients([one.address, two.address], module_postgres_url, RECEIVERS, history, seed=7)
        asyncio.run(use(clients, module_postgres_url))
    return clients, list(read(history.path))


def test_every_kind_of_client_acknowledges_what_it_does(recorded: tuple[Clients, list[Record]]) -> None:
    clients, records = recorded
    names = Counter(record["client"].split("-")[0] for record in records if record["kind"] == "invoke")
    assert names.keys() == {"erp", "buyer", "staff", "reader"}
    assert clients.journal.acknowledged.keys() >= OPERATIONS
    callers = {record["client"] for record in records if record["kind"] == "invoke"}
    assert len(callers) == ERPS + BUYERS + STAFF + 2


def test_every_call_has_one_outcome_and_none_is_unknown_or_stale(
    recorded: tuple[Clients, list[Record]],
) -> None:
    clients, records = recorded
    invoked = {record["call"]: record for record in records if record["kind"] == "invoke"}
    ended = Counter(record["call"] for record in records if record["kind"] in ("ok", "fail", "unknown"))
    assert ended == Counter(invoked.keys())
    kinds = Counter(record["kind"] for record in records)
    assert {kind: kinds[kind] for kind in ("ok", "fail", "unknown")} == {
        kind: clients.counts[kind] for kind in ("ok", "fail", "unknown")
    }
    assert (kinds["unknown"], kinds["stale"]) == (0, 0)
    statuses = {record["status"] for record in records if record["kind"] == "fail"}
    assert statuses <= {404, 409, 412}
    for record in invoked.values():
        first = invoked[record.get("repeats", record["call"])]
        assert (first["path"], first["body"], first["at"] <= record["at"]) == (
            record["path"], record["body"], True,
        )  # fmt: skip


def test_both_readers_of_the_feed_read_every_event(
    recorded: tuple[Clients, list[Record]], module_postgres_url: str
) -> None:
    _, records = recorded
    with Sql(module_postgres_url) as sql:
        stored = [str(row["id"]) for row in sql.rows("select id from event order by position")]
    for reader in ("reader-0", "reader-1"):
        pages = [record for record in records if record["kind"] == "page" and record["reader"] == reader]
        assert [event for page in pages for event in page["events"]] == stored
        assert [page["after"] for page in pages] == [None, *(page["next"] for page in pages[:-1])]


def test_what_was_acknowledged_as_changed_is_in_the_trail_once(
    recorded: tuple[Clients, list[Record]], module_postgres_url: str
) -> None:
    _, records = recorded
    calls = {record["call"] for record in records if record["kind"] == "ok"}
    with Sql(module_postgres_url) as sql:
        rows = sql.rows("select request_id, subject_id from audit_entry where actor_kind <> 'clock'")
    stored = Counter((row["request_id"], row["subject_id"]) for row in rows)
    assert set(stored.values()) == {1}
    by_clients = {call for call, _ in stored if "." in (call or "")}
    assert by_clients <= calls
    assert len(by_clients) > AT_LEAST / 4

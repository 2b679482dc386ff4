"""`holdfast backup` of a server that is busy, and a server that goes on from what was restored."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from holdfast.domain.signature import sign
from holdfast.storage.embedded.server import using_embedded
from tests.conftest import UNLIMITED
from tests.support.bodies import full
from tests.support.buying import Buyer
from tests.support.client import Project, Unit, integration_client
from tests.support.commands import run_for_json
from tests.support.feed import read_on
from tests.support.keys import Keys
from tests.support.projects import add_project
from tests.support.server import PATIENCE_SECONDS, serving
from tests.support.sql import Sql
from tests.support.webhooks import Inbox, Registrar, an_inbox

# Its own keys, made in the data directory.
OWN_KEYS = {"HOLDFAST_ENCRYPTION_KEYS": "", **UNLIMITED}
SCOPES = ("integration", "backoffice")
CODES = [f"A-{number}" for number in range(1, 21)]

# Of a unit, what its booking and its last event say of it.
STANDING = """
    select unit.code, unit.status,
        (select count(*) from booking where unit_id = unit.id and status in ('open', 'signed')) as holds,
        (select status from event where unit_id = unit.id order by unit_version desc limit 1) as told
    from unit
"""
SECRETS = "select encode(token_hash, 'hex') as token, reference from booking order by number"


@dataclass
class Before:
    """The server that was backed up, as far as others remember it."""

    folder: Path
    key: str
    project: Project
    endpoint: dict[str, Any]
    told: dict[str, Any] = field(default_factory=dict)
    """What the backup said of itself."""
    tokens: dict[str, str] = field(default_factory=dict)
    """Of all bookings that were ever given out, by their references."""
    event_ids: set[str] = field(default_factory=set)
    cursor: str | None = None
    """Of a reader who had read everything."""


@pytest.mark.slow
def test_a_server_goes_on_from_a_backup_that_was_made_while_it_was_busy(tmp_path: Path) -> None:
    restored = tmp_path / "restored"
    with an_inbox() as inbox:
        before = make_backup(tmp_path, inbox)
        counts = before.told["counts"]
        answer = run_for_json(OWN_KEYS, "restore", before.told["file"], "--data", str(restored))
        assert answer["counts"] == counts
        assert counts["units"] == len(CODES)
        assert 0 < counts["bookings"] < len(before.tokens)
        for path in (restored / "encryption-keys", Path(before.told["file"])):
            assert path.stat().st_mode & 0o777 == 0o600
        keys = (before.folder / "data" / "encryption-keys").read_text()
        assert (restored / "encryption-keys").read_text() == keys
        with (
            serving(restored.parent, OWN_KEYS, "--data", str(restored)) as server,
            integration_client(server.address, before.key) as http,
        ):
            with using_embedded(restored) as url, Sql(url) as sql:
                reference = assert_bookings_are_whole_or_not_there(sql, before)
            assert_a_buyer_finds_the_booking(http, reference, before)
            assert_a_reader_goes_on_with_what_is_new(http, before)
            assert_deliveries_are_signed_as_before(http, inbox, before)


def make_backup(folder: Path, inbox: Inbox) -> Before:
    data, file = folder / "data", folder / "a.backup"
    with serving(folder, OWN_KEYS, "--data", str(data)) as server:
        with using_embedded(data) as url, Sql(url) as sql:
            project, key = add_project(sql, "tower"), Keys(sql, url).issue(scopes=SCOPES).text
        with integration_client(server.address, key) as http:
            before = Before(folder, key, project, Registrar(http).add(inbox.url))
            for code in CODES:
                Unit(http, project, code).create(full())
            with busy_buyers(server.address, before):
                before.told = run_for_json(OWN_KEYS, "backup", str(file), "--data", str(data))
            # The feed has gone on after the backup.
            hold = Buyer(http).hold(Unit(http, project, CODES[0]))
            before.tokens[hold.reference] = hold.token
            events, before.cursor = read_on(http, None)
            before.event_ids = {event["id"] for event in events}
    assert (before.told["file"], before.told["bytes"]) == (str(file), file.stat().st_size)
    return before


@contextmanager
def busy_buyers(address: str, before: Before) -> Iterator[None]:
    """From the first hold on until the block ends, units are held, signed for and let go."""
    begun, enough = threading.Event(), threading.Event()

    def buy(codes: list[str]) -> None:
        with httpx.Client(base_url=address, timeout=PATIENCE_SECONDS) as http:
            buyer, at = Buyer(http), 0
            while not enough.is_set():
                hold = buyer.hold(Unit(http, before.project, codes[at % len(codes)]))
                before.tokens[hold.reference] = hold.token
                begun.set()
                if at % 3:
                    hold.sign()
                assert hold.cancel().status_code == 204
                at += 1

    threads = [threading.Thread(target=buy, args=(CODES[start::2],)) for start in (0, 1)]
    for thread in threads:
        thread.start()
    try:
        assert begun.wait(PATIENCE_SECONDS)
        yield
    finally:
        enough.set()
        for thread in threads:
            thread.join()


def assert_bookings_are_whole_or_not_there(sql: Sql, before: Before) -> str:
    """The reference of one of them."""
    for unit in sql.rows(STANDING):
        assert unit["holds"] == (unit["status"] == "held"), unit
        assert unit["told"] in (None, unit["status"]), unit
    stored = {row["reference"]: row["token"] for row in sql.rows(SECRETS)}
    given = {ref: hashlib.sha256(token.encode()).hexdigest() for ref, token in before.tokens.items()}
    assert len(stored) == before.told["counts"]["bookings"]
    assert stored.items() <= given.items()
    return str(next(iter(stored)))


def assert_a_buyer_finds_the_booking(http: httpx.Client, reference: str, before: Before) -> None:
    token = {"Authorization": f"Bearer {before.tokens[reference]}"}
    booking = http.get(f"/v1/storefront/bookings/{reference}", headers=token)
    assert (booking.status_code, booking.json()["reference"]) == (200, reference)


def assert_a_reader_goes_on_with_what_is_new(http: httpx.Client, before: Before) -> None:
    """What was given out after the backup is never given to something else."""
    unit = Unit(http, before.project, "Z-1")
    unit.create(full())
    assert Buyer(http).hold(unit).reference not in before.tokens
    events, _ = read_on(http, before.cursor)
    own = [event for event in events if event["data"]["unit"]["code"] == unit.code]
    assert own[-1]["type"] == "unit.held"
    assert own[-1]["id"] not in before.event_ids


def assert_deliveries_are_signed_as_before(http: httpx.Client, inbox: Inbox, before: Before) -> None:
    ping = Registrar(http).ping(before.endpoint["id"])
    while (post := inbox.next()).event["id"] != ping["id"]:
        pass
    timestamp = int(post.headers["X-Service-Timestamp"])
    assert post.headers["X-Service-Signature"] == sign(before.endpoint["secret"], timestamp, post.body)

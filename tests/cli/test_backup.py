"""`holdfast backup` of a server that is busy, and a server that goes on from what was restored."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from holdfast.domain.signature import sign
from holdfast.storage.embedded.server import using_embedded
from tests.conftest import UNLIMITED
from tests.support.bodies import full
from tests.support.buying import Buyer
from tests.support.client import Project, Unit, integration_client
from tests.support.commands import run_for_json
from tests.support.keys import Keys
from tests.support.projects import add_project
from tests.support.server import serving
from tests.support.sql import Sql
from tests.support.staff_client import Person
from tests.support.webhooks import Inbox, Registrar, an_inbox

# Its own keys, made in the data directory.
OWN_KEYS = {"HOLDFAST_ENCRYPTION_KEYS": "", **UNLIMITED}
SCOPES = ("integration", "backoffice")
CODES = [f"A-{number}" for number in range(1, 41)]
SESSION = uuid4().hex

# Of a unit, what its booking and its last event say of it.
STANDING = """
    select unit.code, unit.status,
        (select count(*) from booking where unit_id = unit.id and status in ('open', 'signed')) as holds,
        (select status from event where unit_id = unit.id order by unit_version desc limit 1) as told
    from unit
"""
SECRETS = "select encode(token_hash, 'hex') as token, reference from booking"


@dataclass
class Before:
    """The server that was backed up, as far as others remember it."""

    file: Path
    key: str
    project: Project
    inbox: Inbox
    endpoint: dict[str, Any]
    person: str
    told: dict[str, Any] = field(default_factory=dict)
    """What the backup said of itself."""
    tokens: dict[str, str] = field(default_factory=dict)
    """Of all bookings that were ever given out, by their references."""
    event_ids: set[str] = field(default_factory=set)
    cursor: str = ""
    """Of a reader who had read everything."""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Before]:
    folder = tmp_path_factory.mktemp("before")
    data = folder / "data"
    with an_inbox() as inbox, serving(folder, OWN_KEYS, "--data", str(data)) as server:
        with using_embedded(data) as url, Sql(url) as sql:
            project, key = add_project(sql, "tower"), Keys(sql, url).issue(scopes=SCOPES).text
            person = signed_in(sql)
        with integration_client(server.address, key) as http:
            endpoint = Registrar(http).add(inbox.url)
            found = Before(folder / "a.backup", key, project, inbox, endpoint, person)
            for code in CODES:
                Unit(http, project, code).create(full())
            with busy_buyers(server.address, found):
                found.told = run_for_json(OWN_KEYS, "backup", str(found.file), "--data", str(data))
            remember(http, found)
        yield found


@pytest.fixture(scope="module")
def restored(before: Before, tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("restored") / "data"
    answer = run_for_json(OWN_KEYS, "restore", str(before.file), "--data", str(data))
    assert answer["counts"] == before.told["counts"]
    return data


@pytest.fixture(scope="module")
def after(restored: Path, before: Before) -> Iterator[httpx.Client]:
    """The same key, at a server on what was restored."""
    while not before.inbox._posts.empty():
        before.inbox.next()
    with (
        serving(restored.parent, OWN_KEYS, "--data", str(restored)) as server,
        integration_client(server.address, before.key) as http,
    ):
        yield http


def signed_in(sql: Sql) -> str:
    """The e-mail address of somebody with a session."""
    sql.execute("insert into staff (id, email, email_key, name, role) values"
                " ($1, 'nora@example.com', 'nora@example.com', 'Nora', 'admin')", uuid4())  # fmt: skip
    sql.execute("insert into staff_session (id, token_hash, staff_id, address, agent)"
                " select $1, $2, id, '127.0.0.1', 'tests' from staff",
                uuid4(), hashlib.sha256(SESSION.encode()).digest())  # fmt: skip
    return "nora@example.com"


@contextmanager
def busy_buyers(address: str, before: Before) -> Iterator[None]:
    """From the first hold on until the block ends, units are held, signed for and let go."""
    begun, enough = threading.Event(), threading.Event()

    def buy(codes: list[str]) -> None:
        with httpx.Client(base_url=address, timeout=60) as http:
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
    assert begun.wait(30)
    try:
        yield
    finally:
        enough.set()
        for thread in threads:
            thread.join()


def remember(http: httpx.Client, before: Before) -> None:
    """Of a feed that has gone on after the backup."""
    hold = Buyer(http).hold(Unit(http, before.project, "A-1"))
    before.tokens[hold.reference] = hold.token
    while True:
        query = {"limit": "1000"} | ({"after": before.cursor} if before.cursor else {})
        page = http.get("/v1/integration/events", params=query).json()
        before.cursor = page["nextCursor"]
        before.event_ids |= {item["id"] for item in page["events"]}
        if not page["events"]:
            return


def test_a_backup_tells_what_is_in_it(before: Before) -> None:
    assert before.told["file"] == str(before.file)
    assert before.told["bytes"] == before.file.stat().st_size
    assert before.file.stat().st_mode & 0o777 == 0o600
    assert before.told["counts"]["units"] == len(CODES)
    assert 0 < before.told["counts"]["bookings"] < len(before.tokens)


def test_what_was_being_written_is_there_as_a_whole_or_not_at_all(before: Before, restored: Path) -> None:
    with using_embedded(restored) as url, Sql(url) as sql:
        for unit in sql.rows(STANDING):
            assert unit["holds"] == (unit["status"] == "held"), unit
            assert unit["told"] in (None, unit["status"]), unit
        stored = {row["reference"]: row["token"] for row in sql.rows(SECRETS)}
    given = {ref: hashlib.sha256(token.encode()).hexdigest() for ref, token in before.tokens.items()}
    assert len(stored) == before.told["counts"]["bookings"]
    assert stored.items() <= given.items()


def test_the_keys_of_the_secrets_come_along(before: Before, restored: Path) -> None:
    path = restored / "encryption-keys"
    assert path.read_text() == (before.file.parent / "data" / "encryption-keys").read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_units_and_bookings_are_there_and_new_references_are_new(
    before: Before, after: httpx.Client, restored: Path
) -> None:
    unit = Unit(after, before.project, "A-7")
    assert unit.read()["code"] == "A-7"
    with using_embedded(restored) as url, Sql(url) as sql:
        reference = str(sql.value("select reference from booking order by number limit 1"))
    booking = after.get(
        f"/v1/storefront/bookings/{reference}",
        headers={"Authorization": f"Bearer {before.tokens[reference]}"},
    )
    assert (booking.status_code, booking.json()["reference"]) == (200, reference)
    # The backup may have come while somebody held any of the others.
    other = Unit(after, before.project, "Y-1")
    other.create(full())
    assert Buyer(after).hold(other).reference not in before.tokens


def test_a_delivery_is_signed_with_the_secret_that_the_receiver_has(
    before: Before, after: httpx.Client
) -> None:
    ping = Registrar(after).ping(before.endpoint["id"])
    while (post := before.inbox.next()).event["id"] != ping["id"]:
        pass
    timestamp = int(post.headers["X-Service-Timestamp"])
    assert post.headers["X-Service-Signature"] == sign(before.endpoint["secret"], timestamp, post.body)


def test_a_reader_of_the_feed_goes_on_and_misses_nothing_new(before: Before, after: httpx.Client) -> None:
    unit = Unit(after, before.project, "Z-1")
    unit.create(full())
    hold = Buyer(after).hold(unit)
    page = after.get("/v1/integration/events", params={"after": before.cursor, "limit": "1000"})
    assert page.status_code == 200
    items = [item for item in page.json()["events"] if item["data"]["unit"]["code"] == unit.code]
    assert items[-1]["type"] == "unit.held"
    # What was given out after the backup is never given to something else.
    assert items[-1]["id"] not in before.event_ids
    assert hold.reference not in before.tokens


def test_staff_are_there_and_sign_in_anew(before: Before, after: httpx.Client, restored: Path) -> None:
    with Person(str(after.base_url), SESSION) as person:
        assert person.look("/backoffice/account").headers["location"].startswith("/backoffice/sign-in")
    with using_embedded(restored) as url, Sql(url) as sql:
        assert sql.value("select email from staff") == before.person

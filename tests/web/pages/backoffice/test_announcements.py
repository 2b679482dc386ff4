"""What failed is announced on every page, to each person until they have seen it."""

from collections.abc import Iterator
from html import unescape
from uuid import uuid4

import pytest

from tests.support.sql import Sql
from tests.support.staff_client import People, Person

ANY_PAGE = "/backoffice/deliveries"
NEW_ENDPOINT = """
    insert into endpoint (
        id, url, description, events, max_in_flight, secret_id, secret_sealed, secret_made_at,
        failing_since, failing_cause
    )
    values ($1, 'http://127.0.0.1:9/hook', $2, array['unit.sold'], 1, gen_random_uuid(), 'x', now(),
        now() - interval '1 day 1 minute', 'The connection was refused.')
"""
UNSEEN = "update staff set failures_seen_at = now() - interval '1 hour' where id = $1::text::uuid"


@pytest.fixture
def failing(sql: Sql) -> str:
    """The name of an endpoint that is failing, as markup would be."""
    name, endpoint_id = f"<b>ERP {uuid4().hex}</b>", uuid4()
    sql.execute(NEW_ENDPOINT, endpoint_id, name)
    return name


@pytest.fixture(autouse=True)
def _leave_none(sql: Sql, failing: str) -> Iterator[None]:
    yield
    sql.execute("update endpoint set removed_at = now() where description = $1", failing)


def told_of(person: Person, name: str) -> bool:
    shown = person.see(ANY_PAGE)
    news = shown.partition('<aside class="announcements"')[2].partition("</aside>")[0]
    assert name not in news, "a name is just a name"
    return f"{name} is failing." in unescape(news)


def new_person(people: People, sql: Sql, role: str = "viewer") -> Person:
    person = people.signed_in(role)
    sql.execute(UNSEEN, person.staff_id)
    return person


def test_a_failing_endpoint_is_announced_until_the_person_has_seen_it(
    people: People, sql: Sql, failing: str
) -> None:
    one, other = new_person(people, sql), new_person(people, sql, "sales")
    assert told_of(one, failing)
    up_to = one.see(ANY_PAGE).partition('name="upTo" value="')[2].partition('"')[0]
    answer = one.submit("/backoffice/announcements/seen", {"upTo": up_to, "next": ANY_PAGE})
    assert (answer.status_code, answer.headers["location"]) == (303, ANY_PAGE)
    assert not told_of(one, failing)
    assert told_of(other, failing), "each person has to see for themselves"


def test_whoever_is_new_is_not_told_what_others_have_dealt_with(people: People, failing: str) -> None:
    person = people.signed_in("viewer")
    assert not told_of(person, failing)

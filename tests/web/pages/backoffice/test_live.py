"""The stream of a board: what changes elsewhere is told at once."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.bodies import minimal
from tests.support.buying import Buyer
from tests.support.client import Project, Unit
from tests.support.server import RunningServer, serving
from tests.support.sql import Sql
from tests.support.staff_client import People, Person


class Stream:
    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.last_id = ""
        self._lines = response.iter_lines()

    def next(self, *names: str) -> dict[str, Any]:
        """The next event with one of these names; beats are passed over otherwise."""
        while True:
            name, data = self._event()
            if name in names:
                found: dict[str, Any] = json.loads(data)
                return found
            assert name in ("heartbeat", "units", "everything"), name

    def change_of(self, code: str, version: int = 2) -> dict[str, Any]:
        """The first that has come so far: a unit that was made just before may be told as it was made."""
        while True:
            news = self.next("units")
            for unit in news["units"]:
                if unit["code"] == code and unit["version"] >= version:
                    return {**news, **unit}

    def names_until(self, name: str) -> list[str]:
        """Of what is told before."""
        return list(iter(lambda: self._event()[0], name))

    def rest(self) -> list[str]:
        return list(self._lines)

    def _event(self) -> tuple[str, str]:
        fields: dict[str, str] = {}
        for line in self._lines:
            if not line:
                break
            name, _, value = line.partition(": ")
            fields[name] = value
        self.last_id = fields.get("id", self.last_id)
        return fields["event"], fields["data"]


@pytest.fixture(scope="module")
def people(sql: Sql, real_server: RunningServer) -> Iterator[People]:
    """At a real server: a stream has no end."""
    everybody = People(sql, real_server.address)
    yield everybody
    everybody.leave()


@pytest.fixture(scope="module")
def viewer(people: People) -> Person:
    return people.signed_in("viewer")


@contextmanager
def watching(person: Person, project: Project, query: str = "", **headers: str) -> Iterator[Stream]:
    path = f"/backoffice/projects/{project.slug}/live{query}"
    with person.stream("GET", path, headers={**person.sent(), **headers}) as response:
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["cache-control"] == "no-store"
        stream = Stream(response)
        stream.next("heartbeat")
        yield stream


def test_a_new_status_is_told_with_the_cell_and_the_counts(viewer: Person, stored: Unit) -> None:
    with watching(viewer, stored.project) as stream:
        stored.patch({"status": "unavailable"})
        told = stream.change_of(stored.code)
    assert 'class="u is-unavailable"' in told["html"]
    assert told["counts"]["unavailable"] == "1"
    assert told["counts"]["available"] == "0"


def test_a_new_price_and_a_hold_are_told(viewer: Person, http: httpx.Client, stored: Unit) -> None:
    with watching(viewer, stored.project) as stream:
        stored.patch({"priceSar": 123_456})
        assert "123,456" in stream.change_of(stored.code)["html"]
        Buyer(http).hold(stored)
        assert "data-ends=" in stream.change_of(stored.code, version=3)["html"]


def test_a_new_unit_is_told_and_a_name_is_just_a_name(
    viewer: Person, http: httpx.Client, project: Project
) -> None:
    with watching(viewer, project) as stream:
        Unit(http, project, "<b>A</b>").create(minimal())
        told = stream.change_of("<b>A</b>", version=1)
    assert "<b>A" not in told["html"]
    assert "&lt;b&gt;A" in told["html"]


def test_a_table_is_told_rows_and_whether_they_fit(viewer: Person, stored: Unit) -> None:
    with watching(viewer, stored.project, "?view=table&status=available") as stream:
        stored.patch({"priceSar": 123_456})
        told = stream.change_of(stored.code)
        assert told["html"].lstrip().startswith("<tr data-code=")
        assert told["fits"]
        stored.patch({"status": "unavailable"})
        assert not stream.change_of(stored.code, version=3)["fits"]


def test_everybody_is_told_in_their_language(arab: Person, stored: Unit) -> None:
    with watching(arab, stored.project) as stream:
        stored.patch({"status": "unavailable"})
        assert "غير معروضة" in stream.change_of(stored.code)["html"]


def test_another_project_is_not_told_of(viewer: Person, stored: Unit, new_project: Any) -> None:
    other = Unit(stored.http, new_project(), "B-1")
    with watching(viewer, stored.project) as stream:
        other.create(minimal())
        stored.patch({"priceSar": 5})
        news = stream.next("units")
    assert [unit["code"] for unit in news["units"]] == [stored.code]


@pytest.mark.parametrize("by", ["header", "query"])
def test_whoever_comes_back_is_told_what_they_missed(viewer: Person, stored: Unit, by: str) -> None:
    with watching(viewer, stored.project) as stream:
        left_at = stream.last_id
    stored.patch({"status": "unavailable"})
    query, headers = (f"?since={left_at}", {}) if by == "query" else ("", {"last-event-id": left_at})
    with watching(viewer, stored.project, query, **headers) as stream:
        assert "is-unavailable" in stream.change_of(stored.code)["html"]


def test_whoever_is_not_signed_in_any_more_is_told_so(people: People, stored: Unit) -> None:
    """A browser would take a way to the sign-in for a stream that broke, and try again for ever."""
    stranger = people.stranger()
    answer = stranger.look(f"/backoffice/projects/{stored.project.slug}/live", accept="text/event-stream")
    assert (answer.status_code, answer.text) == (200, "event: ended\ndata: {}\n\n")
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"


def test_whoever_was_away_for_long_is_told_to_show_everything(viewer: Person, stored: Unit) -> None:
    with watching(viewer, stored.project, "?since=1000") as stream:
        assert stream.next("everything") == {}


@pytest.mark.parametrize("since", ["nonsense", "-1", "9" * 30, "999999999999999999", "", "١٢٣"])
def test_a_wrong_moment_is_no_moment(viewer: Person, stored: Unit, since: str) -> None:
    with watching(viewer, stored.project, f"?since={since}") as stream:
        stored.patch({"status": "unavailable"})
        assert stream.change_of(stored.code)


def test_beats_come_while_nothing_happens_and_tell_the_time(viewer: Person, stored: Unit) -> None:
    with watching(viewer, stored.project) as stream:
        first, second = stream.next("heartbeat")["now"], stream.next("heartbeat")["now"]
    assert 0 < second - first < 60_000
    assert abs(second / 1000 - time.time()) < 60


def test_a_stream_ends_with_the_session(people: People, stored: Unit, sql: Sql) -> None:
    person = people.signed_in("viewer")
    with watching(person, stored.project) as stream:
        sql.execute("delete from staff_session where staff_id = $1::text::uuid", person.staff_id)
        # It is asked before every beat or nearly so, not now and then.
        assert len(stream.names_until("ended")) <= 2
        assert stream.rest() == []


def test_a_stranger_is_told_nothing(people: People, stored: Unit) -> None:
    answer = people.stranger().look(f"/backoffice/projects/{stored.project.slug}/live")
    assert answer.status_code == 303


def test_a_server_that_is_watched_stops_without_waiting_for_those_who_watch(
    tmp_path: Path, database_url: str, sql: Sql, stored: Unit
) -> None:
    with serving(tmp_path, {"HOLDFAST_DATABASE_URL": database_url}) as server:
        people = People(sql, server.address)
        with watching(people.signed_in("viewer"), stored.project) as stream:
            server.stop()
            assert server.process.returncode == 0
            # One that is cut off in the end, because nothing else helped, is no answer that httpx takes.
            stream.rest()
            assert "graceful" not in server.log.read_text()
        people.leave()

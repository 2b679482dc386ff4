"""The stream of a board: what changes elsewhere is told at once."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.bodies import minimal
from tests.support.buying import Buyer
from tests.support.client import Project, Unit
from tests.support.server import RunningServer, serving
from tests.support.sql import Sql
from tests.support.staff_client import People, Person
from tests.web.pages.live_stream import watching


@pytest.fixture(scope="module")
def people(sql: Sql, real_server: RunningServer) -> Iterator[People]:
    """At a real server: a stream has no end."""
    everybody = People(sql, real_server.address)
    yield everybody
    everybody.leave()


def board(project: Project) -> str:
    return f"/backoffice/projects/{project.slug}"


def test_a_change_is_told_with_cell_and_counts(viewer: Person, http: httpx.Client, stored: Unit) -> None:
    with watching(viewer, board(stored.project)) as stream:
        stored.patch({"priceSar": 123_456})
        assert "123,456" in stream.change_of(stored.code)["html"]
        Buyer(http).hold(stored)
        told = stream.change_of(stored.code, version=3)
        assert "data-ends=" in told["html"]
        assert (told["counts"]["held"], told["counts"]["available"]) == ("1", "0")
        Unit(http, stored.project, "<b>A</b>").create(minimal())
        told = stream.change_of("<b>A</b>", version=1)
    assert "<b>A" not in told["html"]
    assert "&lt;b&gt;A" in told["html"]


def test_a_table_is_told_rows_and_whether_they_fit_in_ones_own_language(arab: Person, stored: Unit) -> None:
    with watching(arab, board(stored.project), "?view=table&status=available") as stream:
        stored.patch({"priceSar": 123_456})
        told = stream.change_of(stored.code)
        assert told["html"].lstrip().startswith("<tr data-code=")
        assert told["fits"]
        stored.patch({"status": "unavailable"})
        told = stream.change_of(stored.code, version=3)
        assert not told["fits"]
        assert "غير معروضة" in told["html"]


def test_another_project_is_not_told_of(
    viewer: Person, stored: Unit, new_project: Callable[[], Project]
) -> None:
    other = Unit(stored.http, new_project(), "B-1")
    with watching(viewer, board(stored.project)) as stream:
        other.create(minimal())
        stored.patch({"priceSar": 5})
        assert [unit["code"] for unit in stream.next("units")["units"]] == [stored.code]


def test_whoever_comes_back_is_told_what_they_missed(viewer: Person, stored: Unit) -> None:
    page = board(stored.project)
    with watching(viewer, page) as stream:
        left_at = stream.last_id
    stored.patch({"status": "unavailable"})
    with watching(viewer, page, f"?since={left_at}") as stream:
        assert "is-unavailable" in stream.change_of(stored.code)["html"]
    with watching(viewer, page, **{"last-event-id": left_at}) as stream:
        assert "is-unavailable" in stream.change_of(stored.code)["html"]
    with watching(viewer, page, "?since=1000") as stream:
        assert stream.next("everything") == {}


def test_a_wrong_moment_is_no_moment(viewer: Person, stored: Unit) -> None:
    for at, since in enumerate(("nonsense", "-1", "9" * 30, "999999999999999999", "", "١٢٣")):
        with watching(viewer, board(stored.project), f"?since={since}") as stream:
            stored.patch({"priceSar": at})
            assert stream.change_of(stored.code, version=at + 2)


def test_whoever_is_not_signed_in_or_no_longer_is_told_so(people: People, stored: Unit, sql: Sql) -> None:
    """A browser would take a way to the sign-in for a stream that broke, and try again for ever."""
    page, stranger, person = board(stored.project), people.stranger(), people.signed_in("viewer")
    answer = stranger.look(f"{page}/live", accept="text/event-stream")
    assert (answer.status_code, answer.text) == (200, "event: ended\ndata: {}\n\n")
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    stranger.see(f"{page}/live", 303)
    with watching(person, page) as stream:
        sql.execute("delete from staff_session where staff_id = $1::text::uuid", person.staff_id)
        stream.next("ended")
        assert stream.rest() == []


def test_a_stream_ends_when_the_second_factor_that_the_role_requires_is_gone(
    tmp_path: Path, settings_of_servers: dict[str, str], sql: Sql, stored: Unit
) -> None:
    settings = {**settings_of_servers, "HOLDFAST_SECOND_FACTOR_ROLES": "viewer"}
    with serving(tmp_path, settings) as server:
        people = People(sql, server.address)
        person = people.signed_in("viewer")
        sql.execute("update staff set second_factor_sealed = 'x' where email = $1", person.email)
        with watching(person, board(stored.project)) as stream:
            sql.execute("update staff set second_factor_sealed = null where email = $1", person.email)
            stream.next("ended")
            assert stream.rest() == []
        people.leave()


@pytest.mark.slow
def test_a_watched_server_stops_at_once(tmp_path: Path, database_url: str, sql: Sql, stored: Unit) -> None:
    with serving(tmp_path, {"HOLDFAST_DATABASE_URL": database_url}) as server:
        people = People(sql, server.address)
        with watching(people.signed_in("viewer"), board(stored.project)) as stream:
            server.stop()
            assert server.process.returncode == 0
            # One that is cut off in the end, because nothing else helped, is no answer that httpx takes.
            stream.rest()
            assert "graceful" not in server.log.read_text()
        people.leave()

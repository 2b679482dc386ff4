"""The audit trail as a page: who, what, where, before and after; sifted and page by page."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest

from holdfast.operations.audit import MAX_SCANNED
from tests.support.app import InProcessApp
from tests.support.backoffice import ask_for_hold
from tests.support.client import Project, Unit, integration_client
from tests.support.keys import Keys
from tests.support.sql import Sql
from tests.support.staff_client import Person
from tests.support.webhooks import Registrar

AUDIT = "/backoffice/audit"
INSERT = """
    insert into audit_entry (subject_id, project_id, at, actor_kind, actor_id, action, before, after)
    select $1, $2, $3::timestamptz + number * interval '1 second', 'staff', $4, $5, '{}', '{}'
    from generate_series(1, $6::int) as number
"""


def rows(page: str) -> list[str]:
    """The text of each entry, without the markup."""
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    return [unescape(" ".join(re.sub(r"<[^>]+>", " ", row).split())) for row in body.split("</tr>")[:-1]]


def of_project(project: Project, **more: str) -> str:
    return f"{AUDIT}?project={project.slug}" + "".join(
        f"&{name}={quote(value)}" for name, value in more.items()
    )


def test_an_entry_tells_who_did_what_to_what_and_what_it_was_before(
    admin: Person, stored: Unit, staff_http: httpx.Client
) -> None:
    url = f"/v1/backoffice/projects/{stored.project.slug}/units/{stored.code}/archive"
    assert staff_http.post(url).status_code == 200
    page = admin.see(of_project(stored.project))
    latest = rows(page)[0]
    assert "Moved to the archive" in latest
    assert stored.code in latest
    assert "Available → became Unavailable" in latest
    assert "a key of the tests" in latest
    assert f'href="/backoffice/projects/{stored.project.slug}/units/{stored.code}"' in page


def test_what_staff_do_on_pages_is_put_down_to_them(admin: Person, sales: Person, project: Project) -> None:
    sales.done(f"/backoffice/projects/{project.slug}/settings", {"name": "Renamed", "holdSeconds": "90"})
    (latest, *_) = rows(admin.see(of_project(project)))
    assert sales.email in latest
    assert "Settings changed" in latest
    assert "A hold lasts – nothing → became 90 seconds" in latest


def test_projects_endpoints_keys_and_staff_are_told_by_name(
    admin: Person, registrar: Registrar, keys: Keys, sql: Sql
) -> None:
    endpoint, key = registrar.add(), keys.issue(scopes=["payments"])
    seen = rows(admin.see(f"{AUDIT}?subject={endpoint['id']}"))
    assert f"Endpoint {endpoint['url']}" in seen[0]
    seen = rows(admin.see(f"{AUDIT}?subject={key.id}"))
    assert "Key a key of the tests" in seen[0]
    assert "Opens Payments" in seen[0]
    assert key.text not in str(seen)


def test_a_booking_is_reached_from_its_entry(admin: Person, stored: Unit, server: InProcessApp) -> None:
    with integration_client(server.address, None) as public:
        reference = ask_for_hold(public, stored).json()["reference"]
    page = admin.see(of_project(stored.project, by="buyer"))
    assert f'href="/backoffice/bookings/{reference}"' in page
    assert len(rows(page)) == 1


def test_filters_are_kept_and_a_nonsensical_one_is_off(admin: Person, stored: Unit) -> None:
    page = admin.see(of_project(stored.project, action="create", since="2020-01-01T00:00"))
    assert '<option value="create" selected>' in page
    assert 'value="2020-01-01T00:00"' in page
    assert len(rows(page)) == 1
    nonsense = {
        "by": "nobody",
        "since": "yesterday",
        "until": "99999-01-01T00:00",
        "subject": "x",
        "cursor": "x",
    }
    assert len(rows(admin.see(of_project(stored.project, **nonsense)))) == 1
    assert rows(admin.see(of_project(stored.project, until="2020-01-01T00:00"))) == []


def test_times_are_those_of_the_wall_clock_in_riyadh(
    admin: Person, sql: Sql, new_project: Callable[[], Project]
) -> None:
    project = new_project()
    at = datetime(2003, 1, 1, 20, 59, 59, tzinfo=UTC)
    sql.execute(INSERT, uuid4(), project.id, at, "somebody@example.com", "settle", 1)
    assert len(rows(admin.see(of_project(project, since="2003-01-02T00:00", until="2003-01-02T00:01")))) == 1
    assert rows(admin.see(of_project(project, since="2003-01-01T20:00", until="2003-01-02T00:00"))) == []


def test_one_actor_is_one_click_away(admin: Person, stored: Unit) -> None:
    page = admin.see(of_project(stored.project))
    link = re.search(r'href="(/backoffice/audit\?project=[^"]*&amp;actor=[^"]+)"', page)
    assert link is not None
    assert len(rows(admin.see(unescape(link[1])))) == 1


def test_pages_follow_each_other(admin: Person, sql: Sql, new_project: Callable[[], Project]) -> None:
    project = new_project()
    sql.execute(INSERT, uuid4(), project.id, datetime(2004, 1, 1, tzinfo=UTC), "x@example.com", "settle", 120)
    seen = 0
    address: str | None = of_project(project, until="2005-01-01T00:00")
    while address is not None:
        page = admin.see(address)
        seen += len(rows(page))
        onward = re.search(r'href="([^"]+)" rel="next"', page)
        address = unescape(onward[1]) if onward else None
    assert seen == 120


def test_a_rare_filter_says_how_far_it_has_looked(admin: Person, sql: Sql) -> None:
    start, rare = datetime(2002, 1, 1, tzinfo=UTC), f"{uuid4().hex}@example.com"
    sql.execute(INSERT, uuid4(), uuid4(), start, rare, "settle", 1)
    later = start + timedelta(hours=1)
    sql.execute(INSERT, uuid4(), uuid4(), later, "other@example.com", "settle", MAX_SCANNED)
    page = admin.see(f"{AUDIT}?until=2002-01-03T00:00&actor={quote(rare)}")
    assert rows(page) == []
    assert "Looked back as far as 1 Jan 2002" in unescape(re.sub(r"<[^>]+>", "", page))
    onward = re.search(r'href="([^"]+)" rel="next"', page)
    assert onward is not None
    assert len(rows(admin.see(unescape(onward[1])))) == 1


def test_what_has_no_words_yet_is_shown_as_it_is(
    admin: Person, sql: Sql, new_project: Callable[[], Project]
) -> None:
    project = new_project()
    sql.execute(
        """
        insert into audit_entry (subject_id, project_id, at, actor_kind, action, before, after)
        values (
            $1, $1, now(), 'command', 'be-bold',
            '{"x": [1, {"y": null}]}', '{"x": "<img onerror=1>", "z": {}}'
        )
        """,
        project.id,
    )
    page = admin.see(of_project(project))
    (line,) = rows(page)
    assert "be-bold" in line
    assert "<img onerror" not in page
    assert "<img onerror=1>" in line


@pytest.mark.parametrize("role", ["sales", "integrator", "viewer"])
def test_it_is_for_admins(request: pytest.FixtureRequest, role: str) -> None:
    person: Person = request.getfixturevalue(role)
    assert person.look(AUDIT).status_code == 403
    assert AUDIT not in person.see("/backoffice/settings")


def test_it_speaks_arabic(arab: Person, stored: Unit) -> None:
    page = arab.see(of_project(stored.project))
    assert "سجل التدقيق" in page
    assert "أُنشئ" in rows(page)[0]

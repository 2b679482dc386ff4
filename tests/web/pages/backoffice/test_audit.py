"""The audit trail as a page: who, what, where, before and after; filtered and page by page."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import quote
from uuid import uuid4

from holdfast.operations.audit import MAX_SCANNED
from tests.support.backoffice import Desk
from tests.support.client import Project, Unit
from tests.support.keys import Keys
from tests.support.sql import Sql
from tests.support.staff_client import Person, missing, next_page
from tests.support.webhooks import Registrar

AUDIT = "/backoffice/audit"
INSERT = """
    insert into audit_entry (subject_id, project_id, at, actor_kind, actor_id, action, before, after)
    select $1, $2, $3::timestamptz + number * interval '1 second', 'staff', $4, 'settle', '{}', '{}'
    from generate_series(1, $5::int) as number
"""
UNKNOWN = """
    insert into audit_entry (subject_id, project_id, at, actor_kind, action, before, after)
    values ($1, $1, now(), 'command', 'be-bold',
        '{"x": [1, {"y": null}]}', '{"x": "<img onerror=1>", "z": {}}')
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
    admin: Person, arab: Person, stored: Unit, desk: Desk
) -> None:
    desk.did(stored, "archive")
    page = admin.see(of_project(stored.project))
    told = ("Moved to archive", stored.code, "Available → became Unavailable", "a key of the tests")
    assert missing(rows(page)[0], *told) == []
    assert f'href="/backoffice/projects/{stored.project.slug}/units/{stored.code}"' in page
    page = arab.see(of_project(stored.project))
    assert "سجل التدقيق" in page
    assert "أُنشئ" in rows(page)[1]


def test_what_staff_do_on_pages_is_put_down_to_them(admin: Person, sales: Person, project: Project) -> None:
    sales.done(f"/backoffice/projects/{project.slug}/settings", {"name": "Renamed", "holdSeconds": "90"})
    (latest, *_) = rows(admin.see(of_project(project)))
    told = (sales.email, "Settings changed", "Hold time – nothing → became 90 seconds")
    assert missing(latest, *told) == []


def test_endpoints_and_keys_are_told_by_name(admin: Person, registrar: Registrar, keys: Keys) -> None:
    endpoint, key = registrar.add(), keys.issue(scopes=["payments"])
    assert f"Endpoint {endpoint['url']}" in rows(admin.see(f"{AUDIT}?subject={endpoint['id']}"))[0]
    seen = rows(admin.see(f"{AUDIT}?subject={key.id}"))
    assert missing(seen[0], "Key a key of the tests", "Scopes Payments") == []
    assert key.text not in str(seen)


def test_filters_are_kept_and_a_nonsensical_one_is_off(admin: Person, stored: Unit, desk: Desk) -> None:
    reference = desk.held(stored).reference
    page = admin.see(of_project(stored.project, by="buyer"))
    assert f'href="/backoffice/bookings/{reference}"' in page
    assert len(rows(page)) == 1
    page = admin.see(of_project(stored.project, action="create", since="2020-01-01T00:00"))
    assert missing(page, '<option value="create" selected>', 'value="2020-01-01T00:00"') == []
    assert len(rows(page)) == 1
    assert rows(admin.see(of_project(stored.project, until="2020-01-01T00:00"))) == []
    link = re.search(r'href="(/backoffice/audit\?project=[^"]*&amp;actor=[^"]+)"', page)
    assert link is not None
    assert len(rows(admin.see(unescape(link[1])))) == 1
    nonsense = {
        "by": "nobody", "since": "yesterday", "until": "99999-01-01T00:00", "subject": "x", "cursor": "x",
    }  # fmt: skip
    assert len(rows(admin.see(of_project(stored.project, **nonsense)))) == 2


def test_times_are_those_of_the_wall_clock_in_riyadh(admin: Person, sql: Sql, project: Project) -> None:
    at = datetime(2003, 1, 1, 20, 59, 59, tzinfo=UTC)
    sql.execute(INSERT, uuid4(), project.id, at, "somebody@example.com", 1)
    assert len(rows(admin.see(of_project(project, since="2003-01-02T00:00", until="2003-01-02T00:01")))) == 1
    assert rows(admin.see(of_project(project, since="2003-01-01T20:00", until="2003-01-02T00:00"))) == []


def test_pages_follow_each_other(admin: Person, sql: Sql, project: Project) -> None:
    sql.execute(INSERT, uuid4(), project.id, datetime(2004, 1, 1, tzinfo=UTC), "x@example.com", 120)
    pages = admin.all_pages(of_project(project, until="2005-01-01T00:00"))
    assert sum(len(rows(page)) for page in pages) == 120


def test_a_rare_filter_says_how_far_it_has_looked(admin: Person, sql: Sql) -> None:
    start, rare = datetime(2002, 1, 1, tzinfo=UTC), f"{uuid4().hex}@example.com"
    sql.execute(INSERT, uuid4(), uuid4(), start, rare, 1)
    sql.execute(INSERT, uuid4(), uuid4(), start + timedelta(hours=1), "other@example.com", MAX_SCANNED)
    page = admin.see(f"{AUDIT}?until=2002-01-03T00:00&actor={quote(rare)}")
    assert rows(page) == []
    assert "Searched back to 1 Jan 2002" in unescape(re.sub(r"<[^>]+>", "", page))
    assert len(rows(admin.see(next_page(page) or ""))) == 1


def test_what_has_no_words_is_shown_as_it_is(admin: Person, sql: Sql, project: Project) -> None:
    sql.execute(UNKNOWN, project.id)
    page = admin.see(of_project(project))
    (line,) = rows(page)
    assert missing(line, "be-bold", "<img onerror=1>") == []
    assert "<img onerror" not in page

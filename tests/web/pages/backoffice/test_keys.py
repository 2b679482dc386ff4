"""Settings, API, keys: made, shown once, used, revoked."""

import re
from collections.abc import Callable
from html import unescape

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.client import Project, integration_client
from tests.support.sql import Sql
from tests.support.staff_client import Person

KEYS = "/backoffice/settings/api/keys"
NEW = f"{KEYS}/new"
KEY = re.compile(r"hfk_[0-9A-Za-z]{42}")
LATEST = "select id, name, scopes, expires_at from api_key where name = $1"


def issue(person: Person, **fields: object) -> str:
    answer = person.submit(NEW, {"name": "A key", "scope": "integration", "reach": "all", **fields})
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.text


def uses(server: InProcessApp, key: str, path: str = "/v1/integration/projects") -> httpx.Response:
    with integration_client(server.address, key) as http:
        return http.get(path)


def test_a_new_key_is_shown_once_with_a_call_that_works(admin: Person, server: InProcessApp) -> None:
    page = issue(admin, name="Nightly sync")
    keys = set(KEY.findall(page))
    assert len(keys) == 1
    (key,) = keys
    shown = unescape(page)
    assert f'curl {server.address}/v1/integration/projects \\\n  -H "Authorization: Bearer {key}"' in shown
    assert f'data-copy="{key}"' in page
    assert uses(server, key).status_code == 200
    listed = admin.see(KEYS)
    assert "Nightly sync" in listed
    assert key not in listed
    assert f"{key[:8]}…" in listed


def test_what_was_chosen_is_what_the_key_opens(
    admin: Person, server: InProcessApp, project: Project, sql: Sql
) -> None:
    fields = {"scope": ["payments", "admin"], "reach": "some", "project": project.slug, "expires": "30"}
    (key,) = set(KEY.findall(issue(admin, name=project.slug, **fields)))
    row = sql.row(LATEST, project.slug)
    assert row["scopes"] == ["payments", "admin"]
    assert row["expires_at"] is not None
    assert uses(server, key).status_code == 403
    listed = uses(server, key, "/v1/backoffice/projects").json()["projects"]
    assert [one["slug"] for one in listed] == [project.slug]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"name": ""}, "This field is required."),
        ({"name": "x" * 201}, "A name is printable text of 1 to 200 characters."),
        ({"scope": []}, "A key has at least one scope."),
        ({"scope": "root"}, "A key has at least one scope."),
        ({"reach": "some"}, "Choose at least one project."),
        ({"reach": "some", "project": "no-such-project"}, "One of these projects is not there."),
        ({"expires": "0"}, "Choose one of these."),
        ({"expires": "a year"}, "Choose one of these."),
    ],
    ids=str,
)
def test_a_form_with_a_fault_comes_back_as_it_was_filled_in(
    admin: Person, sql: Sql, fields: dict[str, object], told: str
) -> None:
    before = sql.value("select count(*) from api_key")
    typed = {"name": "Typed “as is” <b>", "scope": "backoffice", "reach": "all", "expires": "90", **fields}
    answer = admin.submit(NEW, typed)
    assert answer.status_code == 422
    assert told in unescape(answer.text)
    assert KEY.search(answer.text) is None
    assert sql.value("select count(*) from api_key") == before
    if "name" not in fields:
        assert 'value="Typed “as is” &lt;b&gt;"' in answer.text


def test_every_fault_is_told_at_once(admin: Person) -> None:
    shown = unescape(admin.submit(NEW, {"name": "", "reach": "some", "expires": "7"}).text)
    for told in ("This field is required.", "A key has at least one scope.", "Choose at least one project."):
        assert told in shown


def test_an_integrator_issues_keys_for_integration_and_no_others(integrator: Person, sql: Sql) -> None:
    page = integrator.see(NEW)
    assert re.findall(r'name="scope" value="(\w+)"', page) == ["integration"]
    issue(integrator, name="of an integrator")
    for scope in ("payments", "backoffice", "admin"):
        answer = integrator.submit(NEW, {"name": "too much", "scope": scope, "reach": "all"})
        assert answer.status_code == 422
        assert f"You may not issue a key with the scope {scope}." in answer.text
    assert sql.rows(LATEST, "too much") == []


def test_a_revoked_key_opens_nothing_and_stands_with_those_that_ended(
    admin: Person, server: InProcessApp, sql: Sql
) -> None:
    (key,) = set(KEY.findall(issue(admin, name="To be revoked")))
    key_id = sql.row(LATEST, "To be revoked")["id"]
    page = admin.see(KEYS)
    assert "It has never been used." in page
    after = admin.done(f"{KEYS}/{key_id}/revoke")
    assert "The key To be revoked is revoked" in after
    assert key[:8] not in after
    assert uses(server, key).status_code == 401
    ended = admin.see(f"{KEYS}?state=ended")
    assert "To be revoked" in ended
    assert f"{KEYS}/{key_id}/revoke" not in ended


def test_an_integrator_revokes_only_what_an_integrator_could_make(
    admin: Person, integrator: Person, sql: Sql
) -> None:
    issue(admin, name="Of the back office", scope="backoffice")
    issue(integrator, name="Of the integrator")
    theirs, own = (sql.row(LATEST, name)["id"] for name in ("Of the back office", "Of the integrator"))
    page = integrator.see(KEYS)
    assert f"{KEYS}/{own}/revoke" in page
    assert f"{KEYS}/{theirs}/revoke" not in page
    assert "only an admin may revoke it" in integrator.done(f"{KEYS}/{theirs}/revoke")
    assert sql.value("select revoked_at from api_key where id = $1", theirs) is None
    assert "is revoked" in integrator.done(f"{KEYS}/{own}/revoke")


def test_who_revokes_is_told_when_the_key_was_last_used(
    admin: Person, server: InProcessApp, sql: Sql, new_project: Callable[[], Project]
) -> None:
    issue(admin, name="A busy key")
    sql.execute("update api_key set last_used_at = now() - interval '2 hours' where name = 'A busy key'")
    assert "It was last used 2 hours ago." in admin.see(KEYS)


def test_what_is_done_here_is_put_down_to_the_person(admin: Person, sql: Sql) -> None:
    issue(admin, name="For the trail")
    key_id = sql.row(LATEST, "For the trail")["id"]
    admin.done(f"{KEYS}/{key_id}/revoke")
    entries = sql.rows(
        "select action, actor_kind, actor_id from audit_entry where subject_id = $1 order by id", key_id
    )
    assert [(entry["action"], entry["actor_kind"], entry["actor_id"]) for entry in entries] == [
        ("create", "staff", admin.email),
        ("revoke", "staff", admin.email),
    ]


def test_keys_are_none_of_the_business_of_others(sales: Person, viewer: Person, sql: Sql) -> None:
    before = sql.value("select count(*) from api_key")
    for person in (sales, viewer):
        assert person.look(KEYS).status_code == 403
        assert person.look(NEW).status_code == 403
        assert person.submit(NEW, {"name": "x", "scope": "integration", "reach": "all"}).status_code == 403
        assert "/settings/api/keys" not in person.see("/backoffice/settings")
    assert sql.value("select count(*) from api_key") == before


def test_a_key_that_is_not_there_cannot_be_revoked(admin: Person) -> None:
    assert admin.submit(f"{KEYS}/{'0' * 8}-0000-4000-8000-{'0' * 12}/revoke").status_code == 404
    assert admin.submit(f"{KEYS}/nonsense/revoke").status_code == 422


def test_a_long_list_has_pages(admin: Person, sql: Sql) -> None:
    sql.execute(
        """
        insert into api_key (id, name, hint, key_hash, scopes, limited_to_projects, created_at, revoked_at)
        select gen_random_uuid(), 'old ' || number, 'hfk_xxxx', sha256(('old ' || number)::bytea), '{admin}',
            false, '2001-01-01', '2001-01-02'
        from generate_series(1, 120) as number
        """
    )
    found: set[str] = set()
    address: str | None = f"{KEYS}?state=ended"
    while address is not None:
        page = admin.see(address)
        found.update(re.findall(r"<bdi>(old \d+)</bdi>", page))
        onward = re.search(r'href="([^"]+)" rel="next"', page)
        address = unescape(onward[1]) if onward else None
    assert len(found) == 120


def test_a_name_is_just_a_name(admin: Person) -> None:
    name = "<img src=x onerror=alert(1)>"
    page = issue(admin, name=name) + admin.see(KEYS)
    assert "<img" not in page
    assert page.count("&lt;img src=x onerror=alert(1)&gt;") >= 2


def test_it_speaks_arabic(arab: Person) -> None:
    page = arab.see(KEYS) + arab.see(NEW) + issue(arab, name="مزامنة")
    assert "مفتاح جديد" in page
    assert "بعد ٣٠ يومًا" in page
    assert "مفتاحك الجديد" in page

"""Settings, API, keys: made, shown once, used, revoked."""

import re
from html import unescape
from uuid import UUID

import httpx

from tests.support.app import InProcessApp
from tests.support.client import Project, integration_client
from tests.support.sql import Sql
from tests.support.staff_client import Person, missing

KEYS = "/backoffice/settings/api/keys"
NEW = f"{KEYS}/new"
KEY = re.compile(r"hfk_[0-9A-Za-z]{42}")
LATEST = "select id, name, scopes, expires_at from api_key where name = $1"
EVIL = "<img src=x onerror=alert(1)>"


def issue(person: Person, **fields: object) -> str:
    answer = person.submit(NEW, {"name": "A key", "scope": "integration", "reach": "all", **fields})
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.text


def key_in(page: str) -> str:
    (key,) = set(KEY.findall(page))
    return str(key)


def uses(server: InProcessApp, key: str, path: str = "/v1/integration/projects") -> httpx.Response:
    with integration_client(server.address, key) as http:
        return http.get(path)


def test_a_new_key_is_shown_once_with_a_call_that_works(admin: Person, server: InProcessApp) -> None:
    page = issue(admin, name="Nightly sync")
    key = key_in(page)
    call = f'curl {server.address}/v1/integration/projects \\\n  -H "Authorization: Bearer {key}"'
    assert call in unescape(page)
    assert f'data-copy="{key}"' in page
    assert uses(server, key).status_code == 200
    listed = admin.see(KEYS)
    assert missing(listed, "Nightly sync", f"{key[:8]}…") == []
    assert key not in listed


def test_what_was_chosen_is_what_the_key_opens(
    admin: Person, server: InProcessApp, project: Project, sql: Sql
) -> None:
    fields = {"scope": ["payments", "admin"], "reach": "some", "project": project.slug, "expires": "30"}
    key = key_in(issue(admin, name=project.slug, **fields))
    row = sql.row(LATEST, project.slug)
    assert row["scopes"] == ["payments", "admin"]
    assert row["expires_at"] is not None
    assert uses(server, key).status_code == 403
    listed = uses(server, key, "/v1/backoffice/projects").json()["projects"]
    assert [one["slug"] for one in listed] == [project.slug]


def test_a_form_with_faults_comes_back_as_filled_in_and_tells_all(admin: Person, sql: Sql) -> None:
    before = sql.value("select count(*) from api_key")
    name = "Typed “as is” <b>"
    for fields, *told in (
        ({"name": "x" * 201}, "A name is printable text of 1 to 200 characters."),
        ({"name": name, "scope": "root"}, "A key needs at least one scope."),
        ({"name": name, "reach": "some", "project": "no-such"}, "One of these projects does not exist."),
        ({"name": name, "expires": "0"}, "Choose one of the options."),
        ({"name": name, "expires": "a year"}, "Choose one of the options."),
        (
            {"scope": [], "reach": "some"},
            "This field is required.",
            "at least one scope",
            "at least one project",
        ),
    ):
        page = admin.refused(NEW, {"scope": "backoffice", "reach": "all", "expires": "90", **fields})
        typed = f'value="{fields.get("name", "")}"'
        assert missing(unescape(page), typed, *told) == []
        assert missing(page, "<b>", "hfk_") == ["<b>", "hfk_"]
    assert sql.value("select count(*) from api_key") == before


def test_an_integrator_has_keys_for_integration_alone(admin: Person, integrator: Person, sql: Sql) -> None:
    assert re.findall(r'name="scope" value="(\w+)"', integrator.see(NEW)) == ["integration"]
    for scope in ("payments", "backoffice", "admin"):
        page = integrator.refused(NEW, {"name": "too much", "scope": scope, "reach": "all"})
        assert f"You cannot issue a key with the scope {scope}." in page
    assert sql.rows(LATEST, "too much") == []
    issue(admin, name="Of the back office", scope="backoffice")
    issue(integrator, name="Of the integrator")
    theirs, own = (sql.row(LATEST, name)["id"] for name in ("Of the back office", "Of the integrator"))
    page = integrator.see(KEYS)
    assert f"{KEYS}/{own}/revoke" in page
    assert f"{KEYS}/{theirs}/revoke" not in page
    assert "only an admin can revoke it" in integrator.done(f"{KEYS}/{theirs}/revoke")
    assert sql.value("select revoked_at from api_key where id = $1", theirs) is None
    assert "was revoked" in integrator.done(f"{KEYS}/{own}/revoke")


def test_a_revoked_key_opens_nothing(admin: Person, server: InProcessApp, sql: Sql) -> None:
    key = key_in(issue(admin, name="To be revoked"))
    key_id = sql.row(LATEST, "To be revoked")["id"]
    assert "It has never been used." in admin.see(KEYS)
    sql.execute("update api_key set last_used_at = now() - interval '2 hours' where id = $1", key_id)
    assert "It was last used 2 hours ago." in admin.see(KEYS)
    page = admin.done(f"{KEYS}/{key_id}/revoke")
    assert "The key To be revoked was revoked" in page
    assert key[:8] not in page
    assert uses(server, key).status_code == 401
    ended = admin.see(f"{KEYS}?state=ended")
    assert "To be revoked" in ended
    assert f"{KEYS}/{key_id}/revoke" not in ended
    admin.refused(f"{KEYS}/{UUID(int=1)}/revoke", status=404)
    admin.refused(f"{KEYS}/nonsense/revoke", status=422)
    done = sql.rows("select action, actor_id from audit_entry where subject_id = $1 order by id", key_id)
    assert [(one["action"], one["actor_id"]) for one in done] == [
        ("create", admin.email),
        ("revoke", admin.email),
    ]


def test_a_long_list_has_pages(admin: Person, sql: Sql) -> None:
    sql.execute(
        """
        insert into api_key (id, name, hint, key_hash, scopes, limited_to_projects, created_at, revoked_at)
        select gen_random_uuid(), 'old ' || number, 'hfk_xxxx', sha256(('old ' || number)::bytea), '{admin}',
            false, '2001-01-01', '2001-01-02'
        from generate_series(1, 120) as number
        """
    )
    pages = admin.all_pages(f"{KEYS}?state=ended")
    assert len(set(re.findall(r"<bdi>(old \d+)</bdi>", "".join(pages)))) == 120


def test_a_name_is_just_a_name_and_the_pages_speak_arabic(arab: Person) -> None:
    page = arab.see(NEW) + issue(arab, name=EVIL) + arab.see(KEYS)
    assert "<img" not in page
    assert page.count("&lt;img src=x onerror=alert(1)&gt;") >= 2
    assert missing(page, "مفتاح جديد", "بعد ٣٠ يومًا", "مفتاحك الجديد") == []

"""The profiles of sellers: checked, changed field by field, audited, and their logos."""

from base64 import b64encode
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.domain.test_seller import png
from tests.support.backoffice import BACKOFFICE, Desk, project_url
from tests.support.client import Project, succeeded
from tests.support.problems import invalid, problem
from tests.support.sql import Sql

SELLER = f"{BACKOFFICE}/seller"
PROFILE = {
    "legalName": "Palm Court Company",
    "commercialRegistration": "1010123456",
    "vatNumber": "310123456700003",
    "phone": "920001234",
    "whatsapp": "+966501234567",
    "email": "sales@palm.example",
    "bankName": "Palm Bank",
    "accountHolder": None,
    "iban": "SA0380000000608010167519",
    "terms": "No pets.\n\nNo lions.",
    "logo": None,
}
LOGO = "data:image/png;base64," + b64encode(png()).decode()


@pytest.fixture(autouse=True)
def clean(desk: Desk) -> Iterator[None]:
    """The profile of the installation is everybody's."""
    yield
    succeeded(desk.http.patch(SELLER, json=dict.fromkeys(PROFILE)))


def url_of(project: Project) -> str:
    return f"{project_url(project)}/seller"


def test_only_what_is_sent_changes_and_null_is_not_set(desk: Desk, project: Project) -> None:
    for url in (SELLER, url_of(project)):
        assert succeeded(desk.http.patch(url, json=PROFILE)) == PROFILE
        assert succeeded(desk.http.get(url)) == PROFILE
        changed = succeeded(desk.http.patch(url, json={"legalName": "Palm", "terms": " ", "iban": None}))
        assert changed == PROFILE | {"legalName": "Palm", "terms": None, "iban": None}
        assert succeeded(desk.http.patch(url, json={})) == succeeded(desk.http.get(url)) == changed


def test_numbers_are_taken_as_people_write_them(desk: Desk, project: Project) -> None:
    typed = {
        "commercialRegistration": "١٠١٠ ١٢٣٤٥٦",
        "vatNumber": " 310-1234-5670-0003 ",
        "iban": "sa03 8000 0000 6080 1016 7519",
        "whatsapp": "+966 (50) 123-4567",
        "terms": " One.\r\nTwo. ",
    }
    stored = succeeded(desk.http.patch(url_of(project), json=typed))
    assert {name: stored[name] for name in typed} == {
        "commercialRegistration": "1010123456",
        "vatNumber": "310123456700003",
        "iban": "SA0380000000608010167519",
        "whatsapp": "+966501234567",
        "terms": "One.\nTwo.",
    }


def test_every_fault_is_told_and_nothing_is_changed(desk: Desk, project: Project) -> None:
    wrong = {
        "legalName": "",
        "commercialRegistration": "101012345",
        "vatNumber": "210123456700003",
        "whatsapp": "0501234567",
        "email": "sales",
        "iban": "SA0380000000608010167518",
        "terms": "x" * 10_001,
        "logo": "https://logo.example/x.svg",
        "unknown": 1,
    }
    faults = problem(desk.http.patch(url_of(project), json=wrong), 422)["errors"]
    assert {fault["pointer"] for fault in faults} == {f"/{name}" for name in wrong}
    for logo in ("data:image/png;base64,AAAA", "data:image/png;base64,A", f"/p/logos/{'0' * 32}.png"):
        invalid(desk.http.patch(url_of(project), json={"logo": logo}), "/logo")
    assert not any(succeeded(desk.http.get(url_of(project))).values())


def test_a_logo_is_kept_by_its_path_and_loaded_for_good(
    desk: Desk, project: Project, http: httpx.Client
) -> None:
    path = succeeded(desk.http.patch(url_of(project), json={"logo": LOGO}))["logo"]
    assert succeeded(desk.http.patch(url_of(project), json={"legalName": "Palm"}))["logo"] == path
    loaded = http.get(path, headers={"Authorization": ""})
    assert (loaded.content, loaded.headers["content-type"]) == (png(), "image/png")
    assert "immutable" in loaded.headers["cache-control"]
    assert loaded.headers["x-content-type-options"] == "nosniff"
    assert http.get(path.replace("/logos/", "/logos/x")).status_code == 404
    assert succeeded(desk.http.patch(url_of(project), json={"logo": None}))["logo"] is None
    assert http.get(path).status_code == 200  # signed agreements show it


def test_a_change_is_audited_once(desk: Desk, project: Project, sql: Sql) -> None:
    for _ in range(2):
        succeeded(desk.http.patch(url_of(project), json={"legalName": "Palm"}))
    entries = sql.rows(
        "select before::text, after::text from audit_entry where action = 'settle' and subject_id = $1::uuid",
        project.id,
    )
    assert [tuple(entry.values()) for entry in entries] == [('{"legalName":null}', '{"legalName":"Palm"}')]


def test_viewers_read_and_a_limited_key_keeps_to_its_project(
    desk_with: Callable[..., Desk], project: Project
) -> None:
    problem(desk_with("integration").http.get(SELLER), 403)
    limited = desk_with("backoffice", projects=[project.slug])
    problem(limited.http.patch(SELLER, json={"iban": PROFILE["iban"]}), 404)
    assert succeeded(limited.http.patch(url_of(project), json={"legalName": "Ours"}))["legalName"] == "Ours"
    problem(limited.http.patch(url_of(Project("", "elsewhere", "")), json={}), 404)
    assert not any(succeeded(limited.http.get(SELLER)).values())

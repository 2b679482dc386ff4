"""Forms that cannot be taken back: each asks first, and one that shows a secret creates it once."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex

import httpx
import pytest

from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.transitions import TRANSITIONS, Caller
from holdfast.web.pages.routes import PagePath
from tests.support.app import InProcessApp
from tests.support.backoffice import Desk
from tests.support.client import Unit
from tests.support.in_process import all_routes, app_with
from tests.support.sql import Sql
from tests.support.staff_client import People, Person, hidden_fields
from tests.support.webhooks import NOBODY_LISTENS, Registrar
from tests.web.pages.backoffice.unit_pages import booking_page, unit_page
from tests.web.pages.storefront.buyers import Buyer

UNIT = "/backoffice/projects/{slug}/units/{code}"
BOOKING = "/backoffice/bookings/{reference}"
ENDPOINT = "/backoffice/settings/api/webhooks/{id}"
ACCOUNT = "/backoffice/account"
KEYS = "/backoffice/settings/api/keys"
STAFF = "/backoffice/staff"
OF_BUYERS = "/p/{slug}/bookings/{reference}"

ASKS = {
    *(f"{UNIT}/{row.action}" for row in TRANSITIONS if Caller.ADMIN in row.callers),
    *(f"{BOOKING}/{action}" for action in BookingAction),
    f"{KEYS}/{{id}}/revoke",
    f"{ENDPOINT}/rotate",
    f"{ENDPOINT}/remove",
    "/backoffice/deliveries/{id}/resend",
    f"{STAFF}/{{id}}/reset",
    f"{STAFF}/{{id}}/disable",
    f"{ACCOUNT}/second-factor/remove",
    f"{ACCOUNT}/sign-out-elsewhere",
    f"{ACCOUNT}/sign-out-everywhere",
    f"{OF_BUYERS}/cancel",
}
"""Shown in a question that says what will happen."""
ASKED_BY_THEIR_PAGE = {
    f"{ENDPOINT}/recover", "/backoffice/projects/{slug}/import/{id}/commit", f"{OF_BUYERS}/sign",
}  # fmt: skip
"""The page before shows what will happen, and its button does it."""
FILLED_IN = {
    "/backoffice/new-project", "/backoffice/projects/{slug}/settings", "/backoffice/projects/{slug}/layout",
    "/backoffice/settings/seller", "/backoffice/projects/{slug}/seller",
    "/backoffice/projects/{slug}/import", "/backoffice/projects/{slug}/import/{id}/check",
    f"{KEYS}/new", "/backoffice/settings/api/webhooks/new", f"{ENDPOINT}/edit", f"{STAFF}/new",
    f"{STAFF}/{{id}}/role", f"{ACCOUNT}/name", f"{ACCOUNT}/password", f"{ACCOUNT}/preferences",
    f"{ACCOUNT}/second-factor", f"{ACCOUNT}/second-factor/confirm", "/backoffice/set-up/{token}",
}  # fmt: skip
"""Forms with fields."""
TAKEN_BACK_EASILY = {
    "/backoffice/sign-in", "/backoffice/sign-in/code", "/backoffice/sign-in/language", "/backoffice/sign-out",
    "/backoffice/announcements/seen", f"{ENDPOINT}/pause", f"{ENDPOINT}/resume", f"{ENDPOINT}/ping",
    f"{STAFF}/{{id}}/enable", "/p/{slug}/units/{code}/hold", f"{OF_BUYERS}/pay", OF_BUYERS,
}  # fmt: skip

QUESTION = re.compile(r"<details[^>]*>\s*<summary.*?</details>", re.DOTALL)
FORM = re.compile(r'<form method="post" action="([^"]+)"')
PARAMETER = re.compile(r"\{(\w+)\}")
REGISTERED = re.compile(r'action="/backoffice/settings/api/webhooks/([^"/]+)/ping"')
SECRET = re.compile(r"hfk_[0-9A-Za-z]{42}|hfs_[0-9A-Za-z_-]{43}|hft_[\w-]{32}|/set-up/[\w-]{43}")


def test_every_form_is_known_to_ask_first_or_to_be_harmless() -> None:
    places = (route.endpoint for route in all_routes(app_with().routes))
    posts = {page.path for page in places if isinstance(page, PagePath) and "POST" in page.pages}
    groups = (ASKS, ASKED_BY_THEIR_PAGE, FILLED_IN, TAKEN_BACK_EASILY)
    assert posts == set().union(*groups)
    assert len(posts) == sum(map(len, groups))


ANOTHER_SESSION = """
    insert into staff_session (id, token_hash, staff_id, address, agent)
    values (gen_random_uuid(), sha256(gen_random_uuid()::text::bytea), $1::text::uuid, '127.0.0.1', 'tests')
"""


@pytest.fixture
def buyer(server: InProcessApp) -> Iterator[Buyer]:
    made = Buyer(server.address)
    yield made
    made.close()


def every_page(
    admin: Person, buyer: Buyer, new_unit: Callable[..., Unit], desk: Desk, registrar: Registrar, sql: Sql
) -> Iterator[str]:
    """Pages on which, taken together, every question is asked."""
    for number, state in enumerate(("held", "signed", "reserved", "sold", "refund_due")):
        unit = new_unit(f"A-{number}")
        held = getattr(desk, state)(unit)
        yield admin.see(unit_page(unit))
        yield admin.see(booking_page(held))
    unit = new_unit("B-1")
    yield admin.see(unit_page(unit))
    desk.did(unit, "archive")
    yield admin.see(unit_page(unit))
    endpoint = registrar.add(paused=True)
    yield admin.see(f"/backoffice/deliveries/{registrar.ping(endpoint['id'])['id']}")
    yield admin.see(ENDPOINT.format(id=endpoint["id"]))
    yield admin.see(KEYS)
    sql.execute(ANOTHER_SESSION, admin.staff_id)
    yield admin.see(ACCOUNT)
    sql.execute("update staff set second_factor_sealed = 'x' where id = $1::text::uuid", admin.staff_id)
    yield admin.see(ACCOUNT)
    sql.execute("update staff set second_factor_sealed = null where id = $1::text::uuid", admin.staff_id)
    invited = admin.submit(
        f"{STAFF}/new", {"email": f"{token_hex(4)}@example.com", "name": "N", "role": "sales"}
    )
    yield invited.text
    yield admin.see(f"/backoffice/projects/{unit.project.slug}/layout")
    for number in range(3):
        yield buyer.see(buyer.hold(new_unit(f"C-{number}")))
    yield buyer.refused_hold(new_unit("C-9"), httpx.codes.TOO_MANY_REQUESTS)


def test_whatever_cannot_be_taken_back_is_done_by_a_question_that_says_what_will_happen(
    admin: Person, buyer: Buyer, new_unit: Callable[..., Unit], desk: Desk, registrar: Registrar, sql: Sql
) -> None:
    patterns = {path: re.compile(PARAMETER.sub("[^/]+", path)) for path in ASKS}
    asked: set[str] = set()
    for page in every_page(admin, buyer, new_unit, desk, registrar, sql):
        questions = QUESTION.findall(page)
        for question in questions:
            found = [
                path for path in ASKS for action in FORM.findall(question) if patterns[path].fullmatch(action)
            ]
            if found:
                assert "This will " in question, question
                assert question.count("<button") == 2, question
                assert "data-close" in question
                asked.update(found)
        for action in FORM.findall(QUESTION.sub("", page)):
            assert not any(pattern.fullmatch(action) for pattern in patterns.values()), action
        if "/layout" in page:
            assert 'value="reset"' not in QUESTION.sub("", page)
    assert asked == ASKS


Form = tuple[str, dict[str, object]]


def form_for_a_key(admin: Person, *_: object) -> Form:
    path = f"{KEYS}/new"
    typed = {"name": f"Sync {token_hex(4)}", "scope": "integration", "reach": "all"}
    return path, {**hidden_fields(admin.see(path), path), **typed}


def form_for_an_endpoint(admin: Person, *_: object) -> Form:
    path = "/backoffice/settings/api/webhooks/new"
    typed = {"url": NOBODY_LISTENS, "event": "unit.sold", "reach": "all", "maxInFlight": "32"}
    return path, {**hidden_fields(admin.see(path), path), **typed}


def form_for_a_person(admin: Person, *_: object) -> Form:
    typed = {"email": f"{token_hex(4)}@example.com", "name": "New One", "role": "sales"}
    (path,) = re.findall(f'action="({STAFF}/new)"', page := admin.see(f"{STAFF}/new"))
    fields = dict(re.findall(r'type="hidden" name="(csrf)" value="([^"]+)"', page))
    return path, {**fields, **typed}


def form_for_a_reset(admin: Person, *_: object) -> Form:
    page = admin.submit(*form_for_a_person(admin)).text
    (path,) = re.findall(rf'action="({STAFF}/[^"]+/reset)"', page)
    return path, {**hidden_fields(page, path)}


def form_for_a_rotation(admin: Person, registrar: Registrar, *_: object) -> Form:
    page = ENDPOINT.format(id=registrar.add()["id"])
    return f"{page}/rotate", {**hidden_fields(admin.see(page), f"{page}/rotate")}


def form_for_a_link(admin: Person, registrar: Registrar, stored: Unit, desk: Desk) -> Form:
    page = booking_page(desk.signed(stored))
    return f"{page}/reissue-link", {**hidden_fields(admin.see(page), f"{page}/reissue-link")}


# Holds that other tests left behind lapse at any time, and that is audited too.
COUNT = """
    select (select count(*) from api_key) + (select count(*) from endpoint) + (select count(*) from staff)
        + (select count(*) from audit_entry where actor_kind <> 'clock')
"""


@pytest.mark.parametrize(
    ("form", "told"),
    [
        (form_for_a_key, "was already created"),
        (form_for_an_endpoint, "was already registered"),
        (form_for_a_person, "was already added"),
        (form_for_a_reset, "A link is shown only once"),
        (form_for_a_rotation, "was already rotated"),
        (form_for_a_link, "A new link was already made"),
    ],
)
def test_a_form_that_shows_a_secret_creates_it_once(
    admin: Person, registrar: Registrar, stored: Unit, desk: Desk, sql: Sql,
    form: Callable[..., Form], told: str,
) -> None:  # fmt: skip
    path, fields = form(admin, registrar, stored, desk)
    with ThreadPoolExecutor(3) as clicks:
        answers = list(clicks.map(lambda _: admin.submit(path, fields), range(3)))
    (shown,) = (answer for answer in answers if answer.status_code < httpx.codes.MULTIPLE_CHOICES)
    assert len(set(SECRET.findall(shown.text))) == 1
    assert shown.headers["cache-control"] == "no-store"
    before = sql.value(COUNT)
    reloaded = admin.submit(path, fields)
    assert reloaded.status_code == httpx.codes.SEE_OTHER
    page = admin.see(reloaded.headers["location"])
    assert told in page
    if form in (form_for_an_endpoint, form_for_a_person):
        assert reloaded.headers["location"] in shown.text, "it leads to what was made"
    assert SECRET.findall(page) == []
    assert sql.value(COUNT) == before
    if form is form_for_an_endpoint:
        registrar.added += REGISTERED.findall(shown.text)


def test_a_form_that_is_refused_can_be_corrected_and_sent_again(admin: Person) -> None:
    path, fields = form_for_a_key(admin)
    assert "wrong" in admin.refused(path, {**fields, "name": ""})
    assert admin.submit(path, fields).status_code == httpx.codes.CREATED


def test_a_token_that_created_a_key_creates_another_thing_at_another_form(
    admin: Person, registrar: Registrar
) -> None:
    path, fields = form_for_a_key(admin)
    assert admin.submit(path, fields).status_code == httpx.codes.CREATED
    path, other = form_for_an_endpoint(admin)
    registered = admin.submit(path, {**other, "csrf": fields["csrf"]})
    assert registered.status_code == httpx.codes.CREATED
    registrar.added += REGISTERED.findall(registered.text)


def test_a_form_of_an_endpoint_that_was_removed_registers_no_other(admin: Person, sql: Sql) -> None:
    path, fields = form_for_an_endpoint(admin)
    (endpoint_id,) = REGISTERED.findall(admin.submit(path, fields).text)
    admin.done(f"{ENDPOINT.format(id=endpoint_id)}/remove")
    before = sql.value(COUNT)
    assert admin.submit(path, fields).headers["location"].endswith(endpoint_id)
    assert sql.value(COUNT) == before


def test_a_form_of_an_earlier_session_creates_nothing(admin: Person, people: People, sql: Sql) -> None:
    path, fields = form_for_a_key(admin)
    before = sql.value(COUNT)
    assert "hfk_" not in people.signed_in().refused(path, fields, httpx.codes.FORBIDDEN)
    assert "hfk_" not in people.stranger().submit(path, fields, on="/backoffice/sign-in").text
    assert sql.value(COUNT) == before + 1  # the person who has signed in


def test_a_form_without_what_its_page_has_shown_replaces_no_secret(
    admin: Person, registrar: Registrar, stored: Unit, desk: Desk
) -> None:
    for form in (form_for_a_reset, form_for_a_rotation, form_for_a_link):
        path, _ = form(admin, registrar, stored, desk)
        answer = admin.submit(path)
        assert (answer.status_code, SECRET.findall(answer.text)) == (httpx.codes.SEE_OTHER, [])

"""Who may call, with what, for how long, and how often."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from holdfast.domain.api_key import new_key_text
from tests.support.app import InProcessApp, running_app, transport_to
from tests.support.bodies import full, minimal
from tests.support.client import Project, Unit, integration_client
from tests.support.keys import Keys
from tests.support.problems import problem
from tests.support.server import wait_until
from tests.support.sql import Sql

PROJECTS = "/v1/integration/projects"
IS_OVER = "select expires_at <= clock_timestamp() from api_key where id = $1"
WAIT = (
    "select pg_sleep(extract(epoch from expires_at - clock_timestamp()) + 0.001) from api_key where id = $1"
)
LAST_USE = "select last_used_at from api_key where id = $1"
Call = Callable[[str | None], httpx.Response]


@pytest.fixture
def call(public: httpx.Client) -> Call:
    return lambda credentials: public.get(
        PROJECTS, headers={} if credentials is None else {"Authorization": credentials}
    )


def test_no_credentials_are_challenged_and_what_lies_below_a_guarded_path_is_not_told(
    call: Call, public: httpx.Client
) -> None:
    for credentials in (None, "Basic dXNlcjpwYXNz"):
        response = call(credentials)
        problem(response, 401)
        challenge = response.headers["www-authenticate"]
        assert challenge.split()[0] == "Bearer"
        assert "error=" not in challenge
    for prefix in ("/v1/integration", "/v1/backoffice"):
        for below in (prefix, f"{prefix}/", f"{prefix}/nowhere"):
            problem(public.get(below), 401)
        problem(public.get(f"{prefix}x"), 404)


def test_nonsense_is_refused(public: httpx.Client, api_key: str) -> None:
    nonsense = ["", " ", "Bearer", "Bearer ", "Bearer x", "Bearer \xe9\xff", "Bearer " + "x" * 5000]
    for place in (-1, len(api_key) // 2):
        characters = list(api_key)
        characters[place] = "a" if api_key[place] != "a" else "b"
        nonsense.append("Bearer " + "".join(characters))
    for credentials in (*nonsense, "Bearer a b"):
        response = public.get(PROJECTS, headers={b"Authorization": credentials.encode("latin-1")})
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
    for name in ("access_token", "key", "api_key"):
        response = public.get(PROJECTS, params={name: api_key})
        problem(response, 401)
        assert 'error="invalid_token"' in response.headers["www-authenticate"]


def test_the_scheme_is_written_any_way(call: Call, api_key: str) -> None:
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert call(f"{scheme} {api_key}").status_code == 200


def test_unknown_revoked_and_expired_keys_get_one_same_answer(
    call: Call, keys: Keys, sql: Sql, api_key: str
) -> None:
    revoked, expired = keys.issue(), keys.issue(expires_in_days=0.01 / 86_400)
    keys.revoke(revoked)
    sql.value(WAIT, expired.id)
    unknown = api_key[:-8] + ("A" * 8 if not api_key.endswith("A" * 8) else "B" * 8)
    answers = [call(f"Bearer {text}") for text in (expired.text, unknown, "nonsense")]
    # Processes may know it for a second more.
    wait_until(lambda: call(f"Bearer {revoked.text}").status_code != 200)
    answers.append(call(f"Bearer {revoked.text}"))
    bodies = [problem(answer, 401) for answer in answers]
    for body in bodies:
        body.pop("requestId")
    assert all(body == bodies[0] for body in bodies)
    (challenge,) = {answer.headers["www-authenticate"] for answer in answers}
    assert 'error="invalid_token"' in challenge


def test_a_key_works_until_its_time_and_not_after(call: Call, keys: Keys, sql: Sql) -> None:
    key = keys.issue(expires_in_days=1 / 86_400)
    status = call(f"Bearer {key.text}").status_code
    assert status == 200 or sql.value(IS_OVER, key.id)
    sql.value(WAIT, key.id)
    problem(call(f"Bearer {key.text}"), 401)


def test_only_a_hash_and_a_hint_of_the_key_are_stored(sql: Sql, keys: Keys) -> None:
    key = keys.issue()
    stored = sql.value("select api_key::text from api_key where id = $1", key.id)
    assert key.text not in stored
    assert key.text.encode().hex() not in stored
    assert len(sql.value("select hint from api_key where id = $1", key.id)) < len(key.text) / 2


def test_the_last_use_is_written_once_a_minute_at_most(call: Call, keys: Keys, sql: Sql) -> None:
    key = keys.issue()
    assert sql.value(LAST_USE, key.id) is None
    wait_until(lambda: call(f"Bearer {key.text}").is_success and sql.value(LAST_USE, key.id) is not None)
    first = sql.value(LAST_USE, key.id)
    for _ in range(10):
        call(f"Bearer {key.text}")
    again = sql.value(LAST_USE, key.id)
    assert again == first or (again - first).total_seconds() >= 60


def test_a_refused_caller_stores_nothing(stored: Unit, public: httpx.Client) -> None:
    etag = stored.etag
    problem(Unit(public, stored.project, stored.code).put(full(type="villa")), 401)
    assert stored.etag == etag


@pytest.fixture(scope="module")
def limited_server(database_url: str) -> Iterator[InProcessApp]:
    settings = {"HOLDFAST_DATABASE_URL": database_url, "HOLDFAST_RATE_LIMIT": "1"}
    with running_app(settings, background_work=False) as app:
        yield app


def test_too_many_calls_with_a_key_are_refused_and_store_nothing(
    limited_server: InProcessApp, keys: Keys, http: httpx.Client, project: Project
) -> None:
    with integration_client(limited_server.address, keys.issue().text) as hasty:
        with ThreadPoolExecutor(10) as pool:
            codes = [f"A-{n}" for n in range(10)]
            put = pool.map(lambda code: Unit(hasty, project, code).put(minimal()), codes)
            answers = dict(zip(codes, put, strict=True))
        refused = [answer for answer in answers.values() if answer.status_code != 201]
        assert 0 < len(refused) < 10
        for answer in refused:
            problem(answer, 429)
            assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert {hasty.get("/healthz").status_code for _ in range(40)} == {200}
    stored = {unit["code"] for unit in http.get(project.units_url).json()["units"]}
    assert stored == {code for code, answer in answers.items() if answer.status_code == 201}
    with integration_client(limited_server.address, keys.issue().text) as other:
        assert other.get(PROJECTS).status_code == 200
    # Without the setting there is no limit.
    assert {http.get(PROJECTS).status_code for _ in range(40)} == {200}


@pytest.mark.parametrize(
    "peers", [["127.0.0.1"], ["2001:db8::1", "2001:db8::2"]], ids=["machine", "household"]
)
def test_wrong_keys_of_an_address_are_limited_and_a_valid_key_is_always_served(
    limited_server: InProcessApp, keys: Keys, peers: list[str]
) -> None:
    def ask(peer: str, text: str | None, query: str = "") -> httpx.Response:
        transport = transport_to(limited_server.address, peer)
        headers = {} if text is None else {"Authorization": f"Bearer {text}"}
        with httpx.Client(base_url=limited_server.address, transport=transport) as client:
            return client.get(PROJECTS + query, headers=headers)

    revoked = keys.issue()
    keys.revoke(revoked)
    wrong = [new_key_text(), "nonsense", revoked.text, "x" * 5000]
    for at in range(20):
        problem(ask(peers[at % len(peers)], None), 401)
        problem(ask(peers[at % len(peers)], wrong[at % len(wrong)]), 401)
    for refused in (*(ask(peers[0], text) for text in wrong), ask(peers[0], None, "?api_key=wrong")):
        assert "wrong keys" in problem(refused, 429)["detail"]
        assert 1 <= int(refused.headers["retry-after"]) <= 60
    problem(ask(peers[0], None), 401)
    assert ask(peers[0], keys.issue().text).status_code == 200
    problem(ask("192.0.2.9", "nonsense"), 401)

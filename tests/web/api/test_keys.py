"""Who may call, with what, and for how long."""

import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.bodies import full
from tests.support.client import Unit, integration_client
from tests.support.keys import Key, Keys
from tests.support.problems import problem
from tests.support.sql import Sql

PROJECTS = "/v1/integration/projects"


@pytest.fixture
def call(server: InProcessApp) -> Iterator[Callable[[str | None], httpx.Response]]:
    with integration_client(server.address, None) as http:
        yield lambda credentials: http.get(
            PROJECTS, headers={} if credentials is None else {"Authorization": credentials}
        )


Call = Callable[[str | None], httpx.Response]


def test_no_credentials_are_challenged(call: Call) -> None:
    response = call(None)
    problem(response, 401)
    challenge = response.headers["www-authenticate"]
    assert challenge.split()[0] == "Bearer"
    assert "error=" not in challenge


@pytest.mark.parametrize("prefix", ["/v1/integration", "/v1/backoffice"])
def test_what_lies_below_a_guarded_path_is_not_told_and_what_lies_beside_it_is(
    anonymous: httpx.Client, prefix: str
) -> None:
    for below in (prefix, f"{prefix}/", f"{prefix}/nowhere"):
        problem(anonymous.get(below), 401)
    problem(anonymous.get(f"{prefix}x"), 404)


def test_another_scheme_is_no_credential(call: Call) -> None:
    response = call("Basic dXNlcjpwYXNz")
    problem(response, 401)
    assert response.headers["www-authenticate"].split()[0] == "Bearer"


@pytest.mark.parametrize(
    "credentials",
    ["", " ", "Bearer", "Bearer ", "Bearer x", "Bearer \xe9\xff", "Bearer " + "x" * 5000, "Bearer a b"],
)
def test_nonsense_is_refused(anonymous: httpx.Client, credentials: str) -> None:
    response = anonymous.get(PROJECTS, headers={b"Authorization": credentials.encode("latin-1")})
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")


def test_the_scheme_is_written_any_way(call: Call, api_key: str) -> None:
    assert call(f"bearer {api_key}").status_code == 200
    assert call(f"BEARER {api_key}").status_code == 200


def refused_in_time(call: Call, key: Key) -> httpx.Response:
    """The refusal of a key that was just revoked: a second is allowed."""
    over = time.monotonic() + 1
    while (response := call(f"Bearer {key.text}")).status_code == 200 and time.monotonic() < over:
        pass
    return response


def wait_until_expired(sql: Sql, key: Key) -> None:
    left = "extract(epoch from expires_at - clock_timestamp()) + 0.001"
    sql.value(f"select pg_sleep({left}) from api_key where id = $1", key.id)


def test_unknown_revoked_and_expired_keys_get_one_same_answer(
    call: Call, keys: Keys, sql: Sql, api_key: str
) -> None:
    revoked, expired = keys.issue(), keys.issue(expires_in_days=0.01 / 86_400)
    keys.revoke(revoked)
    wait_until_expired(sql, expired)
    unknown = api_key[:-8] + ("A" * 8 if not api_key.endswith("A" * 8) else "B" * 8)
    answers = [call(f"Bearer {text}") for text in (expired.text, unknown, "nonsense")]
    answers.append(refused_in_time(call, revoked))
    bodies = [problem(answer, 401) for answer in answers]
    for body in bodies:
        body.pop("requestId")
    assert all(body == bodies[0] for body in bodies)
    challenges = {answer.headers["www-authenticate"] for answer in answers}
    assert len(challenges) == 1
    assert 'error="invalid_token"' in challenges.pop()


def test_a_key_works_until_its_time_and_not_after(call: Call, keys: Keys, sql: Sql) -> None:
    key = keys.issue(expires_in_days=1 / 86_400)
    until_just_before = "extract(epoch from expires_at - clock_timestamp()) - 0.2"
    sql.value(f"select pg_sleep({until_just_before}) from api_key where id = $1", key.id)
    assert call(f"Bearer {key.text}").status_code == 200
    wait_until_expired(sql, key)
    problem(call(f"Bearer {key.text}"), 401)


@pytest.mark.parametrize("scope", ["payments", "backoffice", "admin"])
def test_a_key_without_the_scope_is_refused(call: Call, keys: Keys, scope: str) -> None:
    response = call(f"Bearer {keys.issue(scopes=[scope]).text}")
    problem(response, 403)
    assert 'error="insufficient_scope"' in response.headers["www-authenticate"]


def test_one_of_several_scopes_is_enough(call: Call, keys: Keys) -> None:
    assert call(f"Bearer {keys.issue(scopes=['payments', 'integration']).text}").status_code == 200


def test_integration_is_the_default_scope_of_the_command(api_key: str, call: Call) -> None:
    assert call(f"Bearer {api_key}").status_code == 200


@pytest.mark.parametrize("name", ["access_token", "key", "api_key"])
def test_a_key_in_the_query_is_no_credential(anonymous: httpx.Client, api_key: str, name: str) -> None:
    response = anonymous.get(PROJECTS, params={name: api_key})
    problem(response, 401)
    assert 'error="invalid_token"' in response.headers["www-authenticate"]


def test_a_damaged_key_is_unknown(call: Call, api_key: str) -> None:
    for place in (-1, len(api_key) // 2):
        other = "a" if api_key[place] != "a" else "b"
        characters = list(api_key)
        characters[place] = other
        problem(call("Bearer " + "".join(characters)), 401)


def test_only_a_hash_of_the_key_is_stored(sql: Sql, api_key: str) -> None:
    stored = sql.value("select string_agg(api_key::text, ' ') from api_key")
    assert api_key not in stored
    assert api_key.encode().hex() not in stored


def test_the_hint_does_not_give_the_key_away(sql: Sql, keys: Keys) -> None:
    key = keys.issue()
    hint = sql.value("select hint from api_key where id = $1", key.id)
    assert len(hint) < len(key.text) / 2


def test_the_last_use_is_written(server: InProcessApp, keys: Keys, sql: Sql) -> None:
    key = keys.issue()
    last_used = "select last_used_at from api_key where id = $1"
    assert sql.value(last_used, key.id) is None
    with integration_client(server.address, key.text) as http:
        http.get(PROJECTS)
    used = "select pg_sleep(0.05), last_used_at from api_key where id = $1"
    written = any(sql.row(used, key.id)["last_used_at"] is not None for _ in range(100))
    assert written


def test_the_last_use_is_written_once_a_minute_at_most(server: InProcessApp, keys: Keys, sql: Sql) -> None:
    key = keys.issue()
    moments = set()
    with integration_client(server.address, key.text) as http:
        for _ in range(20):
            http.get(PROJECTS)
            moments.add(
                sql.row("select pg_sleep(0.02), last_used_at from api_key where id = $1", key.id)[
                    "last_used_at"
                ]
            )
    assert len(moments - {None}) <= 1


def test_a_refused_caller_stores_nothing(stored: Unit, anonymous: httpx.Client) -> None:
    etag = stored.etag
    problem(Unit(anonymous, stored.project, stored.code).put(full(type="villa")), 401)
    assert stored.etag == etag

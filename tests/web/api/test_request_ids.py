"""Every answer carries a request id, which is in the logs too."""

import json
import time
from uuid import uuid4

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.client import Unit, integration_client
from tests.support.server import RunningServer


@pytest.mark.parametrize(
    "path", ["/healthz", "/nowhere", "/v1/integration/projects", "/docs", "/openapi.json"]
)
def test_every_answer_has_one(anonymous: httpx.Client, path: str) -> None:
    assert len(anonymous.get(path).headers["x-request-id"]) >= 8


def test_every_request_has_its_own(http: httpx.Client) -> None:
    ids = {http.get("/healthz").headers["x-request-id"] for _ in range(20)}
    assert len(ids) == 20


@pytest.mark.parametrize(
    "given", ["5f0e6b1c-2f0a-4a57-9a53-0b7c1f4d2e88", "abc-123", "01HZX3J8Y8Q6T4Z5R7W9V2B3N4", "req_8f3a.2"]
)
def test_a_sane_id_of_the_caller_is_kept(stored: Unit, given: str) -> None:
    assert stored.get(X_Request_Id=given).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "x" * 1000, "two words", "a\tb", '"<script>"', "\xff\xfe", "{}"])
def test_any_other_id_is_replaced(stored: Unit, given: str) -> None:
    response = stored.http.get(stored.url, headers={b"X-Request-Id": given.encode("latin-1")})
    assert response.status_code == 200
    assert response.headers["x-request-id"] not in ("", given)


def test_of_two_ids_the_last_one_counts(stored: Unit) -> None:
    response = stored.http.get(stored.url, headers=[("X-Request-Id", "first"), ("X-Request-Id", "second")])
    assert response.headers.get_list("x-request-id") == ["second"]


def test_the_problem_names_the_id_of_the_caller(unit: Unit) -> None:
    given = str(uuid4())
    assert unit.get(X_Request_Id=given).json()["requestId"] == given


def test_the_id_is_in_the_log_and_the_key_is_not(server: InProcessApp, stored: Unit, api_key: str) -> None:
    given = str(uuid4())
    stored.patch({"bedrooms": 7}, X_Request_Id=given)
    assert given in log_with(server, given)
    assert api_key not in server.log.read_text()


def log_with(server: InProcessApp, text: str) -> str:
    over = time.monotonic() + 5
    while text not in (log := server.log.read_text()) and time.monotonic() < over:
        time.sleep(0.02)
    return log


def test_every_line_of_the_log_is_an_object_of_its_own(
    real_server: RunningServer, stored: Unit, api_key: str
) -> None:
    with integration_client(real_server.address, api_key) as http:
        http.put(stored.url, content="nonsense")
        http.get(f"/nowhere/{uuid4()}")
    for line in real_server.log.read_text().splitlines():
        assert {"time", "level", "message"} <= set(json.loads(line))

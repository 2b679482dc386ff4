"""What every refusal must look like, whatever it refuses."""

from typing import Any

import httpx


def problem(response: httpx.Response, status: int) -> dict[str, Any]:
    """The problem of this response, held against RFC 9457 and our own additions."""
    assert response.status_code == status, f"{response.status_code}: {response.text}"
    assert response.headers["content-type"].split(";")[0] == "application/problem+json"
    body: dict[str, Any] = response.json()
    check_shape(body, status)
    assert body["requestId"] == response.headers["x-request-id"]
    return body


def check_shape(body: dict[str, Any], status: int) -> None:
    assert body["status"] == status
    assert body["type"].startswith("/problems/")
    assert len(body["type"]) > len("/problems/")
    assert isinstance(body["title"], str)
    assert body["title"]
    assert isinstance(body["detail"], str)
    assert body["detail"]
    for error in body.get("errors", []):
        assert set(error) == {"pointer", "message"}
        assert isinstance(error["message"], str)
        assert error["message"]


def invalid(response: httpx.Response, *pointers: str) -> dict[str, Any]:
    """A 422 that names exactly these faults."""
    body = problem(response, 422)
    assert sorted({error["pointer"] for error in body["errors"]}) == sorted(pointers)
    return body


def conflict(response: httpx.Response, reason: str, current: str, *fields: str) -> dict[str, Any]:
    body = problem(response, 409)
    assert (body["reason"], body["currentStatus"]) == (reason, current)
    if fields:
        assert sorted(body["fields"]) == sorted(fields)
    return body

"""What every refusal must look like, whatever it refuses."""

import re
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
    assert re.match("/problems/.", body["type"])
    errors = body.get("errors", [])
    assert all(set(error) == {"pointer", "message"} for error in errors)
    for text in (body["title"], body["detail"], *(error["message"] for error in errors)):
        assert isinstance(text, str)
        assert text


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

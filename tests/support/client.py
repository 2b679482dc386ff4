"""A small client of the integration API: one unit is one object."""

import ssl
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import httpx

from tests.support import exact_json
from tests.support.app import transport_to

Send = Callable[..., httpx.Response]
"""How a bulk call is sent: ``put_array`` or ``put_lines``."""

JSON = "application/json"
NDJSON = "application/x-ndjson"
# httpx reads every certificate authority for each new client, though nothing here speaks TLS.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def integration_client(address: str, key: str | None, *, may_fail: bool = False) -> httpx.Client:
    """Every answer is held against the rules that no answer may break, unless it may fail."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    hooks = [] if may_fail else [_obeys_the_rules_of_every_answer]
    return httpx.Client(
        base_url=address,
        headers=headers,
        timeout=60,
        verify=NO_TLS,
        transport=transport_to(address),
        event_hooks={"response": hooks},
    )


def _obeys_the_rules_of_every_answer(response: httpx.Response) -> None:
    assert response.headers.get("x-request-id"), f"no X-Request-Id on {response.request.url}"
    is_no_fault_of_ours(response)


def is_no_fault_of_ours(response: httpx.Response) -> None:
    assert response.status_code < 500, (
        f"{response.status_code} on {response.request.url}: {response.read()!r}"
    )


def exact(response: httpx.Response) -> Any:
    return exact_json.read(response.text)


def succeeded(response: httpx.Response, status: int = 200) -> dict[str, Any]:
    assert response.status_code == status, response.text
    return dict(exact(response))


def with_body(body: object) -> dict[str, Any]:
    """For httpx: the body as JSON, or nothing at all, not even a type."""
    if body is None:
        return {}
    content = body if isinstance(body, str | bytes) else exact_json.write(body)
    return {"content": content, "headers": {"Content-Type": JSON}}


@dataclass(frozen=True)
class Project:
    id: str
    slug: str
    name: str

    @property
    def units_url(self) -> str:
        return f"/v1/integration/projects/{quote(self.slug, safe='')}/units"


@dataclass(frozen=True)
class Unit:
    """The address of a unit, whether it exists or not."""

    http: httpx.Client
    project: Project
    code: str

    @property
    def url(self) -> str:
        # The dot is spelled out because httpx takes a segment of dots for a way up.
        return f"{self.project.units_url}/{quote(self.code, safe='').replace('.', '%2E')}"

    def put(self, body: object, **headers: str) -> httpx.Response:
        return self._send("PUT", body, headers)

    def patch(self, body: object, **headers: str) -> httpx.Response:
        return self._send("PATCH", body, headers)

    def get(self, **headers: str) -> httpx.Response:
        return self.http.get(self.url, headers=_wire_names(headers))

    def _send(self, method: str, body: object, headers: dict[str, str]) -> httpx.Response:
        content = body if isinstance(body, str | bytes) else exact_json.write(body)
        all_headers = {"Content-Type": JSON, **_wire_names(headers)}
        return self.http.request(method, self.url, content=content, headers=all_headers)

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        return succeeded(self.put(body), 201)

    def read(self) -> dict[str, Any]:
        return succeeded(self.get())

    @property
    def etag(self) -> str:
        return str(self.get().headers["etag"])

    @property
    def exists(self) -> bool:
        return self.get().status_code == 200


def _wire_names(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def outcomes(response: httpx.Response) -> list[tuple[str, str]]:
    assert response.status_code == 200, response.text
    return [(result["code"], result["outcome"]) for result in response.json()["results"]]


def pages_of(http: httpx.Client, url: str, name: str, **query: str | int) -> Iterator[list[dict[str, Any]]]:
    """All pages of a list."""
    cursor: dict[str, str] = {}
    while True:
        page = succeeded(http.get(url, params={**query, **cursor}))
        assert set(page) == {name, "nextCursor"}
        yield page[name]
        if page["nextCursor"] is None:
            return
        assert cursor != {"cursor": page["nextCursor"]}, "the pages do not go on"
        cursor = {"cursor": page["nextCursor"]}


def put_array(http: httpx.Client, project: Project, items: list[Any], **query: str) -> httpx.Response:
    return put_bulk(http, project, exact_json.write(items), JSON, **query)


def put_lines(http: httpx.Client, project: Project, items: Iterable[Any], **query: str) -> httpx.Response:
    return put_bulk(http, project, "".join(exact_json.write(item) + "\n" for item in items), NDJSON, **query)


def put_bulk(
    http: httpx.Client, project: Project, content: str | bytes, content_type: str, **query: str
) -> httpx.Response:
    headers = {"Content-Type": content_type}
    return http.put(project.units_url, content=content, headers=headers, params=query)


def number(value: object) -> Decimal:
    """A number of a response as the exact decimal it is; a string or a boolean is none."""
    assert isinstance(value, int | Decimal)
    assert not isinstance(value, bool)
    return Decimal(value)

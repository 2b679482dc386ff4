"""Texts of the OpenAPI document that belong to no single route."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from http import HTTPStatus
from typing import Any, NamedTuple

from holdfast import __version__
from holdfast.domain.delivery import USER_AGENT
from holdfast.domain.errors import DatabaseUnavailable, InvalidInput, SchemaNotCurrent
from holdfast.domain.event import PING, EventName
from holdfast.domain.permissions import scopes_for
from holdfast.operations.events import Ping, UnitEvent
from holdfast.web.api import surfaces
from holdfast.web.api.bodies import Body
from holdfast.web.api.health import HealthDocument
from holdfast.web.api.models import UnitDocument
from holdfast.web.api.routes import Operation
from holdfast.web.http_errors import (
    BodyTooLarge,
    MalformedBody,
    MalformedRequest,
    MethodNotAllowed,
    UnsupportedMediaType,
    size_text,
)
from holdfast.web.json import NO_STORE, encode
from holdfast.web.openapi.schemas import (
    BOOKING_REFERENCE,
    ENDPOINT_ID,
    ETAG,
    PROJECT,
    REQUEST_ID,
    UNIT,
    Schema,
    component_schemas,
    event,
    first_put,
    objects,
    ping,
    sample_headers,
    sample_problem,
    schema_of,
    unit,
)
from holdfast.web.pages.storefront.visitors import VISITOR_COOKIE
from holdfast.web.problems import MEDIA_TYPE, ProblemDocument, ProblemType, problem_type_of
from holdfast.web.request import JSON

ABOUT = """\
Holdfast keeps the sale units of real estate projects. Through the integration API an external system
creates and changes units, and learns what became of them. The status of a unit belongs to Holdfast: buyers
hold a unit and sign through the storefront, payment systems confirm deposits, and staff close sales in the
back office.

**A first unit.** Make a key with `holdfast key add --name "My system"`, then:

```sh
{first_put}
```

**Bodies** are JSON in UTF-8. Times are UTC, such as `2026-11-14T09:30:00.000Z`. Numbers are exact
decimals from end to end. Readers should pass over members that they do not know: later releases may add
some.

**Errors** are [problem details](/problems) (RFC 9457). A response to invalid input lists every
fault at once, up to 100. Checks come in this order: 401, 403, 405, 415, 413, 400, 422, 404, 412, 409.

**Every response** carries `X-Request-Id`: the one of the request, if it sent one of at most 128 plain
characters.

**Conditions** (`If-Match`, `If-None-Match`) count where one unit is read, replaced, changed or acted on, and
are described there. No other operation looks at them: neither the bulk route nor the storefront, nor the
actions on bookings, the settings of projects or layouts, nor endpoints and deliveries.

**Repeating is safe.** The same PUT twice stores the same unit once, a deposit is confirmed once, a hold
with an `Idempotency-Key` is made once, and nothing is ever half done.
"""

BEARER = """\
An API key, made with `holdfast key add` and displayed once. Each operation names the scopes that open
it:

- `integration`: the integration API. A key has this scope unless it is made with others.
- `payments`: to confirm deposits, and nothing else.
- `backoffice`: the back office, except for what only admins may do.
- `admin`: the whole back office, deposits included. It does not open the integration API.

A key may be limited to projects; the others do not exist for it.
"""

DELIVERY = """\
Answer with any 2xx status within ten seconds. Anything else, a redirect too, is tried again: eight attempts
over about an hour, the gap doubling from thirty seconds, each with the same `X-Service-Delivery` and the same
body, byte for byte. After the last the delivery is displayed as failed, and staff can send it again.

Every event arrives at least once, and so now and then twice: treat an id that you have seen as done. The
first attempts for one unit come in the order of its changes; a retry may come after later events, unless the
endpoint is `ordered`. Of two events of a unit the later has the later `createdAt`.

To check the signature, compute the HMAC-SHA256 of the timestamp, a dot and the raw body, with the
endpoint's secret as the key, and compare it in constant time with the hex digest in
`X-Service-Signature`. Refuse a timestamp that is more than 300 seconds away from now.
"""

EVENTS = {
    "unit.held": "A buyer opened the unit, and it is held for them.",
    "unit.released": "A hold or reservation lapsed or was cancelled; the unit is available again.",
    "unit.reserved": "The buyer signed and the deposit was confirmed.",
    "unit.sold": "The sale was closed.",
    "unit.available": "The unit was put on sale.",
    "unit.unavailable": "The unit was taken off sale or archived.",
    "ping": "A test that staff sent from the back office.",
}

HEADERS = {
    "If-Match": "Go on only if the unit's ETag is one of these; `*`: only if it exists.",
    "If-None-Match": "Go on only if the unit's ETag is none of these; `*`: only if it does not exist. With "
    "GET: 304 while the ETag still holds.",
    "X-Payment-Timestamp": "The Unix time of the signature, in seconds; at most 300 seconds from now.",
    "Idempotency-Key": "A random text, such as a UUID, that you send again with each repetition: however "
    "often the request arrives, it is carried out once.",
    "holdfast_visitor": "The visitor, as the pages of Holdfast mark one. Live holds are counted for each "
    "visitor; without it, for the address alone.",
}

STATUS_ROUTES = {
    "/healthz": ("getHealth", "Whether the process is alive", "200 as long as the process runs."),
    "/readyz": (
        "getReadiness",
        "Whether the server is ready",
        "200 once the database is reached and its schema is current; 503 before.",
    ),
    "/metrics": ("getMetrics", "Metrics for Prometheus", "In the text format of Prometheus."),
}

DELIVERY_HEADERS: dict[str, tuple[dict[str, str], str, str]] = {
    "User-Agent": ({}, "Names the version of the webhooks.", ""),
    "X-Service-Event": ({}, "The event.", ""),
    "X-Service-Delivery": (
        {"format": "uuid"},
        "The delivery; equal to `id` in the body, on every attempt.",
        "",
    ),
    "X-Service-Timestamp": ({"pattern": "^[0-9]+$"}, "Unix time of the attempt in seconds.", "1794648600"),
    "X-Service-Signature": (
        {"pattern": "^sha256=[0-9a-f]{64}$"},
        "HMAC-SHA256, in hex, of the timestamp, a dot and the raw body.",
        f"sha256={'9f86d081884c7d65' * 4}",
    ),
}
"""What their schemas say, what they are, and an example."""

RESPONSE_HEADERS = {
    "X-Request-Id": "Names the request in logs; the caller's own, if it sent an acceptable one.",
    "ETag": "The revision of the unit, for `If-Match` and `If-None-Match`.",
    "Retry-After": "Seconds to wait.",
    "WWW-Authenticate": 'With `error="invalid_token"` or `error="insufficient_scope"` where a key was sent.',
    "Allow": "The methods of the path.",
    "Cache-Control": "`no-store`: the response must not be cached.",
}

BOOKING_TOKEN = """\
The token of one booking, as it came with the hold. It opens this booking and nothing else, for the
booking's whole life.
"""  # noqa: S105 - a text

PAYMENT_SIGNATURE = (
    "`sha256=` and the HMAC-SHA256, in hexadecimal, with the payment secret as key, over "
    "`X-Payment-Timestamp`, a dot and the body exactly as it is sent."
)


# Build the OpenAPI document from the declared operations, once.

_ETAGS = r'^(\*|(W/)?"[^"]*"(\s*,\s*(W/)?"[^"]*")*)$'
_HEADERS: dict[str, Schema] = {
    "If-Match": {"type": "string", "pattern": _ETAGS},
    "If-None-Match": {"type": "string"},
    "Idempotency-Key": {
        "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$",
    },
    "X-Payment-Timestamp": {"type": "string", "pattern": "^[0-9]{1,20}$"},
    VISITOR_COOKIE: {"type": "string", "minLength": 8, "maxLength": 128, "pattern": "^[A-Za-z0-9_.~-]+$"},
}  # fmt: skip
_PATH_EXAMPLES = {
    "slug": PROJECT.slug,
    "code": UNIT.code,
    "reference": BOOKING_REFERENCE,
    "id": str(ENDPOINT_ID),
}
_HEADER_EXAMPLES = {
    "X-Request-Id": REQUEST_ID,
    "ETag": ETAG,
    "Retry-After": 1,
    "WWW-Authenticate": 'Bearer error="invalid_token"',
    "Allow": "GET, HEAD",
    "Cache-Control": "no-store",
}
_STATUS_TAG = "Operation"


class OperationLink(NamedTuple):
    method: str
    path: str
    link: str
    """Its place in the pages of the API."""


@cache
def openapi_document() -> dict[str, Any]:
    operations = _operations()
    document = {
        "openapi": "3.1.1",
        "info": _info(),
        "servers": [{"url": "/", "description": "This server."}],
        "tags": [{"name": name, "description": text} for name, text in surfaces.TAGS.items()],
        "paths": _paths(operations),
        "webhooks": _webhooks(),
        "components": {
            "schemas": _schemas(operations),
            "responses": _responses(operations),
            "headers": _headers(),
            "securitySchemes": _security_schemes(),
        },
    }
    return _without_unused(document)


def openapi_json() -> bytes:
    return encode(openapi_document())


def operations_with(kind: ProblemType) -> list[OperationLink]:
    """The operations that may respond with this problem, the status routes included."""
    found = [(one.method, one.path, one.tag, one.operation_id, _errors(one)) for one in _operations()]
    found += [
        ("GET", path, _STATUS_TAG, words[0], _status_errors(path)) for path, words in STATUS_ROUTES.items()
    ]
    return [
        OperationLink(method, path, f"/docs#/{tag}/{operation_id}")
        for method, path, tag, operation_id, errors in found
        if kind in map(problem_type_of, errors)
    ]


def _operations() -> list[Operation]:
    return [operation for group in surfaces.ALL for operation in group.operations]


def _info() -> dict[str, Any]:
    return {
        "title": "Holdfast",
        "version": __version__,
        "summary": "Sale units of real estate projects, kept in one place.",
        "description": ABOUT.format(first_put=first_put()),
        "contact": {"name": "The maintainers of Holdfast"},
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    }


def _schemas(operations: Iterable[Operation]) -> dict[str, Schema]:
    responses = {_model(kind) for one in operations for kind in one.responses.values() if kind is not None}
    bodies = {one.body.model for one in operations if one.body and one.body.model}
    kinds = {*responses, UnitEvent, Ping, HealthDocument, ProblemDocument}
    return component_schemas(_by_name(kinds), _by_name(bodies))


def _by_name(kinds: Iterable[Any]) -> list[Any]:
    return sorted(kinds, key=lambda kind: str(kind.__name__))


def _model(kind: Any) -> Any:
    """The model of a response, without its annotations."""
    return getattr(kind, "__origin__", kind)


def _paths(operations: Iterable[Operation]) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {**paths, **_status_paths()}


def _operation(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.operation_id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": _description(operation),
        "security": [{} if name is None else {name: []} for name in operation.guard.schemes],
        "parameters": _parameters(operation),
    }
    if operation.body is not None and operation.body.model:
        found["requestBody"] = _request_body(operation.body)
    found["responses"] = {**_successes(operation), **_problems(_errors(operation))}
    return found


def _description(operation: Operation) -> str:
    parts = [operation.description]
    if operation.body is not None and operation.body.model:
        parts.append(f"The body has at most {size_text(operation.body.limit)}.")
    if operation.guard.permission is not None:
        *others, last = (f"`{scope}`" for scope in scopes_for(operation.guard.permission))
        scopes = f"{', '.join(others)} or {last}" if others else last
        parts.append(f"Requires a key of scope {scopes}.")
    return "\n\n".join(parts)


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    path = [
        _parameter("path", one.name, one.description, one.schema)
        | {"required": True, "example": _PATH_EXAMPLES[one.name]}
        for one in operation.path_parameters
    ]
    query = [_parameter("query", one.name, one.description, one.schema) for one in operation.query]
    headers = [
        _parameter("cookie" if name == VISITOR_COOKIE else "header", name, HEADERS[name], _HEADERS[name])
        for name in operation.headers
    ]
    return [*path, *query, *headers]


def _parameter(place: str, name: str, description: str, schema: Schema) -> dict[str, Any]:
    is_required = name == "X-Payment-Timestamp"
    return {"name": name, "in": place, "required": is_required, "description": description, "schema": schema}


def _request_body(body: Body) -> dict[str, Any]:
    content = {"schema": body.json_schema(), "example": body.example()}
    media = {name: content if name == JSON else {"schema": {"type": "string"}} for name in body.media_types}
    return {"required": body.is_required, "content": media}


def _successes(operation: Operation) -> dict[str, Any]:
    return {str(status): _success(operation, status, kind) for status, kind in operation.responses.items()}


def _success(operation: Operation, status: int, kind: Any) -> dict[str, Any]:
    headers = ["X-Request-Id", *(["ETag"] if "If-None-Match" in operation.headers else [])]
    if NO_STORE in getattr(kind, "__metadata__", ()):
        headers.append("Cache-Control")
    found = {"description": HTTPStatus(status).phrase, **_with(headers)}
    if kind is None:
        return found
    sample = {"example": unit()} if kind is UnitDocument else {}
    return {**found, "content": {JSON: {"schema": schema_of(_model(kind)), **sample}}}


def _errors(operation: Operation) -> list[type[Exception]]:
    """Those that follow from the declaration, and those that it names."""
    # More query parameters than are allowed are reported as a body that is too large.
    errors = [MalformedRequest, MethodNotAllowed, BodyTooLarge, InvalidInput, DatabaseUnavailable]
    if operation.body is not None:
        errors += [MalformedBody, UnsupportedMediaType]
    return [*errors, *operation.guard.errors, *operation.errors]


def _status_errors(path: str) -> list[type[Exception]]:
    unready = [DatabaseUnavailable, SchemaNotCurrent] if path == "/readyz" else []
    return [MethodNotAllowed, BodyTooLarge, *unready]


def _problem_types(errors: Iterable[type[Exception]]) -> dict[int, dict[str, ProblemType]]:
    by_status: dict[int, dict[str, ProblemType]] = {}
    for kind in map(problem_type_of, errors):
        by_status.setdefault(kind.status, {})[kind.name] = kind
    return dict(sorted(by_status.items()))


def _problems(errors: Iterable[type[Exception]]) -> dict[str, Any]:
    return {
        str(status): {"$ref": f"#/components/responses/{_response_name(kinds)}"}
        for status, kinds in _problem_types(errors).items()
    }


def _response_name(kinds: Iterable[str]) -> str:
    return "Or".join(name.title().replace("-", "") for name in kinds)


def _responses(operations: Iterable[Operation]) -> dict[str, Any]:
    """One for each set of problems that share a status somewhere."""
    found = {}
    for errors in (*map(_errors, operations), *map(_status_errors, STATUS_ROUTES)):
        for kinds in _problem_types(errors).values():
            found[_response_name(kinds)] = _problem(kinds.values())
    return dict(sorted(found.items()))


def _problem(kinds: Iterable[ProblemType]) -> dict[str, Any]:
    carried = {header for kind in kinds for header in sample_headers(kind.name)}
    headers = [name for name in RESPONSE_HEADERS if name == "X-Request-Id" or name.lower() in carried]
    examples = {kind.name: {"summary": kind.title, "value": sample_problem(kind.name)} for kind in kinds}
    media = {"schema": schema_of(ProblemDocument), "examples": examples}
    description = "\n\n".join(f"[{kind.title}]({kind.path})" for kind in kinds)
    return {"description": description, **_with(headers), "content": {MEDIA_TYPE: media}}


def _with(headers: Iterable[str]) -> dict[str, Any]:
    return {"headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers}}


def _headers() -> dict[str, Any]:
    return {
        name: {
            "description": text,
            "schema": {"type": "integer", "minimum": 1} if name == "Retry-After" else {"type": "string"},
            "example": _HEADER_EXAMPLES[name],
        }
        for name, text in RESPONSE_HEADERS.items()
    }


def _security_schemes() -> dict[str, Any]:
    return {
        "apiKey": {"type": "http", "scheme": "bearer", "description": BEARER},
        "bookingToken": {"type": "http", "scheme": "bearer", "description": BOOKING_TOKEN},
        "paymentSignature": {
            "type": "apiKey",
            "in": "header",
            "name": "X-Payment-Signature",
            "description": PAYMENT_SIGNATURE,
        },
    }


def _status_paths() -> dict[str, Any]:
    """The routes of ``status_routes``."""
    return {path: {"get": _status_operation(path, *words)} for path, words in STATUS_ROUTES.items()}


def _status_operation(path: str, operation_id: str, summary: str, description: str) -> dict[str, Any]:
    content: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
    if path != "/metrics":
        state = {"status": "alive" if path == "/healthz" else "ready"}
        content = {JSON: {"schema": schema_of(HealthDocument), "example": state}}
    return {
        "operationId": operation_id,
        "tags": [_STATUS_TAG],
        "summary": summary,
        "description": description,
        "security": [],
        "responses": {
            "200": {"description": "OK", **_with(["X-Request-Id"]), "content": content},
            **_problems(_status_errors(path)),
        },
    }


def _webhooks() -> dict[str, Any]:
    unit_events = {str(name): _webhook(name, schema_of(UnitEvent), event(name)) for name in EventName}
    return {**unit_events, PING: _webhook(PING, schema_of(Ping), ping())}


def _webhook(name: str, schema: Schema, sample: dict[str, Any]) -> dict[str, Any]:
    operation = {
        "operationId": "on" + "".join(part.capitalize() for part in name.split(".")),
        "summary": EVENTS[name],
        "description": DELIVERY,
        "security": [],
        "parameters": list(_delivery_headers(name, sample)),
        "requestBody": {"required": True, "content": {JSON: {"schema": schema, "example": sample}}},
        "responses": {
            "2XX": {"description": "Received. The body of the response does not matter."},
            "default": {"description": "Not received: it is sent again. Redirects are not followed."},
        },
    }
    return {"post": operation}


def _delivery_headers(name: str, sample: dict[str, Any]) -> Iterator[dict[str, Any]]:
    samples = {"User-Agent": USER_AGENT, "X-Service-Event": str(name), "X-Service-Delivery": sample["id"]}
    for header, (members, description, shown) in DELIVERY_HEADERS.items():
        fixed = members or {"const": samples[header]}
        yield {
            "name": header,
            "in": "header",
            "required": True,
            "description": description,
            "schema": {"type": "string", **fixed},
            "example": samples.get(header, shown),
        }


def _without_unused(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out schemas that nothing refers to."""
    schemas: dict[str, Schema] = document["components"]["schemas"]
    while True:
        used = {str(found.get("$ref", "")).rpartition("/")[2] for found in objects(document)}
        unused = [name for name in schemas if name not in used]
        if not unused:
            return document
        for name in unused:
            del schemas[name]

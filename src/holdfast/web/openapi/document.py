"""The OpenAPI document, built once from the declared operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from http import HTTPStatus
from typing import Any, NamedTuple

from holdfast import __version__
from holdfast.domain import errors as domain
from holdfast.domain.delivery import USER_AGENT
from holdfast.domain.event import PING, EventName
from holdfast.domain.permissions import scopes_for
from holdfast.operations.events import Ping, UnitEvent
from holdfast.web import errors as http
from holdfast.web.api import surfaces
from holdfast.web.api.models import UnitDocument
from holdfast.web.api.parameters import Parameter
from holdfast.web.api.routes import Operation
from holdfast.web.api.surfaces import HealthDocument
from holdfast.web.json import encode
from holdfast.web.openapi import schemas
from holdfast.web.problems import MEDIA_TYPE, ProblemDocument, ProblemType, problem_type_of
from holdfast.web.request import JSON
from holdfast.web.visitors import IDEMPOTENCY_KEY, LONGEST_KEY, SHORTEST_KEY, VISITOR_COOKIE

ABOUT = """\
Holdfast is the inventory behind property sales. Your system creates and changes units through the
integration API and reads their changes of status from the event feed. Buyers hold a unit and sign through
the storefront, payment systems confirm deposits, and staff close sales in the back office.

**Create your first unit.** Create a key with `holdfast key add --name "My system"`, then:

```sh
{first_put}
```

**Bodies** are JSON in UTF-8. Times are UTC, such as `2026-11-14T09:30:00.000Z`. Numbers are exact
decimals from end to end. Ignore members that you do not know: later releases may add some.

**Errors** are [problem details](/problems) (RFC 9457). A response to invalid input lists all faults
at once, up to 100. Checks run in this order: 401, 403, 429, 405, 415, 413, 400, 422, 404, 412, 409.

**Every response** has the header `X-Request-Id`. If the request sent one of at most 128 plain characters, it
is the same.

**Conditions** (`If-Match`, `If-None-Match`) apply only where one unit is read, replaced, changed or acted on.
All other routes ignore them.

**Repeating is safe.** The same PUT sent twice stores the unit once, a deposit is confirmed once, a hold with
an `Idempotency-Key` is created once, and nothing is ever half done.
"""

BEARER = """\
An API key, created with `holdfast key add` and shown once. Each operation names the scopes that it accepts:

- `integration`: the integration API. A key has this scope unless it is made with others.
- `payments`: to confirm deposits, and nothing else.
- `backoffice`: the back office, except for what only admins may do.
- `admin`: the whole back office, deposits included. It does not open the integration API.

A key may be limited to projects. For it, other projects do not exist.
"""

DELIVERY = """\
Answer with any 2xx status within ten seconds. After any other result, including a redirect, the delivery is
retried: eight attempts over about an hour, with a gap that doubles from thirty seconds, each with the same
`X-Service-Delivery` and exactly the same body. After the last attempt the delivery is displayed as failed,
and staff can send it again.

Every event arrives at least once, and sometimes twice: ignore an id that you have already processed. First
attempts for a unit are sent in the order of its changes. A retry may come after later events, unless the
endpoint is `ordered`. Of two events of a unit the later has the later `createdAt`.

To check the signature, compute the HMAC-SHA256 of the timestamp, a dot and the raw body, with the
endpoint's secret as the key, and compare it in constant time with the hex digest in
`X-Service-Signature`. Refuse a timestamp that is more than 300 seconds away from now.
"""

EVENTS = {
    "unit.held": "A buyer, or staff on a buyer's behalf, holds the unit.",
    "unit.released": "A hold or reservation lapsed or was cancelled; the unit is available again.",
    "unit.reserved": "The buyer signed and the deposit was confirmed.",
    "unit.sold": "The sale was closed.",
    "unit.available": "The unit was put on sale.",
    "unit.unavailable": "The unit was taken off sale or archived, or its sale was revoked.",
    "ping": "A test that staff sent from the back office.",
}

_ETAGS = r'^(\*|(W/)?"[^"]*"(\s*,\s*(W/)?"[^"]*")*)$'
HEADERS: dict[str, schemas.Schema] = {
    "If-Match": {
        "description": "Carried out only if the unit's ETag is one of these; `*`: only if it exists.",
        "schema": {"type": "string", "pattern": _ETAGS},
    },
    "If-None-Match": {
        "description": "Carried out only if the unit's ETag is none of these; `*`: only if it does not "
        "exist. With GET: 304 while the ETag is the same.",
        "schema": {"type": "string"},
    },
    "X-Payment-Timestamp": {
        "description": "The Unix time of the signature, in seconds; at most 300 seconds from now.",
        "schema": {"type": "string", "pattern": "^[0-9]{1,20}$"},
    },
    IDEMPOTENCY_KEY: {
        "description": "A random text, such as a UUID, that you send again with each repetition: however "
        "often the request arrives, it is carried out once.",
        "schema": {
            "type": "string",
            "minLength": SHORTEST_KEY,
            "maxLength": LONGEST_KEY,
            "pattern": "^[!-~][ -~]*[!-~]$",
        },
    },
    VISITOR_COOKIE: {
        "description": "The visitor, as the pages of Holdfast mark one. Live holds are counted for each "
        "visitor; without it, for the address alone.",
        "schema": {"type": "string", "minLength": 8, "maxLength": 128, "pattern": "^[A-Za-z0-9_.~-]+$"},
    },
}

METRICS = """Metrics in the text format of Prometheus. If `HOLDFAST_METRICS_TOKEN` is set, send it as a bearer
token. If `HOLDFAST_METRICS_PORT` is set, they are on that port, and this path is 404."""
STATUS_ROUTES = {
    "/healthz": ("getHealth", "Whether the process is alive", "200 as long as the process runs."),
    "/readyz": (
        "getReadiness",
        "Whether the server is ready",
        "200 once the database is reached and its schema is current; 503 before.",
    ),
    "/metrics": ("getMetrics", "Metrics for Prometheus", METRICS),
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
"""Each with its schema, its description and an example."""

RESPONSE_HEADERS = {
    "X-Request-Id": (
        "Names the request in logs; the caller's own, if it sent an acceptable one.",
        schemas.REQUEST_ID,
    ),
    "ETag": ("The revision of the unit, for `If-Match` and `If-None-Match`.", schemas.ETAG),
    "Retry-After": ("Seconds to wait.", 1),
    "WWW-Authenticate": (
        'With `error="invalid_token"` or `error="insufficient_scope"` where a key was sent.',
        'Bearer error="invalid_token"',
    ),
    "Allow": ("The methods of the path.", "GET, HEAD"),
    "Cache-Control": ("`no-store`: the response must not be cached.", "no-store"),
}
"""Each with its description and an example."""

BOOKING_TOKEN = """\
The token of one booking, returned with the hold. It opens only this booking, and is valid as long as the
booking exists.
"""  # noqa: S105 - a text

PAYMENT_SIGNATURE = (
    "`sha256=` and the HMAC-SHA256, in hexadecimal, with the payment secret as key, over "
    "`X-Payment-Timestamp`, a dot and the body exactly as it is sent."
)


_PATH_EXAMPLES = {
    "slug": schemas.PROJECT.slug,
    "code": schemas.UNIT.code,
    "reference": schemas.BOOKING_REFERENCE,
    "id": str(schemas.ENDPOINT_ID),
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
        "info": {
            "title": "Holdfast",
            "version": __version__,
            "summary": "The inventory behind property sales.",
            "description": ABOUT.format(first_put=schemas.first_put()),
            "contact": {"name": "The maintainers of Holdfast"},
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This server."}],
        "tags": [{"name": name, "description": text} for name, text in surfaces.TAGS.items()],
        "paths": _paths(operations),
        "webhooks": _webhooks(),
        "components": {
            "schemas": _schemas(operations),
            "responses": _responses(operations),
            "headers": _headers(),
            "securitySchemes": {
                "apiKey": {"type": "http", "scheme": "bearer", "description": BEARER},
                "bookingToken": {"type": "http", "scheme": "bearer", "description": BOOKING_TOKEN},
                "metricsToken": {"type": "http", "scheme": "bearer", "description": "See `/metrics`."},
                "paymentSignature": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-Payment-Signature",
                    "description": PAYMENT_SIGNATURE,
                },
            },
        },
    }
    _remove_unused_schemas(document)
    return document


def openapi_json(public_url: str | None = None) -> bytes:
    """Encode the document. Its example calls the server at ``public_url``, if that is known."""
    document = openapi_document()
    if public_url is None:
        return encode(document)
    about = ABOUT.format(first_put=schemas.first_put(public_url))
    return encode({**document, "info": {**document["info"], "description": about}})


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


def _schemas(operations: Iterable[Operation]) -> dict[str, schemas.Schema]:
    responses = {kind for one in operations for kind in one.responses.values() if kind is not None}
    bodies = {one.body.model for one in operations if one.body and one.body.model}
    kinds = {*responses, UnitEvent, Ping, HealthDocument, ProblemDocument}
    return schemas.component_schemas(
        *(sorted(found, key=lambda one: str(one.__name__)) for found in (kinds, bodies))
    )


def _paths(operations: Iterable[Operation]) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    for path, texts in STATUS_ROUTES.items():
        paths[path] = {"get": _status_operation(path, *texts)}
    return paths


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
        body = operation.body
        content = {"schema": body.json_schema(), "example": body.example()}
        text = {"schema": {"type": "string"}}
        media = {name: content if name == JSON else text for name in body.media_types}
        found["requestBody"] = {"required": body.is_required, "content": media}
    found["responses"] = {
        **{str(status): _success(operation, status, kind) for status, kind in operation.responses.items()},
        **_problems(_errors(operation)),
    }
    return found


def _description(operation: Operation) -> str:
    parts = [operation.description]
    if operation.body is not None and operation.body.model:
        parts.append(f"The body has at most {http.size_text(operation.body.limit)}.")
    if operation.guard.permission is not None:
        *others, last = (f"`{scope}`" for scope in scopes_for(operation.guard.permission))
        scopes = f"{', '.join(others)} or {last}" if others else last
        parts.append(f"Requires a key of scope {scopes}.")
    return "\n\n".join(parts)


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    path = [
        {**_parameter("path", one, is_required=True), "example": _PATH_EXAMPLES[one.name]}
        for one in operation.path_parameters
    ]
    headers = [
        {
            "name": name,
            "in": "cookie" if name == VISITOR_COOKIE else "header",
            "required": name == "X-Payment-Timestamp",
            **HEADERS[name],
        }
        for name in operation.headers
    ]
    return [*path, *(_parameter("query", one) for one in operation.query), *headers]


def _parameter(place: str, parameter: Parameter, *, is_required: bool = False) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": place,
        "required": is_required,
        "description": parameter.description,
        "schema": parameter.schema,
    }


def _success(operation: Operation, status: int, kind: Any) -> dict[str, Any]:
    headers = {"ETag": "If-None-Match" in operation.headers, "Cache-Control": operation.is_personal}
    names = ["X-Request-Id", *(name for name, is_sent in headers.items() if is_sent)]
    found = {"description": HTTPStatus(status).phrase, **_with(names)}
    if kind is None:
        return found
    sample = {"example": schemas.unit()} if kind is UnitDocument else {}
    return {**found, "content": {JSON: {"schema": schemas.schema_of(kind), **sample}}}


def _errors(operation: Operation) -> list[type[Exception]]:
    """Those that follow from the declaration, and those that it names."""
    # More query parameters than are allowed are reported as a body that is too large.
    errors = [
        http.MalformedRequest,
        http.MethodNotAllowed,
        http.BodyTooLarge,
        domain.InvalidInput,
        domain.DatabaseUnavailable,
        *([] if operation.method == "GET" else [domain.Overloaded]),
    ]
    if operation.body is not None:
        errors += [http.MalformedBody, http.UnsupportedMediaType]
    return [*errors, *operation.guard.errors, *operation.errors]


def _status_errors(path: str) -> list[type[Exception]]:
    unready = [domain.DatabaseUnavailable, domain.SchemaNotCurrent] if path == "/readyz" else []
    rejected = (
        [domain.NoCredentials, domain.InvalidApiKey, domain.TooManyRequests] if path == "/metrics" else []
    )
    return [http.MethodNotAllowed, http.BodyTooLarge, *unready, *rejected]


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
    carried = {header for kind in kinds for header in schemas.sample_headers(kind.name)}
    headers = [name for name in RESPONSE_HEADERS if name == "X-Request-Id" or name.lower() in carried]
    examples = {
        kind.name: {"summary": kind.title, "value": schemas.sample_problem(kind.name)} for kind in kinds
    }
    media = {"schema": schemas.schema_of(ProblemDocument), "examples": examples}
    description = "\n\n".join(f"[{kind.title}]({kind.path})" for kind in kinds)
    return {"description": description, **_with(headers), "content": {MEDIA_TYPE: media}}


def _with(headers: Iterable[str]) -> dict[str, Any]:
    return {"headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers}}


def _headers() -> dict[str, Any]:
    return {
        name: {
            "description": text,
            "schema": {"type": "integer", "minimum": 1} if name == "Retry-After" else {"type": "string"},
            "example": example,
        }
        for name, (text, example) in RESPONSE_HEADERS.items()
    }


def _status_operation(path: str, operation_id: str, summary: str, description: str) -> dict[str, Any]:
    content: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
    if path != "/metrics":
        state = {"status": "alive" if path == "/healthz" else "ready"}
        content = {JSON: {"schema": schemas.schema_of(HealthDocument), "example": state}}
    return {
        "operationId": operation_id,
        "tags": [_STATUS_TAG],
        "summary": summary,
        "description": description,
        "security": [{}, {"metricsToken": []}] if path == "/metrics" else [],
        "responses": {
            "200": {"description": "OK", **_with(["X-Request-Id"]), "content": content},
            **_problems(_status_errors(path)),
        },
    }


def _webhooks() -> dict[str, Any]:
    unit_events = {
        str(name): _webhook(name, schemas.schema_of(UnitEvent), schemas.event(name)) for name in EventName
    }
    return {**unit_events, PING: _webhook(PING, schemas.schema_of(Ping), schemas.ping())}


def _webhook(name: str, schema: schemas.Schema, sample: dict[str, Any]) -> dict[str, Any]:
    operation = {
        "operationId": "on" + "".join(part.capitalize() for part in name.replace("_", ".").split(".")),
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


def _remove_unused_schemas(document: dict[str, Any]) -> None:
    components: dict[str, schemas.Schema] = document["components"]["schemas"]
    unused = True
    while unused:
        used = {str(one.get("$ref", "")).rpartition("/")[2] for one in schemas.objects(document)}
        unused = bool(components.keys() - used)
        for name in components.keys() - used:
            del components[name]

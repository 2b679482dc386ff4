"""Build the OpenAPI document from the declared operations, once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from http import HTTPStatus
from typing import Any, NamedTuple

from holdfast import __version__
from holdfast.domain.delivery import USER_AGENT
from holdfast.domain.endpoint import PING
from holdfast.domain.errors import DatabaseAway, InvalidInput, SchemaNotCurrent
from holdfast.domain.event import EventName
from holdfast.domain.permissions import scopes_for
from holdfast.operations.events import Ping, UnitEvent
from holdfast.web.api import surfaces
from holdfast.web.api.bodies import Body
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
from holdfast.web.openapi import texts
from holdfast.web.openapi.examples import ETAG, event, first_put, ping, unit
from holdfast.web.openapi.problems import sample_headers, sample_problem
from holdfast.web.openapi.samples import ENDPOINT_ID, PROJECT, REFERENCE, REQUEST_ID, UNIT
from holdfast.web.openapi.schemas import Schema, component_schemas, objects, schema_of
from holdfast.web.pages.storefront.visitors import VISITOR_COOKIE
from holdfast.web.problems import MEDIA_TYPE, ProblemDocument, ProblemType, problem_type_of
from holdfast.web.request import JSON
from holdfast.web.status_routes import HealthDocument

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
_PATH_EXAMPLES = {"slug": PROJECT.slug, "code": UNIT.code, "reference": REFERENCE, "id": str(ENDPOINT_ID)}
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
        ("GET", path, _STATUS_TAG, words[0], _status_errors(path))
        for path, words in texts.STATUS_ROUTES.items()
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
        "description": texts.ABOUT.format(first_put=first_put()),
        "contact": {"name": "The maintainers of Holdfast"},
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    }


def _schemas(operations: Iterable[Operation]) -> dict[str, Schema]:
    responses = {_model(kind) for one in operations for kind in one.responses.values() if kind is not None}
    bodies = {model for one in operations if one.body is not None for model in one.body.models}
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
    if operation.body is not None and operation.body.models:
        found["requestBody"] = _request_body(operation.body)
    found["responses"] = {**_successes(operation), **_problems(_errors(operation))}
    return found


def _description(operation: Operation) -> str:
    parts = [operation.description]
    if operation.body is not None and operation.body.models:
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
        _parameter(
            "cookie" if name == VISITOR_COOKIE else "header", name, texts.HEADERS[name], _HEADERS[name]
        )
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
    errors = [MalformedRequest, MethodNotAllowed, BodyTooLarge, InvalidInput, DatabaseAway]
    if operation.body is not None:
        errors += [MalformedBody, UnsupportedMediaType]
    return [*errors, *operation.guard.errors, *operation.errors]


def _status_errors(path: str) -> list[type[Exception]]:
    unready = [DatabaseAway, SchemaNotCurrent] if path == "/readyz" else []
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
    for errors in (*map(_errors, operations), *map(_status_errors, texts.STATUS_ROUTES)):
        for kinds in _problem_types(errors).values():
            found[_response_name(kinds)] = _problem(kinds.values())
    return dict(sorted(found.items()))


def _problem(kinds: Iterable[ProblemType]) -> dict[str, Any]:
    carried = {header for kind in kinds for header in sample_headers(kind.name)}
    headers = [name for name in texts.RESPONSE_HEADERS if name == "X-Request-Id" or name.lower() in carried]
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
        for name, text in texts.RESPONSE_HEADERS.items()
    }


def _security_schemes() -> dict[str, Any]:
    return {
        "apiKey": {"type": "http", "scheme": "bearer", "description": texts.BEARER},
        "bookingToken": {"type": "http", "scheme": "bearer", "description": texts.BOOKING_TOKEN},
        "paymentSignature": {
            "type": "apiKey",
            "in": "header",
            "name": "X-Payment-Signature",
            "description": texts.PAYMENT_SIGNATURE,
        },
    }


def _status_paths() -> dict[str, Any]:
    """The routes of ``status_routes``."""
    return {path: {"get": _status_operation(path, *words)} for path, words in texts.STATUS_ROUTES.items()}


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
        "summary": texts.EVENTS[name],
        "description": texts.DELIVERY,
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
    for header, (members, description, shown) in texts.DELIVERY_HEADERS.items():
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

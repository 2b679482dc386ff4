"""The API description (OpenAPI 3.1), built once from the code that it describes."""

from __future__ import annotations

from functools import cache
from typing import Any

from holdfast import __version__
from holdfast.web.openapi import answers, paths, selling_texts, texts
from holdfast.web.openapi.examples import first_put
from holdfast.web.openapi.parameters import PARAMETERS
from holdfast.web.openapi.payments import PAYMENT_PARAMETERS, PAYMENT_SECURITY
from holdfast.web.openapi.schemas import schemas
from holdfast.web.openapi.webhooks import webhooks
from holdfast.web.wire import encode


@cache
def openapi_document() -> dict[str, Any]:
    return {
        "openapi": "3.1.1",
        "info": _info(),
        "tags": [{"name": name, "description": text} for name, text in texts.TAGS.items()],
        "paths": paths.paths(),
        "webhooks": webhooks(),
        "components": _components(),
    }


def openapi_json() -> bytes:
    return encode(openapi_document())


def _info() -> dict[str, Any]:
    return {
        "title": "Holdfast",
        "version": __version__,
        "summary": "Sale units of real estate projects, kept in one place.",
        "description": texts.ABOUT.format(first_put=first_put()),
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    }


def _components() -> dict[str, Any]:
    return {
        "schemas": schemas(),
        "responses": answers.components(),
        "headers": answers.HEADERS,
        "parameters": PARAMETERS | PAYMENT_PARAMETERS,
        "securitySchemes": {
            "apiKey": {"type": "http", "scheme": "bearer", "description": texts.BEARER},
            "bookingToken": {"type": "http", "scheme": "bearer", "description": selling_texts.BEARER},
            **PAYMENT_SECURITY,
        },
    }

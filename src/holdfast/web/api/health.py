"""For operators: alive, ready, metrics. No key needed."""

from __future__ import annotations

from typing import Literal

from starlette.responses import Response
from starlette.routing import Route

from holdfast.observability.metrics import CONTENT_TYPE, metrics_text
from holdfast.operations.documents import Document
from holdfast.web.json import JsonResponse
from holdfast.web.pages.base import simple_route
from holdfast.web.request import Request


class HealthDocument(Document):
    status: Literal["alive", "ready"]


async def _alive(_: Request) -> Response:
    return JsonResponse(HealthDocument("alive"))


async def _ready(request: Request) -> Response:
    await request.services.health.check_ready()
    return JsonResponse(HealthDocument("ready"))


async def _metrics(_: Request) -> Response:
    return Response(metrics_text(), headers={"content-type": CONTENT_TYPE})


def status_routes() -> list[Route]:
    return [
        simple_route("/healthz", _alive),
        simple_route("/readyz", _ready),
        simple_route("/metrics", _metrics),
    ]

"""For those who run Holdfast: alive, ready, metrics. No key needed."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.observability.metrics import CONTENT_TYPE, metrics_text
from holdfast.operations.health import Health
from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.routing import Place, resource


def status_places(health: Health) -> list[Place]:
    async def alive(_: Call) -> JsonAnswer:
        return JsonAnswer({"status": "alive"})

    async def ready(_: Call) -> JsonAnswer:
        await health.refuse_unless_ready()
        return JsonAnswer({"status": "ready"})

    async def metrics(_: Call) -> Response:
        return Response(metrics_text(), headers={"content-type": CONTENT_TYPE})

    return [
        resource("/healthz", GET=alive),
        resource("/readyz", GET=ready),
        resource("/metrics", GET=metrics),
    ]

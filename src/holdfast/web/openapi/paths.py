"""Every operation of the API description."""

from __future__ import annotations

from holdfast.web.openapi.administration import administration_paths
from holdfast.web.openapi.answers import ANYWHERE, answer, json_answer, problems
from holdfast.web.openapi.bookings import booking_paths
from holdfast.web.openapi.delivery_log import delivery_log_paths
from holdfast.web.openapi.forms import TEXT
from holdfast.web.openapi.integration import integration_paths
from holdfast.web.openapi.operations import Operation, Paths, operation
from holdfast.web.openapi.payments import payment_paths
from holdfast.web.openapi.people import people_paths
from holdfast.web.openapi.sales import sale_paths
from holdfast.web.openapi.settled import settled_paths
from holdfast.web.openapi.storefront import storefront_paths
from holdfast.web.openapi.subscriptions import subscription_paths


def paths() -> Paths:
    return {
        **integration_paths(),
        **storefront_paths(),
        **payment_paths(),
        **booking_paths(),
        **sale_paths(),
        **settled_paths(),
        **subscription_paths(),
        **delivery_log_paths(),
        **administration_paths(),
        **people_paths(),
        "/healthz": {"get": _probe("getHealth", "Is the process alive?", "alive")},
        "/readyz": {"get": _readiness()},
        "/metrics": {"get": _metrics()},
    }


def _probe(name: str, summary: str, status: str) -> Operation:
    answers = {"200": json_answer("Yes.", "Health", {"status": status}), **problems(*ANYWHERE)}
    return operation(name, "Operation", summary, responses=answers)


def _readiness() -> Operation:
    probe = _probe("getReadiness", "Is the database reached, and its schema current?", "ready")
    return probe | {"responses": probe["responses"] | problems("NotReady")}


def _metrics() -> Operation:
    text = {"text/plain": {"schema": TEXT}}
    answers = {"200": answer("Metrics in the format of Prometheus.", content=text), **problems(*ANYWHERE)}
    return operation("getMetrics", "Operation", "Metrics for Prometheus", responses=answers)

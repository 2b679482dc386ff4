"""PUT of a unit: lock the row, decide, save, write the event, commit."""

from typing import Any

from django.db import transaction
from django.shortcuts import get_object_or_404
from django.utils import timezone
from rest_framework import status
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from benchmarks.peers.drf.models import ApiKey, Event, Project, Unit
from benchmarks.peers.drf.serializers import UnitSerializer

LOCKED = {Unit.Status.HELD, Unit.Status.RESERVED, Unit.Status.SOLD}
MID_BOOKING = {Unit.Status.HELD, Unit.Status.RESERVED}
TERMS = ("price_sar", "deposit_percent", "vat_included", "vat_rate")
SETTABLE = {Unit.Status.AVAILABLE, Unit.Status.UNAVAILABLE}


class Conflict(APIException):
    status_code = status.HTTP_409_CONFLICT


class UnitView(APIView):
    def put(self, request: Request, slug: str, code: str) -> Response:
        project = get_object_or_404(_projects_of(request.auth), slug=slug)
        with transaction.atomic():
            unit = Unit.objects.select_for_update(of=("self",)).filter(project=project, code=code).first()
            addressed = {"code": code, "projectSlug": slug, "projectId": str(project.pk)}
            if unit is not None:
                addressed["id"] = str(unit.pk)
            serializer = UnitSerializer(unit, data=request.data, context={"addressed": addressed})
            serializer.is_valid(raise_exception=True)
            if unit is None:
                _refuse_unsettable(serializer.validated_data)
                serializer.save(project=project, code=code)
            else:
                unit.project = project
                _replace(unit, serializer)
        created = status.HTTP_201_CREATED if unit is None else status.HTTP_200_OK
        return Response(serializer.data, status=created)


def _projects_of(key: ApiKey) -> Any:
    return key.projects.all() if key.limited_to_projects else Project.objects.all()


def _refuse_unsettable(fields: dict[str, Any]) -> None:
    if fields.get("status", Unit.Status.AVAILABLE) not in SETTABLE:
        raise ValidationError({"status": "Only available and unavailable are accepted."})


def _refuse_conflicts(unit: Unit, fields: dict[str, Any]) -> None:
    if "status" in fields and unit.status in LOCKED:
        raise Conflict("status-locked")
    _refuse_unsettable(fields)
    if unit.status in MID_BOOKING and any(getattr(unit, name) != fields[name] for name in TERMS):
        raise Conflict("terms-locked")
    if unit.archived and fields.get("status") == Unit.Status.AVAILABLE:
        raise Conflict("transition-not-allowed")


def _replace(unit: Unit, serializer: UnitSerializer) -> None:
    _refuse_conflicts(unit, serializer.validated_data)
    previous = unit.status
    unit = serializer.save(version=unit.version + 1)
    if unit.status != previous:
        Event.objects.create(
            project_id=unit.project_id,
            unit=unit,
            unit_version=unit.version,
            type=f"unit.{unit.status}",
            previous_status=previous,
            status=unit.status,
            created_at=timezone.now(),
        )

"""PUT of a unit: lock the row, decide, flush, write the event, commit."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Path, Response
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from benchmarks.peers.fastapi_orm.authentication import KeyOfRequest, SessionOfRequest
from benchmarks.peers.fastapi_orm.models import ApiKey, ApiKeyProject, Event, Project, Unit
from benchmarks.peers.fastapi_orm.schemas import UnitBody, UnitFields

LOCKED = {"held", "reserved", "sold"}
MID_BOOKING = {"held", "reserved"}
TERMS = ("price_sar", "deposit_percent", "vat_included", "vat_rate")
COLUMNS = (
    "type", "area_sqm", "price_sar", "vat_included", "vat_rate", "deposit_percent", "bedrooms", "bathrooms",
    "delivery_year", "description",
)  # fmt: skip

app = FastAPI()
Slug = Annotated[str, Path(pattern="^[a-z0-9]+(-[a-z0-9]+)*$", min_length=2, max_length=100)]
Code = Annotated[str, Path(min_length=1, max_length=50)]


@app.put("/v1/integration/projects/{slug}/units/{code}", response_model=UnitBody)
async def put_unit(
    slug: Slug, code: Code, body: UnitFields, key: KeyOfRequest, db: SessionOfRequest, response: Response
) -> Unit:
    project = await _project_of(db, key, slug)
    query = select(Unit).where(Unit.project_id == project.id, Unit.code == code).with_for_update()
    unit = await db.scalar(query)
    _refuse_other_identity(body, project, code, unit)
    if unit is None:
        unit = _create(db, project, code, body)
        response.status_code = 201
    else:
        _replace(db, unit, body)
    unit.project = project
    await db.commit()
    return unit


async def _project_of(db: AsyncSession, key: ApiKey, slug: str) -> Project:
    query = select(Project).where(Project.slug == slug)
    if key.limited_to_projects:
        query = query.join(ApiKeyProject).where(ApiKeyProject.api_key_id == key.id)
    project = await db.scalar(query)
    if project is None:
        raise HTTPException(404, "No such project.")
    return project


def _refuse_other_identity(body: UnitFields, project: Project, code: str, unit: Unit | None) -> None:
    addressed = {"code": code, "project_slug": project.slug, "project_id": project.id}
    if unit is not None:
        addressed["id"] = unit.id
    for name in ("id", "code", "project_id", "project_slug"):
        if name in body.model_fields_set and getattr(body, name) != addressed.get(name):
            raise HTTPException(422, f"{name} must equal the addressed unit.")


def _refuse_unsettable(body: UnitFields) -> None:
    if "status" in body.model_fields_set and body.status not in ("available", "unavailable"):
        raise HTTPException(422, "Only available and unavailable are accepted.")


def _refuse_conflicts(unit: Unit, body: UnitFields) -> None:
    if "status" in body.model_fields_set and unit.status in LOCKED:
        raise HTTPException(409, "status-locked")
    _refuse_unsettable(body)
    if unit.status in MID_BOOKING and any(getattr(unit, name) != getattr(body, name) for name in TERMS):
        raise HTTPException(409, "terms-locked")
    if unit.archived and body.status == "available":
        raise HTTPException(409, "transition-not-allowed")


def _media(body: UnitFields) -> dict[str, list[Any]]:
    dumped = body.model_dump(mode="json", include={"images", "files"}, exclude_unset=True)
    return {"images": dumped.get("images") or [], "files": dumped.get("files") or []}


def _create(db: AsyncSession, project: Project, code: str, body: UnitFields) -> Unit:
    _refuse_unsettable(body)
    now = datetime.now(UTC)
    fields = {name: getattr(body, name) for name in COLUMNS} | _media(body)
    unit = Unit(project_id=project.id, code=code, status=body.status or "available", **fields)
    unit.created_at = unit.updated_at = now
    db.add(unit)
    return unit


def _replace(db: AsyncSession, unit: Unit, body: UnitFields) -> None:
    _refuse_conflicts(unit, body)
    previous = unit.status
    for name in COLUMNS:
        setattr(unit, name, getattr(body, name))
    for name, elements in _media(body).items():
        setattr(unit, name, elements)
    unit.status = body.status or unit.status
    unit.version += 1
    unit.updated_at = datetime.now(UTC)
    if unit.status != previous:
        db.add(_event(unit, previous))


def _event(unit: Unit, previous: str) -> Event:
    return Event(
        project_id=unit.project_id,
        unit_id=unit.id,
        unit_version=unit.version,
        type=f"unit.{unit.status}",
        previous_status=previous,
        status=unit.status,
        created_at=unit.updated_at,
    )

"""The tables of the real schema, made by Holdfast's migration."""

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import JSON, FetchedValue, ForeignKey, Text
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, TIMESTAMP
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    type_annotation_map = {datetime: TIMESTAMP(timezone=True), str: Text, list[Any]: JSON, bytes: BYTEA}


class Project(Base):
    __tablename__ = "project"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    slug: Mapped[str]
    name: Mapped[str]


class ApiKeyProject(Base):
    __tablename__ = "api_key_project"

    api_key_id: Mapped[UUID] = mapped_column(ForeignKey("api_key.id"), primary_key=True)
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id"), primary_key=True)


class ApiKey(Base):
    __tablename__ = "api_key"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    key_hash: Mapped[bytes]
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))
    limited_to_projects: Mapped[bool]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class Unit(Base):
    __tablename__ = "unit"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id"))
    code: Mapped[str]
    ref: Mapped[str] = mapped_column(server_default=FetchedValue())
    type: Mapped[str]
    area_sqm: Mapped[Decimal]
    price_sar: Mapped[Decimal]
    vat_included: Mapped[bool | None]
    vat_rate: Mapped[Decimal | None]
    deposit_percent: Mapped[Decimal | None]
    bedrooms: Mapped[int | None]
    bathrooms: Mapped[int | None]
    delivery_year: Mapped[int | None]
    description: Mapped[str | None]
    images: Mapped[list[Any]]
    files: Mapped[list[Any]]
    status: Mapped[str]
    archived: Mapped[bool] = mapped_column(default=False)
    hold_expires_at: Mapped[datetime | None]
    reserved_until: Mapped[datetime | None]
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    project: Mapped[Project] = relationship(lazy="raise")


class Event(Base):
    __tablename__ = "event"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id"))
    unit_id: Mapped[UUID] = mapped_column(ForeignKey("unit.id"))
    unit_version: Mapped[int]
    type: Mapped[str]
    previous_status: Mapped[str]
    status: Mapped[str]
    created_at: Mapped[datetime]

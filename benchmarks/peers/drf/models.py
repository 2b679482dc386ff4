"""The tables of the real schema. Holdfast's migration makes them, so Django does not manage them."""

import uuid
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.expressions import RawSQL
from psycopg.types.json import Json


class MediaColumn(models.JSONField):
    """The column is json, which the driver decodes by itself; Django's own field is for jsonb."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return value

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return Json(value)


class Project(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    slug = models.SlugField(max_length=100, unique=True)
    name = models.CharField(max_length=200)

    class Meta:
        managed = False
        db_table = "project"


class ApiKey(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    key_hash = models.BinaryField(unique=True)
    scopes = ArrayField(models.TextField())
    limited_to_projects = models.BooleanField()
    projects = models.ManyToManyField(Project, through="ApiKeyProject")
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "api_key"


class ApiKeyProject(models.Model):
    pk = models.CompositePrimaryKey("api_key", "project")
    api_key = models.ForeignKey(ApiKey, on_delete=models.CASCADE)
    project = models.ForeignKey(Project, on_delete=models.CASCADE)

    class Meta:
        managed = False
        db_table = "api_key_project"


class Unit(models.Model):
    class Status(models.TextChoices):
        AVAILABLE = "available"
        HELD = "held"
        RESERVED = "reserved"
        SOLD = "sold"
        UNAVAILABLE = "unavailable"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    code = models.CharField(max_length=50)
    ref = models.TextField(unique=True, db_default=RawSQL("'U-' || nextval('unit_ref_number')", ()))
    type = models.CharField(max_length=100)
    area_sqm = models.DecimalField(max_digits=11, decimal_places=4)
    price_sar = models.DecimalField(max_digits=14, decimal_places=2)
    vat_included = models.BooleanField(null=True)
    vat_rate = models.DecimalField(max_digits=7, decimal_places=4, null=True)
    deposit_percent = models.DecimalField(max_digits=7, decimal_places=4, null=True)
    bedrooms = models.SmallIntegerField(null=True)
    bathrooms = models.SmallIntegerField(null=True)
    delivery_year = models.SmallIntegerField(null=True)
    description = models.TextField(null=True)
    images = MediaColumn(default=list)
    files = MediaColumn(default=list)
    status = models.TextField(choices=Status, default=Status.AVAILABLE)
    archived = models.BooleanField(default=False)
    hold_expires_at = models.DateTimeField(null=True)
    reserved_until = models.DateTimeField(null=True)
    version = models.BigIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        managed = False
        db_table = "unit"


class Event(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    unit = models.ForeignKey(Unit, on_delete=models.PROTECT)
    unit_version = models.BigIntegerField()
    type = models.TextField()
    previous_status = models.TextField()
    status = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "event"

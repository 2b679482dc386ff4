"""The unit on the wire: a ModelSerializer with the bounds of the field table."""

from typing import Any

from django.core.validators import URLValidator
from rest_framework import serializers

from benchmarks.peers.drf.models import Unit

IDENTITY = {"id", "code", "projectId", "projectSlug"}


class MediaField(serializers.Field):
    """An http(s) URL, or an object with ``url`` and an optional ``name``."""

    check_url = URLValidator(schemes=["http", "https"])

    def to_internal_value(self, data: Any) -> Any:
        url = data.get("url") if isinstance(data, dict) else data
        if not isinstance(url, str) or (isinstance(data, dict) and not set(data) <= {"url", "name"}):
            raise serializers.ValidationError("Expected a URL, or an object with url and name.")
        self.check_url(url)
        return data

    def to_representation(self, value: Any) -> Any:
        return value


class UnitSerializer(serializers.ModelSerializer):
    projectId = serializers.UUIDField(source="project_id", read_only=True)
    areaSqm = serializers.DecimalField(source="area_sqm", max_digits=11, decimal_places=4, min_value=0)
    priceSar = serializers.DecimalField(source="price_sar", max_digits=14, decimal_places=2, min_value=0)
    vatIncluded = serializers.BooleanField(source="vat_included", allow_null=True, default=None)
    vatRate = serializers.DecimalField(
        source="vat_rate", max_digits=7, decimal_places=4, min_value=0, max_value=100, allow_null=True,
        default=None,
    )  # fmt: skip
    depositPercent = serializers.DecimalField(
        source="deposit_percent", max_digits=7, decimal_places=4, min_value=0, max_value=100, allow_null=True,
        default=None,
    )  # fmt: skip
    bedrooms = serializers.IntegerField(min_value=0, max_value=999, allow_null=True, default=None)
    bathrooms = serializers.IntegerField(min_value=0, max_value=999, allow_null=True, default=None)
    deliveryYear = serializers.IntegerField(
        source="delivery_year", min_value=1900, max_value=2200, allow_null=True, default=None
    )
    description = serializers.CharField(max_length=10_000, allow_blank=True, allow_null=True, default=None)
    images = serializers.ListField(child=MediaField(), max_length=100, allow_null=True, default=list)
    files = serializers.ListField(child=MediaField(), max_length=100, allow_null=True, default=list)
    status = serializers.ChoiceField(choices=Unit.Status.choices, required=False)
    holdExpiresAt = serializers.DateTimeField(source="hold_expires_at", read_only=True)
    createdAt = serializers.DateTimeField(source="created_at", read_only=True)
    updatedAt = serializers.DateTimeField(source="updated_at", read_only=True)
    projectName = serializers.CharField(source="project.name", read_only=True)
    projectSlug = serializers.CharField(source="project.slug", read_only=True)

    class Meta:
        model = Unit
        fields = [
            "id", "projectId", "code", "type", "areaSqm", "priceSar", "vatIncluded", "vatRate",
            "depositPercent", "status", "bedrooms", "bathrooms", "deliveryYear", "description", "images",
            "files", "holdExpiresAt", "createdAt", "updatedAt", "projectName", "projectSlug", "ref",
        ]  # fmt: skip
        read_only_fields = ["id", "code", "ref"]

    def validate_areaSqm(self, value: Any) -> Any:
        if value <= 0:
            raise serializers.ValidationError("Ensure this value is greater than 0.")
        return value

    def validate_images(self, value: Any) -> Any:
        return value or []

    def validate_files(self, value: Any) -> Any:
        return value or []

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        unknown = set(self.initial_data) - set(self.fields)
        if unknown:
            raise serializers.ValidationError(dict.fromkeys(sorted(unknown), "Unknown field."))
        addressed = self.context["addressed"]
        for name in IDENTITY & set(self.initial_data):
            if str(self.initial_data[name]) != addressed.get(name):
                raise serializers.ValidationError({name: "Must equal the addressed unit."})
        return attrs

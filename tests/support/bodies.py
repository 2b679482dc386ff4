"""Bodies of PUT that are right in every way, to be made wrong in one."""

from decimal import Decimal
from typing import Any

REQUIRED = ("type", "areaSqm", "priceSar")
NULLABLE = (
    "vatIncluded", "vatRate", "depositPercent", "bedrooms", "bathrooms", "deliveryYear", "floor",
    "description",
)  # fmt: skip
MEDIA = ("images", "files")
TERMS = ("priceSar", "depositPercent", "vatIncluded", "vatRate")
UNIT_FIELDS = {
    *REQUIRED, *NULLABLE, *MEDIA, "id", "projectId", "code", "status", "holdExpiresAt", "createdAt",
    "updatedAt", "projectName", "projectSlug", "ref",
}  # fmt: skip


def minimal(**changes: Any) -> dict[str, Any]:
    return {"type": "apartment", "areaSqm": Decimal("120.5"), "priceSar": 950_000, **changes}


def full(**changes: Any) -> dict[str, Any]:
    return minimal(
        vatIncluded=False, vatRate=15, depositPercent=Decimal("2.5"), bedrooms=3, bathrooms=2,
        deliveryYear=2027, floor=4, description="A corner flat.\nSea view.",
        images=["https://media.example/a.jpg", {"url": "https://media.example/b.jpg", "name": "Plan"}],
        files=[{"url": "https://media.example/contract.pdf"}],
    ) | changes  # fmt: skip


def without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names}

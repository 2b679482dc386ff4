"""What bodies of deliveries are held against: the JSON of their facts, made without the database."""

import json
from hashlib import sha256
from uuid import UUID

from tests.support.delivery_engine import Engine

FACTS = """
    select pending.id, pending.endpoint_id, event.id, event.type, event.created_at, unit.id, unit.code,
        project.slug, event.status, event.previous_status, event.booking_reference, pending.body
    from event join unit on unit.id = event.unit_id join project on project.id = event.project_id
    join pending_delivery as pending
        on pending.unit_id = event.unit_id and pending.unit_version = event.unit_version
    order by pending.created_at
"""


def id_of(event_id: UUID, endpoint_id: UUID) -> UUID:
    """Worked out without the database."""
    digest = bytearray(sha256(event_id.bytes + endpoint_id.bytes).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    return UUID(bytes=bytes(digest))


async def check_bodies(engine: Engine) -> int:
    """Every body is the JSON of its facts, byte for byte."""
    facts = await engine.rows(FACTS)
    for (
        delivery_id, endpoint_id, event_id, event, created_at, unit_id, code, slug, status, previous,
        reference, body,
    ) in facts:  # fmt: skip
        assert delivery_id == id_of(event_id, endpoint_id)
        unit = {
            "id": str(unit_id), "code": code, "projectSlug": slug, "status": status,
            "previousStatus": previous,
        }  # fmt: skip
        booking = {"reference": reference} if event in ("unit.reserved", "unit.sold") else None
        expected = {
            "id": str(delivery_id),
            "type": event,
            "createdAt": created_at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{created_at.microsecond // 1000:03}Z",
            "data": {"unit": unit, "booking": booking},
        }
        assert body == json.dumps(expected, ensure_ascii=False, separators=(",", ":"))
        assert booking is None or isinstance(reference, str)
    return len(facts)

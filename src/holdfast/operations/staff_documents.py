"""Staff as JSON, in the back office and at the console."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

from holdfast.domain.permissions import Role
from holdfast.domain.spelling import moment_text
from holdfast.domain.staff import Staff
from holdfast.operations.documents import Document, Time, optional_moment_text
from holdfast.operations.setup_links import GOOD_FOR_HOURS


class StaffDocument(Document):
    """A person of the back office."""

    id: Annotated[UUID, Meta(description="The person's id.")]
    email: Annotated[
        str, Meta(description="The address with which the person signs in. It is not case-sensitive.")
    ]
    name: Annotated[str, Meta(description="How others see the person.")]
    role: Annotated[Role, Meta(description="What the person may do.")]
    set_up: Annotated[bool, Meta(description="Whether the person has chosen a password.")]
    second_factor: Annotated[bool, Meta(description="Whether the person signs in with a code as well.")]
    created_at: Time
    disabled_at: Annotated[
        Time | None, Meta(description="When the person was disabled; null if they are not.")
    ]
    last_signed_in_at: Annotated[
        Time | None, Meta(description="When the person last signed in; null if they never did.")
    ]


class InvitedStaffDocument(StaffDocument):
    """A person with a set-up link."""

    setup_url: Annotated[
        str,
        Meta(
            description=f"On this page the person chooses a password, once, within {GOOD_FOR_HOURS} hours. "
            "It is in this response and in no other.",
            extra_json_schema={"format": "uri"},
        ),
    ]


def staff_document(person: Staff) -> StaffDocument:
    return StaffDocument(**_fields(person))


def invited_staff_document(person: Staff, setup_url: str) -> InvitedStaffDocument:
    return InvitedStaffDocument(**_fields(person), setup_url=setup_url)


def _fields(person: Staff) -> dict[str, Any]:
    return {
        "id": person.id,
        "email": person.email,
        "name": person.name,
        "role": person.role,
        "set_up": person.has_password,
        "second_factor": person.has_second_factor,
        "created_at": moment_text(person.created_at),
        "disabled_at": optional_moment_text(person.disabled_at),
        "last_signed_in_at": optional_moment_text(person.last_signed_in_at),
    }

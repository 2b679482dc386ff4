"""Calls that say no more than what they are about."""

from __future__ import annotations

from uuid import UUID

from holdfast.domain.refusals import Fault
from holdfast.web.addresses import id_of
from holdfast.web.call import Call
from holdfast.web.checking import no_fields, refuse_faults
from holdfast.web.json_bodies import optional_json_body
from holdfast.web.queries import refuse_query


def id_alone(call: Call) -> UUID:
    """Of a call that has neither a body nor parameters."""
    faults: list[Fault] = []
    found = id_of(call, faults)
    refuse_query(call, faults)
    refuse_faults(faults)
    return found


async def id_without_fields(call: Call) -> UUID:
    """Of a call that has nothing to say in a body."""
    body = await optional_json_body(call)
    faults: list[Fault] = []
    found = id_of(call, faults)
    refuse_query(call, faults)
    refuse_faults([*faults, *no_fields(body)])
    return found

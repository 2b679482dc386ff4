"""Secrets are rotated while much is queued: whatever is claimed after it is signed with the new ones."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from holdfast.webhooks.dispatcher import AT_ONCE
from tests.support.delivery_journal import Slowly
from tests.support.delivery_scene import Scene, delivery_scene
from tests.support.workers import Pace

UNITS, ENDPOINTS = 334, 3
QUEUED = UNITS * ENDPOINTS
# All first attempts are over before the first retry is due.
PACE = Pace(timeout_seconds=20.0, first_gap_seconds=12.0, lease_seconds=30.0)
ALL_WAIT = f"""
    select count(*) filter (where tried = 1) = {QUEUED} and not exists (select from in_flight)
    from pending_delivery
"""
# So that there is more to do at a time than one worker takes upon itself.
ALL_AT_ONCE = "update pending_delivery set due_at = (select max(due_at) from pending_delivery)"
CLAIMS = """
    select made.number, made.secret_id::text, claimed.worker, delivery.endpoint_id,
        claimed.at > endpoint.secret_made_at as is_after_rotation
    from attempt as made
    join ended_delivery as delivery on delivery.id = made.delivery_id
    join endpoint on endpoint.id = delivery.endpoint_id
    join (
        select *, row_number() over (partition by delivery_id order by token) as number from claim_note
    ) as claimed on claimed.delivery_id = made.delivery_id and claimed.number = made.number
"""


async def test_what_is_queued_when_secrets_are_rotated_is_signed_with_the_new_ones_by_every_worker(
    postgres_url: str, tmp_path: Path
) -> None:
    async with delivery_scene(postgres_url, tmp_path, PACE) as scene:
        ids = [await scene.endpoint(f"{number}", max_in_flight=AT_ONCE // 2) for number in range(ENDPOINTS)]
        old = set(scene.secrets)
        await leave_retries(scene)
        between = {endpoint_id: await scene.rotate(endpoint_id) for endpoint_id in ids}
        scene.journal.behave = Slowly(0.3)
        await scene.journal.arrived(QUEUED + QUEUED // 3)
        new = {endpoint_id: await scene.rotate(endpoint_id) for endpoint_id in ids}
        await scene.assert_sound()
        await assert_rotations_were_at_once(scene, old, between, new)


async def leave_retries(scene: Scene) -> None:
    scene.journal.behave = Slowly(0.3, 500)
    codes = [f"A-{number}" for number in range(UNITS)]
    await scene.add_units(codes)
    await scene.start_workers("one", "two")
    await scene.change(*codes)
    await scene.until(ALL_WAIT)
    assert len(scene.journal.arrivals) == QUEUED
    await scene.execute(ALL_AT_ONCE)


async def assert_rotations_were_at_once(
    scene: Scene, old: set[str], between: dict[UUID, str], new: dict[UUID, str]
) -> None:
    claims = await scene.rows(CLAIMS)
    firsts = [claim for claim in claims if claim["number"] == 1]
    retries = [claim for claim in claims if claim["number"] == 2]
    assert (len(firsts), len(retries)) == (QUEUED, QUEUED)
    assert {claim["secret_id"] for claim in firsts} == old
    for claim in retries:
        rotated = {new[claim["endpoint_id"]]}
        if not claim["is_after_rotation"]:
            # Read with the claim, and a moment old at most; or read again.
            rotated.add(between[claim["endpoint_id"]])
        assert claim["secret_id"] in rotated
    assert {claim["is_after_rotation"] for claim in retries} == {True, False}
    for sent in (firsts, retries):
        assert {claim["worker"] for claim in sent} == {"one", "two"}

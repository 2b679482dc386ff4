"""API keys: issued within the limits of their issuer, cached for a moment, and revoked."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from holdfast.domain import errors
from holdfast.domain.api_key import Scope, key_hash, new_key_text
from holdfast.operations import api_keys
from holdfast.operations.api_keys import ApiKeyCache, KeyIssuer, NewApiKey
from holdfast.storage.database import Database, current_time
from tests.operations.interference import CountingDatabase
from tests.support.inventory import SLUG, new_project
from tests.support.sql import execute, value

LAST_USE = "select last_used_at from api_key"


async def test_a_key_opens_no_more_and_lasts_no_longer_than_that_of_its_issuer(database: Database) -> None:
    await new_project(database)
    ends_at = await database.read(current_time) + timedelta(days=10)
    issuer = KeyIssuer(frozenset({Scope.INTEGRATION}), (SLUG,), ends_at)
    for wanted, pointer in (
        (NewApiKey("x", ()), "/scopes"),
        (NewApiKey("x", (Scope.ADMIN,)), "/scopes"),
        (NewApiKey("x", expires_in_days=0), "/expiresInDays"),
        (NewApiKey("x", expires_in_days=11), "/expiresInDays"),
    ):
        with pytest.raises(errors.InvalidInput) as refused:
            await api_keys.issue(database, wanted, issuer)
        assert [fault.pointer for fault in refused.value.faults] == [pointer]
    key = (await api_keys.issue(database, NewApiKey("x"), issuer)).key
    assert (key.expires_at, key.project_slugs) == (ends_at, (SLUG,))
    for key_id, slugs in ((uuid4(), None), (key.id, ("other",))):
        with pytest.raises(errors.UnknownKey):
            await api_keys.revoke(database, key_id, slugs=slugs)
    revoked = [await api_keys.revoke(database, key.id, slugs=(SLUG,)) for _ in range(2)]
    assert revoked[0].revoked_at == revoked[1].revoked_at is not None


async def test_a_key_is_cached_and_its_use_written_once_a_minute(database: Database) -> None:
    clock, counting = [0.0], CountingDatabase(database)
    cache = ApiKeyCache(counting, lambda: clock[0])
    issued = await api_keys.issue(database, NewApiKey("Sync"))
    for seconds in (0, 0.4, 59, 61):
        clock[0] = seconds
        assert (await cache.find(issued.text)).id == issued.key.id
        await cache.close()
        assert counting.transactions == (2 if seconds == 61 else 1)
    await api_keys.revoke(database, issued.key.id)
    assert (await cache.find(issued.text)).id == issued.key.id
    clock[0] += 0.5
    for text in (issued.text, new_key_text()):
        with pytest.raises(errors.InvalidApiKey):
            await cache.find(text)
    # What is no key at all is not even looked for.
    with pytest.raises(errors.InvalidApiKey):
        await ApiKeyCache(Database("postgresql://nowhere/db"), lambda: 0.0).find("nonsense")


async def test_the_last_use_is_written_at_most_once_a_minute_by_all_processes(database: Database) -> None:
    issued = await api_keys.issue(database, NewApiKey("Sync"))
    stored = []
    for ago in ("0 seconds", "59 seconds", "61 seconds"):
        await execute(database, f"update api_key set last_used_at = last_used_at - interval '{ago}'")
        before = await value(database, LAST_USE)
        # A process of its own, which has written nothing yet. Requests at the same time share one look-up.
        process = ApiKeyCache(database, lambda: 0.0)
        found = await asyncio.gather(*(process.find(issued.text) for _ in range(5)))
        assert all(key is found[0] for key in found)
        await process.close()
        stored.append((before, await value(database, LAST_USE)))
    (nothing, first), (moved, still), (old, new) = stored
    assert (nothing, still) == (None, moved)
    assert old < moved < first < new


async def test_the_hash_of_a_key_is_compared_in_constant_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued, compared = await api_keys.issue(database, NewApiKey("Sync")), []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr("hmac.compare_digest", compare)
    with pytest.raises(errors.InvalidApiKey):
        await ApiKeyCache(database, lambda: 0.0).find(issued.text)
    assert compared == [(key_hash(issued.text), key_hash(issued.text))]

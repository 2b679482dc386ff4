"""Issues and revokes keys through the operations, without a process for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from holdfast.domain.api_key import Scope
from holdfast.operations import api_keys
from holdfast.storage.database import Database
from tests.support.sql import Sql


@dataclass(frozen=True)
class Key:
    id: UUID
    text: str


class Keys:
    def __init__(self, sql: Sql, database_url: str) -> None:
        self._sql = sql
        self._url = database_url

    def issue(
        self,
        *,
        scopes: Sequence[str] = ("integration",),
        projects: Sequence[str] = (),
        expires_in_days: float | None = None,
    ) -> Key:
        wanted = [Scope(scope) for scope in scopes]
        new = api_keys.NewApiKey("a key of the tests", wanted, projects, expires_in_days)
        return self._sql.run(self._issue(new))

    async def _issue(self, new: api_keys.NewApiKey) -> Key:
        async with Database(self._url) as database:
            issued = await api_keys.issue(database, new)
        return Key(issued.key.id, issued.text)

    def revoke(self, key: Key) -> None:
        self._sql.run(self._revoke(key))

    async def _revoke(self, key: Key) -> None:
        async with Database(self._url) as database:
            await api_keys.revoke(database, key.id)

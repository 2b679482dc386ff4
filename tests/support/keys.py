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
        return self._sql.run(self._issue([Scope(scope) for scope in scopes], projects, expires_in_days))

    async def _issue(self, scopes: Sequence[Scope], projects: Sequence[str], days: float | None) -> Key:
        async with Database(self._url) as database:
            issued = await api_keys.issue(
                database, api_keys.NewApiKey("a key of the tests", scopes, projects, days)
            )
        return Key(issued.key.id, issued.text)

    def revoke(self, key: Key) -> None:
        self._sql.run(self._revoke(key))

    async def _revoke(self, key: Key) -> None:
        async with Database(self._url) as database:
            await api_keys.revoke(database, key.id)

"""Staff who work in the browser, and their sessions."""

from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from holdfast.domain.audit import COMMAND
from holdfast.domain.permissions import Role
from holdfast.operations.login import Login, LoginClient, SessionTimes, new_secret
from holdfast.operations.staff import StaffAccounts
from holdfast.storage.database import Database
from holdfast.storage.secrets import SecretBox
from tests.support.chromium import beside_playwright
from tests.support.second_factor import code_now
from tests.support.server import WEBHOOKS
from tests.support.sql import Sql

PASSWORD = "five quiet cranes over Riyadh"
_BOX = SecretBox([WEBHOOKS["HOLDFAST_ENCRYPTION_KEYS"]])
_ENROL = "update staff set second_factor_sealed = $2 where id = $1"
_PREFER = "update staff set language = $2, digits = $3, theme = $4 where id = $1"


@dataclass(frozen=True)
class Person:
    id: UUID
    email: str
    role: str
    token: str
    """Of a session that is open already."""
    factor: str | None = None
    """The secret of the second factor."""

    @property
    def code(self) -> str:
        """What an app on their phone shows now."""
        assert self.factor is not None
        return code_now(self.factor)


class People:
    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def add(
        self,
        role: str = "admin",
        *,
        name: str | None = None,
        email: str | None = None,
        language: str = "en",
        digits: str = "latn",
        theme: str = "auto",
        has_factor: bool | None = None,
    ) -> Person:
        """``has_factor``: unless it is given, only integrators have one, whose role requires it."""
        address = email or f"{role}-{uuid4().hex[:8]}@example.com"
        with beside_playwright():
            person = self._sql.run(self._add(address, name or f"Salma, {role}", Role(role)))
            self._sql.execute(_PREFER, person.id, language, digits, theme)
            if has_factor or (has_factor is None and role == "integrator"):
                person = replace(person, factor=new_secret())
                self._sql.execute(_ENROL, person.id, _BOX.seal(person.factor or ""))
        return person

    def invite(self, name: str) -> str:
        """The path of a set-up link."""
        email = f"invited-{uuid4().hex[:8]}@example.com"
        with beside_playwright():
            return f"/backoffice/set-up/{self._sql.run(self._invite(email, name))}"

    async def _invite(self, email: str, name: str) -> str:
        async with Database(self._sql.url) as database:
            return (await StaffAccounts(database).invite(email, name, Role.SALES, COMMAND)).token

    async def _add(self, email: str, name: str, role: Role) -> Person:
        async with Database(self._sql.url) as database:
            person = await StaffAccounts(database).add(email, name, role, PASSWORD, COMMAND)
            login = Login(database, _BOX, SessionTimes())
            opened = await login.open_session(person.id, LoginClient("127.0.0.1", "Chromium on Debian"))
        return Person(person.id, email, role, opened.token)

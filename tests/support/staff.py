"""People of the back office, made for a test."""

from typing import NamedTuple
from uuid import UUID

import pyotp
from argon2 import PasswordHasher

from holdfast.domain.audit import COMMAND
from holdfast.domain.errors import SecondFactorNeeded
from holdfast.domain.permissions import Role
from holdfast.domain.staff import SessionTimes, Staff
from holdfast.operations.login import Login, LoginClient, NewSession, Passwords
from holdfast.operations.staff import Accounts, OwnAccount, StaffAccounts
from holdfast.storage.database import Database
from holdfast.storage.secrets import SecretBox, new_encryption_key

PASSWORD = "a horse of lead"
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
ADDRESS, AGENT = "192.0.2.7", "Mozilla/5.0 (X11)"
CLIENT = LoginClient(ADDRESS, AGENT)


class Office(NamedTuple):
    """All that has to do with staff, on one database."""

    database: Database
    box: SecretBox
    login: Login
    staff: StaffAccounts
    accounts: Accounts

    async def add(self, email: str = "nora@example.com", role: Role = Role.ADMIN) -> Staff:
        return await self.staff.add(email, email.partition("@")[0], role, PASSWORD, COMMAND)

    async def sign_in(
        self,
        email: str = "nora@example.com",
        code: str | None = None,
        password: str = PASSWORD,
        client: LoginClient = CLIENT,
    ) -> NewSession:
        try:
            return await self.login.sign_in(email, password, client)
        except SecondFactorNeeded as needed:
            if code is None:
                raise
            return await self.login.sign_in_with_code(needed.ticket, code, client)

    async def oneself(self, opened: NewSession) -> OwnAccount:
        found = await self.login.find(opened.token)
        assert found is not None
        return OwnAccount(found.staff, found.session_id, COMMAND)

    async def is_signed_in(self, opened: NewSession) -> bool:
        return await self.login.find(opened.token) is not None

    async def now(self) -> float:
        async with self.database.reading() as connection:
            return float(await connection.fetchval("select extract(epoch from clock_timestamp())::float8"))

    async def code(self, secret: str, apart: int = 1) -> str:
        """The next one: it is good for more than half a minute, and after the present one was used."""
        return pyotp.TOTP(secret).at(int(await self.now()), apart)

    async def set_up_factor(self, who: OwnAccount, password: str = PASSWORD) -> str:
        await self.accounts.offer_factor(who, password)
        secret = await self.accounts.offered_factor(who.staff.id)
        assert secret is not None
        await self.accounts.confirm_factor(who, await self.code(secret, 0))
        return secret

    async def actions(self, staff_id: UUID) -> list[str]:
        """What the audit trail tells of somebody, the oldest first."""
        async with self.database.reading() as connection:
            rows = await connection.fetch(
                "select action from audit_entry where subject_id = $1 order by id", staff_id
            )
        return [row[0] for row in rows]


def open_office(database: Database, times: SessionTimes | None = None) -> Office:
    """With passwords that are hashed in no time; the product takes its time, on purpose."""
    box, passwords = SecretBox([new_encryption_key()]), Passwords(QUICK)
    return Office(
        database,
        box,
        Login(database, box, times or SessionTimes(), passwords),
        StaffAccounts(database, passwords),
        Accounts(database, box, passwords),
    )

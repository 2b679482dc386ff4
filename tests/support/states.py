"""Brings a unit to the states that only buyers and staff bring about, by what buyers and staff do."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

import httpx

from tests.support import exact_json
from tests.support.buying import Buyer, Hold
from tests.support.client import JSON, Project, Unit
from tests.support.keys import Keys
from tests.support.sql import Sql

BACKOFFICE = "/v1/backoffice"
END_NOW = """
    with claimed as (
        select unit.id, unit.status = 'held' as is_hold,
            greatest(date_trunc('milliseconds', clock_timestamp()), unit.updated_at + interval '1 ms') as now
        from unit join booking on booking.unit_id = unit.id where booking.reference = $1
    ), moved as (
        update booking set
            hold_expires_at = case when is_hold then now else hold_expires_at end,
            reserved_until = case when is_hold then reserved_until else now end
        from claimed where reference = $1
    )
    update unit set
        hold_expires_at = case when is_hold then now end,
        reserved_until = case when not is_hold then now end
    from claimed where unit.id = claimed.id returning now
"""
WAIT = "select pg_sleep(greatest(0, extract(epoch from $1::timestamptz - clock_timestamp())) + 0.001)"

_staff_keys: WeakKeyDictionary[Sql, str] = WeakKeyDictionary()


def hold(sql: Sql, unit: Unit, *, expires_in: float | None = None) -> Hold:
    """For as long as the project has it, or for these seconds: then so are its later holds."""
    if expires_in is not None:
        settle(sql, unit, holdSeconds=expires_in)
    return Buyer(unit.http).hold(unit)


def reserve(sql: Sql, unit: Unit) -> Hold:
    held = hold(sql, unit)
    held.sign()
    confirm_deposit(sql, held)
    return held


def sell(sql: Sql, unit: Unit) -> Hold:
    held = reserve(sql, unit)
    act(sql, unit, "close-sale")
    return held


def archive(sql: Sql, unit: Unit) -> None:
    act(sql, unit, "archive")


def bring_to(sql: Sql, unit: Unit, status: str) -> Hold:
    """Any of the three locked statuses, by name."""
    return {"held": hold, "reserved": reserve, "sold": sell}[status](sql, unit)


def end_now(sql: Sql, held: Hold) -> Hold:
    """Moves the end of a hold or reservation to this moment. Somebody may release the unit, or nobody yet."""
    now = sql.value(END_NOW, held.reference)
    wait_until(sql, now)
    return replace(held, expires_at=now.isoformat(timespec="milliseconds").replace("+00:00", "Z"))


def hold_and_let_lapse(sql: Sql, unit: Unit) -> datetime:
    """A hold that is over by the database's clock, released or not; its end."""
    return end_now(sql, hold(sql, unit)).ends


def wait_until(sql: Sql, moment: datetime) -> None:
    """By the database's clock, which is the one that counts."""
    sql.value(WAIT, moment)


def version(sql: Sql, unit: Unit) -> int:
    return int(sql.value("select version from unit where id = $1", unit.read()["id"]))


def stored_status(sql: Sql, unit: Unit) -> str:
    """The status in the unit's row, whatever readers see."""
    return str(sql.value("select status from unit where id = $1", unit.read()["id"]))


def act(sql: Sql, unit: Unit, action: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
    """What staff do to a unit."""
    return _done(
        send_as_staff(sql, unit.http, "POST", f"{_project_url(unit.project)}/{_place(unit)}/{action}", body)
    )


def settle(sql: Sql, unit: Unit, **settings: float | str | None) -> dict[str, Any]:
    """What staff settle for the project of the unit."""
    return _done(send_as_staff(sql, unit.http, "PATCH", _project_url(unit.project), settings))


def confirm_deposit(sql: Sql, held: Hold) -> dict[str, Any]:
    url = f"{BACKOFFICE}/bookings/{held.reference}/confirm-deposit"
    return _done(send_as_staff(sql, held.unit.http, "POST", url))


def staff_booking(sql: Sql, held: Hold) -> dict[str, Any]:
    return _done(send_as_staff(sql, held.unit.http, "GET", f"{BACKOFFICE}/bookings/{held.reference}"))


def send_as_staff(
    sql: Sql, http: httpx.Client, method: str, url: str, body: Mapping[str, object] | None = None
) -> httpx.Response:
    headers = {"Authorization": f"Bearer {_staff_key(sql)}"}
    if body is None:
        return http.request(method, url, headers=headers)
    content = exact_json.write(dict(body))
    return http.request(method, url, content=content, headers={**headers, "Content-Type": JSON})


def _staff_key(sql: Sql) -> str:
    if sql not in _staff_keys:
        _staff_keys[sql] = Keys(sql, sql.url).issue(scopes=["backoffice", "payments"]).text
    return _staff_keys[sql]


def _project_url(project: Project) -> str:
    return f"{BACKOFFICE}/projects/{project.slug}"


def _place(unit: Unit) -> str:
    """The end of the unit's address, with its code as a path spells it."""
    return f"units/{unit.url.rpartition('/')[2]}"


def _done(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body

"""Two hundred buyers want one unit at once: one of them gets it, and a control in which several do."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.concurrent_requests import Answer, open_lines, salvo
from tests.support.history_checker import faults_of
from tests.support.sales_project import Market, expect, new_market, open_market, reach_web_processes, stock_up
from tests.support.server import RunningServer
from tests.support.sql import Sql
from tests.support.unit_history import read_histories

BUYERS = 200
ROUNDS_OF_THE_CONTROL = 40

# All that keeps two writers of one unit apart, one after the other: a unit is stored only if its turn
# is the one that was found, no two changes of it have one version, no two bookings claim it.
WITHOUT_GUARDS = """
    create function keep_turn() returns trigger language plpgsql as
        $$ begin new.turn := old.turn; return new; end $$;
    create trigger keep_turn before update on unit for each row execute function keep_turn();
    alter table event drop constraint one_event_per_change;
    drop index one_booking_claims_a_unit;
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, module_postgres_url: str) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("many-buyers")
    with open_market(folder, module_postgres_url, "--processes", "2") as (_, server):
        yield server


async def rush(
    market: Market, server: RunningServer, codes: list[str], buyers_each: int
) -> dict[str, list[Answer]]:
    """What the buyers of each unit were answered. No two neighbours want the same unit."""
    wanted = codes * buyers_each
    async with open_lines(market.address, len(wanted)) as lines:
        await reach_web_processes(server, market.address)
        answers = await salvo(lines, [market.hold(code) for code in wanted])
    found: dict[str, list[Answer]] = {code: [] for code in codes}
    for code, answer in zip(wanted, answers, strict=True):
        found[code].append(answer)
    return found


def winner(answers: list[Answer]) -> str:
    """The reference of the one who got the unit; all the others were told why they did not."""
    assert Counter(answer.status for answer in answers) == {201: 1, 409: len(answers) - 1}
    assert {answer.reason for answer in answers if answer.status == 409} == {"not-available"}
    (held,) = [answer.body for answer in answers if answer.status == 201]
    return str(held["reference"])


@pytest.mark.parametrize(("units", "buyers_each"), [(1, BUYERS), (10, 40)])
def test_of_many_buyers_at_once_one_gets_the_unit(
    server: RunningServer, module_postgres_url: str, units: int, buyers_each: int
) -> None:
    market = new_market(server.address, module_postgres_url)
    codes = [f"A-{number}" for number in range(units)]
    asyncio.run(stock_up(market, codes))
    answers = asyncio.run(rush(market, server, codes, buyers_each))
    with Sql(module_postgres_url) as sql:
        histories = {history.unit["code"]: history for history in read_histories(sql, market.slug)}
    assert sorted(histories) == sorted(codes)
    for code, history in histories.items():
        assert faults_of(history) == []
        assert [event["type"] for event in history.events] == ["unit.held"]
        assert [(each["reference"], each["status"]) for each in history.bookings] == [
            (winner(answers[code]), "open")
        ]


def test_without_the_guards_several_buyers_get_the_unit(tmp_path: Path, postgres_url: str) -> None:
    """The control: the rush of the test above does bring writers together, and the checker sees it."""
    with Sql(postgres_url) as sql:
        sql.execute(WITHOUT_GUARDS)
    with open_market(tmp_path, postgres_url, "--processes", "4") as (market, server):
        assert asyncio.run(most_winners(market, server)) > 1
        with Sql(postgres_url) as sql:
            assert [
                fault for history in read_histories(sql, market.slug) for fault in faults_of(history)
            ] != []


async def most_winners(market: Market, server: RunningServer) -> int:
    """Of the first rush that had more than one, within reason."""
    most = 0
    for number in range(ROUNDS_OF_THE_CONTROL):
        code = f"A-{number}"
        await stock_up(market, [code])
        answers = (await rush(market, server, [code], 40))[code]
        most = max(most, sum(expect(answer, 201, 409).status == 201 for answer in answers))
        if most > 1:
            break
    return most

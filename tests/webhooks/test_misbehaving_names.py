"""Name servers that misbehave, and names that lead where no delivery may go."""

import asyncio

import pytest

from tests.support.name_server import name_server
from tests.support.receiver_posts import a_post, a_sender, eventually, in_time
from tests.support.receivers import answer_all, receiving

A, AAAA = 1, 28


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


async def test_a_name_that_does_not_exist_is_a_failure() -> None:
    async with name_server() as names, a_sender(name_servers=[names.place]) as sender:
        attempted = await in_time(sender, a_post("https://nobody.example/"))
    assert attempted.cause == "The host name does not exist."
    assert attempted.timings.dns_ms is not None
    assert attempted.timings.connect_ms is None
    assert attempted.address is None
    assert attempted.request_headers == ()


async def test_a_name_without_an_address_is_a_failure() -> None:
    async with name_server(empty=[]) as names, a_sender(name_servers=[names.place]) as sender:
        attempted = await in_time(sender, a_post("https://empty.example/"))
    assert attempted.cause == "The host name has no address."


async def test_a_name_server_that_fails_is_a_failure() -> None:
    async with name_server() as names, a_sender(name_servers=[names.place], timeout_seconds=5) as sender:
        names.failing.add("broken.example")
        attempted = await in_time(sender, a_post("https://broken.example/"), 5)
    assert attempted.cause == "The host name could not be resolved."


async def test_a_name_server_that_hangs_is_given_up_at_the_deadline_and_blocks_nobody() -> None:
    async with (
        receiving(answer_all) as receiver,
        name_server(good=["127.0.0.1"]) as names,
        a_sender(name_servers=[names.place]) as sender,
    ):
        names.hanging.add("hung.example")
        waiting = [
            asyncio.ensure_future(in_time(sender, a_post("https://hung.example/"))) for _ in range(100)
        ]
        await names.asked.wait()
        assert (await in_time(sender, a_post(receiver.url_at("good.example")), 0)).cause is None
        causes = {attempted.cause for attempted in await asyncio.gather(*waiting)}
        assert causes == {"The host name could not be resolved within one second."}
        # All hundred waited for the answer to one and the same question.
        assert names.questions["hung.example", A] <= 2


async def test_one_of_several_that_wait_for_a_name_may_give_up_alone() -> None:
    async with (
        receiving(answer_all) as receiver,
        name_server(slow=["127.0.0.1"]) as names,
        a_sender(name_servers=[names.place], timeout_seconds=5) as sender,
    ):
        names.hanging.add("slow.example")
        first = asyncio.ensure_future(sender.send(a_post(receiver.url_at("slow.example"))))
        second = asyncio.ensure_future(sender.send(a_post(receiver.url_at("slow.example"))))
        await names.asked.wait()
        first.cancel()
        names.hanging.clear()
        assert (await second).cause is None
        with pytest.raises(asyncio.CancelledError):
            await first


async def test_a_single_private_address_among_public_ones_stops_everything() -> None:
    async with (
        receiving(answer_all) as receiver,
        name_server(mixed=["127.0.0.1", "10.0.0.1"], public=["93.184.216.34", "fd00::1"]) as names,
        a_sender(name_servers=[names.place]) as sender,
    ):
        mixed = await in_time(sender, a_post(receiver.url_at("mixed.example")))
        public = await in_time(sender, a_post("https://public.example/"))
        assert receiver.connections == 0
    assert str(mixed.cause) == "The name resolves to 10.0.0.1, which is a private address."
    assert str(public.cause) == "The name resolves to fd00::1, which is a private address."
    assert public.address is None


async def test_a_name_that_changes_to_a_refused_address_is_refused_from_then_on() -> None:
    async with (
        receiving(answer_all) as receiver,
        receiving(answer_all, host="127.0.0.2", port=receiver.port) as inside,
        name_server(moving=["127.0.0.1"]) as names,
        a_sender(name_servers=[names.place], allowed=["127.0.0.1/32"]) as sender,
    ):
        url = receiver.url_at("moving.example")
        assert (await in_time(sender, a_post(url))).cause is None
        names.addresses["moving.example"] = ["127.0.0.2"]
        # The connection that stands leads to the address that was checked, whatever the name says now.
        again = await in_time(sender, a_post(url))
        assert (again.cause, again.address) == (None, "127.0.0.1")
        await sender.close()
        moved = await in_time(sender, a_post(url))
        assert str(moved.cause) == "The name resolves to 127.0.0.2, which is a loopback address."
        assert inside.connections == 0


async def test_a_name_is_resolved_once_and_the_address_that_was_checked_is_the_one_contacted() -> None:
    async with (
        receiving(answer_all) as receiver,
        receiving(answer_all, host="127.0.0.2", port=receiver.port) as inside,
        name_server(rebinding=["127.0.0.1"]) as names,
        a_sender(name_servers=[names.place], allowed=["127.0.0.1/32"]) as sender,
    ):
        sending = asyncio.ensure_future(in_time(sender, a_post(receiver.url_at("rebinding.example"))))
        await eventually(lambda: names.questions["rebinding.example", AAAA] > 0)
        names.addresses["rebinding.example"] = ["127.0.0.2"]
        attempted = await sending
        assert (attempted.cause, attempted.address) == (None, "127.0.0.1")
        assert names.questions["rebinding.example", A] == 1
        assert inside.connections == 0


async def test_plain_http_to_a_name_outside_the_allowed_networks_is_refused() -> None:
    async with (
        name_server(public=["93.184.216.34"]) as names,
        a_sender(name_servers=[names.place], allowed=[]) as sender,
    ):
        attempted = await in_time(sender, a_post("http://public.example/"))
    assert attempted.cause == (
        "The URL must begin with https://: http is for addresses in the allowed networks only."
    )
    assert attempted.address is None


async def test_a_dead_address_is_passed_over_for_one_that_answers() -> None:
    async with (
        receiving(answer_all, host="127.0.0.1") as receiver,
        name_server(half=["127.0.0.2", "127.0.0.3", "127.0.0.1"]) as names,
        a_sender(name_servers=[names.place]) as sender,
    ):
        attempted = await in_time(sender, a_post(receiver.url_at("half.example")))
    assert (attempted.cause, attempted.address) == (None, "127.0.0.1")


async def test_both_families_of_a_name_are_tried() -> None:
    async with (
        receiving(answer_all, host="::1") as receiver,
        name_server(dual=["127.0.0.1", "::1"]) as names,
        a_sender(name_servers=[names.place]) as sender,
    ):
        attempted = await in_time(sender, a_post(receiver.url_at("dual.example")))
    assert (attempted.cause, attempted.address) == (None, "::1")


async def test_localhost_is_contacted_where_one_family_of_it_is_allowed_and_only_there() -> None:
    async with (
        receiving(answer_all, host="127.0.0.1") as receiver,
        receiving(answer_all, host="::1", port=receiver.port) as other,
        a_sender(allowed=["127.0.0.0/8"]) as sender,
    ):
        attempted = await in_time(sender, a_post(receiver.url_at("localhost")))
        assert other.connections == 0
    assert (attempted.cause, attempted.address) == (None, "127.0.0.1")


async def test_when_no_address_answers_the_refusal_is_the_cause() -> None:
    async with (
        name_server(dead=["127.0.0.1", "127.0.0.2"]) as names,
        a_sender(name_servers=[names.place]) as sender,
    ):
        attempted = await in_time(sender, a_post("http://dead.example:9/"))
    assert attempted.cause == "The connection was refused."
    assert attempted.address in ("127.0.0.1", "127.0.0.2")

"""A request whose client has gone, and how the head of a response is sent."""

import asyncio

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from holdfast.server.http_server import ResponseTransport
from tests.server.connecting import put, serving, starlette, until

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
BODY_LIKE_A_HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


async def read_after_leaving(request_bytes: bytes) -> list[str]:
    """What a handler reads that begins to read when its client is gone already."""
    begun, is_gone, found = asyncio.Event(), asyncio.Event(), asyncio.Future[list[str]]()

    async def read(request: Request) -> Response:
        begun.set()
        await is_gone.wait()
        try:
            body = (await request.body()).decode()
        except ClientDisconnect:
            body = "cut short"
        found.set_result([body, (await request.receive())["type"]])
        return Response()

    async with serving(starlette(echo=read)) as served:
        _, writer = await served.connect()
        writer.write(request_bytes)
        await begun.wait()
        writer.transport.abort()
        await until(lambda: not served.server.server_state.connections)
        is_gone.set()
        async with asyncio.timeout(10):
            return await found


async def test_a_request_that_came_in_whole_is_served_though_its_client_is_gone() -> None:
    assert await read_after_leaving(put(b"whole")) == ["whole", "http.disconnect"]


async def test_a_request_that_was_cut_short_is_not() -> None:
    assert await read_after_leaving(put(b"whole")[:-1]) == ["cut short", "http.disconnect"]


class Recording(asyncio.Transport):
    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))

    def close(self) -> None:
        self.sent.append(b"closed")


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ([HEAD, b"body"], [HEAD + b"body"]),
        ([HEAD, b"bo", b"dy"], [HEAD + b"bo", b"dy"]),
        ([HEAD, BODY_LIKE_A_HEAD, BODY_LIKE_A_HEAD], [HEAD + BODY_LIKE_A_HEAD, BODY_LIKE_A_HEAD]),
        ([HEAD, b""], [HEAD]),
        ([CONTINUE, HEAD, b"body"], [CONTINUE, HEAD + b"body"]),
        ([CHUNKED_HEAD, b"4\r\nbody\r\n"], [CHUNKED_HEAD, b"4\r\nbody\r\n"]),
    ],
)
def test_a_head_of_known_length_is_sent_with_the_beginning_of_its_body(
    written: list[bytes], sent: list[bytes]
) -> None:
    transport = Recording()
    response = ResponseTransport(transport, "GET")
    for data in written:
        response.write(data)
    assert transport.sent == sent


def test_a_head_that_no_body_follows_is_sent_at_once() -> None:
    transport = Recording()
    ResponseTransport(transport, "HEAD").write(HEAD)
    assert transport.sent == [HEAD]


def test_a_head_is_sent_before_the_connection_is_closed() -> None:
    transport = Recording()
    response = ResponseTransport(transport, "GET")
    response.write(HEAD)
    response.close()
    assert transport.sent == [HEAD, b"closed"]

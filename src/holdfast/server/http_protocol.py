"""uvicorn's HTTP protocol, with limits on what a client may send and on how long it may take."""

from typing import Any, Literal

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from holdfast.server.http_server import ConnectionCounts, Trailers, extend_cycle, plain_response


class HttpProtocol(HttpToolsProtocol):
    head_bytes, head_lines, path_bytes, head_seconds = 64 * 1024, 1000, 4096, 30.0
    framing_bytes = 16 * 1024  # of chunks and trailers, more than there is body
    piece_bytes = 16 * 1024  # is parsed before the limits are checked again
    body_seconds, body_bytes = 30.0, 30 * 16 * 1024  # a body ends in this time, or so much of it arrives
    stalled_seconds = 30.0  # without reading any of a response
    drain_bytes, drain_seconds = 64 * 1024, 2.0  # of a request that has its response already
    check_seconds = 2.0
    counts = ConnectionCounts()
    # The state of a connection:
    serving: RequestResponseCycle | None = None  # self.cycle is the latest, which may have to wait
    part: Literal["head", "body"] | None = None  # of a request that is not complete
    received = payload = 0  # bytes of this part, after the data it began in, and how many of them are body
    messages, data_bytes, is_over = 0, 0, False  # is_over: no more requests are read
    awaited, awaited_since = ("", 0, 0), 0.0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.timer = self.loop.call_later(self.check_seconds, self.check_deadline)
        if not self.counts.add(self.client):
            self.reject(503, "too many connections")

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.timer.cancel()
        self.counts.remove(self.client)
        self.disconnect()

    def disconnect(self) -> None:
        if self.serving is not None:
            self.serving.disconnected = not self.serving.response_complete
            self.serving.message_event.set()

    def data_received(self, data: bytes) -> None:
        for at in range(0, len(data), self.piece_bytes):
            self.parse_piece(data[at : at + self.piece_bytes])

    def parse_piece(self, data: bytes | memoryview) -> None:
        self.data_bytes, pieces = len(data), [data]
        unread = len(self.cycle.body) if self.part == "body" else 0
        while pieces and not self.is_over:
            try:
                piece = pieces.pop()
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade as upgrade:
                # The parser takes the body for another protocol: read the head again without that offer.
                first = self.parser.get_method(), self.url, self.parser.get_http_version().encode()
                self.parser = httptools.HttpRequestParser(self)  # one that has not seen `Connection: close`
                lines = [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
                head = b"\r\n".join([b"%b %b HTTP/%b" % first, *lines, b"", b""])
                pieces += [memoryview(piece)[upgrade.args[0] :], head]
            except httptools.HttpParserError as error:
                self.reject(431 if self.is_head_too_large() else 400, error)
        self.received += len(data)
        if self.is_over or (self.part == "body" and self.cycle.response_complete):
            if self.received > self.drain_bytes:
                self.is_over = True
                self.flow.pause_reading()
        elif self.part != "body" and (
            self.received > self.head_bytes or (self.part and len(self.headers) > self.head_lines)
        ):
            self.reject(431, "the head is too large")
        elif self.part == "body" and self.received:
            self.payload += len(self.cycle.body) - unread
            if self.received - self.payload > self.framing_bytes + self.payload:
                self.reject(400, "the body has more framing than data")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.part, self.received, self.messages = "head", -self.data_bytes, self.messages + 1

    def is_head_too_large(self) -> bool:
        if len(self.headers) > self.head_lines or len(self.url.partition(b"?")[0]) > self.path_bytes:
            return True
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > self.head_bytes:
            return True
        return any(name == b"content-length" and len(value) > 20 for name, value in self.headers)

    def on_headers_complete(self) -> None:
        if (self.data_bytes > 4096 or self.received > -self.data_bytes) and self.is_head_too_large():
            raise ValueError("the head is too large")
        if self.parser.get_method() == b"CONNECT":
            raise ValueError("CONNECT is not supported")
        if self.parser.should_upgrade():
            return  # data_received reads the head again
        if self.url[:1] != b"/" and (url := httptools.parse_url(self.url)).host and not url.path:
            self.url = b"/?%b" % (url.query or b"")
        self.expect_100_continue = self.expect_100_continue and self.parser.get_http_version() != "1.0"
        earlier = None if self.serving is None or self.serving.response_complete else self.serving
        super().on_headers_complete()
        self.serving = earlier or self.cycle
        extend_cycle(self.cycle)
        self.cycle.keep_alive &= not self.expect_100_continue  # until the body has come: see below
        self.headers = Trailers()
        self.part, self.received, self.payload = "body", -self.data_bytes, 0

    def on_message_complete(self) -> None:
        if self.part == "body":  # not the head of an upgrade
            super().on_message_complete()
            self.part, self.received = None, -self.data_bytes
            if self.expect_100_continue and not self.cycle.response_started:
                self.cycle.keep_alive = self.parser.should_keep_alive()

    def reject(self, status: int, reason: str | Exception) -> None:
        """Read no more requests. Respond to this one, unless it has a response or must wait for others."""
        cycle = self.cycle if self.part == "body" else None
        headers = self.scope["headers"] if cycle else []  # of a whole head: a proxy may add the last line
        request_id = self.counts.log_rejection(self.client, headers, status, reason)
        self.is_over, self.part, self.received = True, None, 0
        if cycle is not None and self.pipeline and self.pipeline[0][0] is cycle:
            self.pipeline.popleft()
        elif cycle is self.serving or not self.is_serving():
            if cycle is None or not cycle.response_started:
                self.transport.write(plain_response(status, request_id, self.server_state.default_headers))
            self.disconnect()
            self.transport.write_eof()  # not close(): data that was not read would reset the connection

    def is_serving(self) -> bool:
        cycle = self.serving
        return cycle is not None and not (cycle.response_complete or cycle.disconnected)

    def on_response_complete(self) -> None:
        if self.pipeline:
            self.serving = self.pipeline[-1][0]
            super().on_response_complete()
            if self.pipeline and not self.transport.is_closing():
                self.flow.pause_reading()
            return
        # As uvicorn does, without a timer for each response: check_deadline closes idle connections.
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
        if self.is_over:
            self.transport.close()
        elif self.part == "body":
            self.received = self.payload = 0

    def shutdown(self) -> None:
        super().shutdown()
        self.stalled_seconds = self.drain_seconds

    def check_deadline(self) -> None:
        """Give up a client that keeps the server waiting for a request, or for reading a response."""
        self.timer = self.loop.call_later(self.check_seconds, self.check_deadline)
        busy, in_body, now = self.is_serving(), self.part == "body", self.loop.time()
        progress = unsent = self.transport.get_write_buffer_size()
        if unsent and (self.flow.write_paused or not busy or self.transport.is_closing()):
            kind, limit = "read", self.stalled_seconds
        elif busy and in_body and not (self.flow.read_paused or self.cycle.waiting_for_100_continue):
            kind, progress, limit = "body", self.received // self.body_bytes, self.body_seconds
        elif busy:
            kind, limit = "response", float("inf")
        elif self.is_over or in_body:
            kind, limit = "end", self.drain_seconds
        else:
            kind, limit = self.part or "idle", self.head_seconds if self.part else self.timeout_keep_alive
        if (kind, self.messages, progress) != self.awaited:
            self.awaited, self.awaited_since = (kind, self.messages, progress), now
        elif now - self.awaited_since >= limit:
            self.reject(408, f"slow {kind}") if kind in ("head", "body") else self.transport.abort()

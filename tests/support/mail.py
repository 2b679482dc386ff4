"""A real SMTP server for tests, which keeps what it takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope

from tests.support.ports import free_port

SENDER = "Palm Court <sales@palm-court.example>"


class MailServer:
    def __init__(self) -> None:
        self.host, self.port = "127.0.0.1", 0
        self.recipients: list[list[str]] = []
        self.messages: list[EmailMessage] = []
        self.answers: list[str] = []
        """What it says to the next recipients, in place of taking them."""
        self.hangs = False
        """Whether it never says whether it has taken a message."""

    @property
    def url(self) -> str:
        return f"smtp://{self.host}:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        return {"HOLDFAST_SMTP_URL": self.url, "HOLDFAST_MAIL_FROM": SENDER}

    async def handle_RCPT(  # noqa: N802 - as aiosmtpd names it
        self, _server: SMTP, _session: Any, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if self.answers:
            return self.answers.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, _session: Any, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.recipients.append(envelope.rcpt_tos)
        self.messages.append(message)
        if self.hangs:
            await asyncio.Event().wait()
        return "250 OK"


@asynccontextmanager
async def mail_server(host: str = "127.0.0.1", **options: Any) -> AsyncIterator[MailServer]:
    """In the loop of the test; ``options`` are those of aiosmtpd."""
    handler = MailServer()
    handler.host = host
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(handler, hostname="mail.example.com", **options), host, 0)
    handler.port = server.sockets[0].getsockname()[1]
    yield handler
    server.close()


@contextmanager
def mail_server_in_thread() -> Iterator[MailServer]:
    handler = MailServer()
    handler.port = free_port()
    controller = Controller(handler, hostname=handler.host, port=handler.port, ready_timeout=60)
    controller.start()
    try:
        yield handler
    finally:
        controller.stop()


def subject_of(message: EmailMessage) -> str:
    """With ordinary spaces."""
    return str(message["Subject"]).replace("\N{NO-BREAK SPACE}", " ")


def text_of(message: EmailMessage) -> str:
    body = message.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


def html_of(message: EmailMessage) -> str:
    body = message.get_body(("html",))
    assert body is not None
    return str(body.get_content())

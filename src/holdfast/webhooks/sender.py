"""One attempt is one POST: sent once, within its deadline, and told in full whatever came of it."""

from __future__ import annotations

import ssl

from holdfast.domain.delivery import CUT_OFF, AttemptResult
from holdfast.domain.endpoint_url import InvalidEndpointUrl
from holdfast.webhooks import causes
from holdfast.webhooks.address_guard import AddressGuard, AddressNotAllowed
from holdfast.webhooks.attempt import AttemptTrace, Post, Secret, Target, Targets
from holdfast.webhooks.causes import Overdue, Phase
from holdfast.webhooks.connection import Answer, Connection, IdleConnections
from holdfast.webhooks.connector import Connector, NotConnected
from holdfast.webhooks.deadlines import DeadlinePassed, Deadlines
from holdfast.webhooks.resolver import NameUnresolved, Resolver


class Sender:
    """Never raises for anything that a receiver, a name server or a URL does.

    Nothing is taken from the environment's proxies, because nothing here ever looks for them.
    """

    def __init__(
        self,
        guard: AddressGuard,
        resolver: Resolver,
        *,
        timeout_seconds: float,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._connector = Connector(guard, resolver, tls or _default_tls())
        self._deadlines = Deadlines(timeout_seconds)
        self._overdue = Overdue(timeout_seconds)
        self._is_cut_off = False
        self._targets = Targets()
        self._idle = IdleConnections()

    async def send(self, post: Post) -> AttemptResult:
        trace = AttemptTrace()
        try:
            target = self._targets.of(post.url)
            with self._deadlines.starting_at(trace.started_at):
                answer = await self._exchange(target, post, trace)
            return self._conclude(target, trace, answer)
        except (InvalidEndpointUrl, AddressNotAllowed, NameUnresolved, NotConnected) as error:
            return trace.failed(error.message)
        except DeadlinePassed:
            return self._conclude_overdue(trace)
        finally:
            # Whoever leaves with the exchange unfinished, cancelled or overdue, leaves no connection behind.
            if trace.connection is not None:
                trace.connection.abort()

    def cut_off(self) -> None:
        """Whatever is under way ends now, and tells how far it had come."""
        self._is_cut_off = True
        self._deadlines.pass_all()

    async def close(self) -> None:
        """What waits for its next request says goodbye; attempts under way are their callers' to cancel."""
        self._deadlines.close()
        await self._idle.close()

    async def _exchange(self, target: Target, post: Post, trace: AttemptTrace) -> Answer | None:
        connection, secret = await self._ready(target, post, trace)
        if not connection.is_writable():
            return None
        request, trace.request_headers = target.request(post, secret.text, int(post.unix_time()))
        trace.secret_id = secret.id
        answer = trace.answer = connection.ask(request)
        trace.enter(Phase.ANSWERING)
        await connection.settle()
        return answer

    async def _ready(self, target: Target, post: Post, trace: AttemptTrace) -> tuple[Connection, Secret]:
        """A connection that stands, and the secret as it was read after that."""
        idle = self._idle.take(target.origin)
        if idle is not None:
            secret = await self._secret_for(idle, post, trace)
            if idle.is_quiet():
                return idle, secret
            # Closed by its receiver by now, and nothing was sent on it yet: no attempt is lost with it.
            idle.abort()
        fresh = await self._connector.connect(target.url, trace)
        return fresh, await self._secret_for(fresh, post, trace)

    async def _secret_for(self, connection: Connection, post: Post, trace: AttemptTrace) -> Secret:
        trace.connection, trace.address = connection, connection.address
        trace.enter(Phase.SIGNING)
        return await post.read_secret()

    def _conclude(self, target: Target, trace: AttemptTrace, answer: Answer | None) -> AttemptResult:
        connection = trace.connection
        assert connection is not None
        if answer is None:
            return trace.failed(causes.SPOKE_FIRST if connection.spoke_unasked else causes.CLOSED_EARLY)
        result = trace.answered(answer)
        if answer.idle_seconds:
            trace.connection = None
            connection.rest()
            self._idle.put(target.origin, connection, answer.idle_seconds)
        return result

    def _conclude_overdue(self, trace: AttemptTrace) -> AttemptResult:
        if trace.answer is not None and trace.answer.is_decided:
            return trace.answered(trace.answer)
        return trace.failed(CUT_OFF if self._is_cut_off else trace.overdue_cause(self._overdue))


def _default_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context

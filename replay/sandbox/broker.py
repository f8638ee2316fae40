"""One broker of the sandbox: handlers, connections, and injections.

Rules: the broker responds to any request or closes the connection; no client can make it crash.
RocketMQ: BrokerController, NettyRemotingAbstract.processRequestCommand.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import Final

from dissectors.remoting.code_names import operation_of
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.topic_names import (
    DEFAULT_TOPIC,
    HALF_TOPIC,
    REPLY_SUFFIX,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
)
from dissectors.remoting.versions import VERSIONS

from .errors import SandboxError
from .events import EventKind
from .handlers.assignment import AssignmentHandlers
from .handlers.broker_requests import BrokerHandlers
from .handlers.client_requests import ClientHandlers
from .handlers.group_requests import GroupHandlers
from .handlers.offset_requests import OffsetHandlers
from .handlers.pull import PullHandlers
from .handlers.query import QueryHandlers
from .handlers.reply import ReplyHandlers
from .handlers.schedule import Schedule
from .handlers.send import SendHandlers
from .handlers.send_back import SendBackHandlers
from .handlers.send_rules import SendRules
from .handlers.topic_requests import TopicHandlers
from .handlers.transaction import HalfMessages
from .injection.injector import DISK_FULL, Injector
from .options import SandboxOptions
from .pop.pop_requests import PopHandlers
from .request import BadRequest, Handler, ReceivedRequest, topic_of
from .server import Connection, HandlerResponse
from .state import BrokerState
from .store.memory import StoreFull
from .store.sqlite import BrokerJournal
from .topics import OWN_TOPICS, READ, WRITE, TopicConfig

_SCAN_SECONDS: Final = 5.0
_RESTORED_AT_ONCE: Final = 500
"""messages of a file between two looks at whether the start was given up"""
WAITING_TOPICS: Final = frozenset({SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC})
"""Topics whose messages are for later."""


class Broker:
    """A broker that serves the requests of its port."""

    def __init__(self, state: BrokerState, injector: Injector) -> None:
        self.state = state
        """its tables"""
        self.name = state.name
        """name of the broker"""
        self.schedule = Schedule(state)
        """delayed messages"""
        self.transactions = HalfMessages(state, self.schedule)
        """half messages"""
        self.pop = PopHandlers(state)
        """POP messages in flight"""
        self._injector = injector
        self._scan: asyncio.TimerHandle | None = None
        rules = SendRules(state, self.schedule)
        self._handlers: dict[int, Handler] = {
            **SendHandlers(state, rules, self.transactions).handlers(),
            **SendBackHandlers(state, rules, self.schedule, self.transactions).handlers(),
            **ReplyHandlers(state, rules).handlers(),
            **PullHandlers(state).handlers(),
            **ClientHandlers(state).handlers(),
            **OffsetHandlers(state).handlers(),
            **QueryHandlers(state).handlers(),
            **TopicHandlers(state).handlers(),
            **GroupHandlers(state).handlers(),
            **BrokerHandlers(state).handlers(),
        }
        self._handlers.update(self.pop.handlers())
        self._handlers.update(AssignmentHandlers(state).handlers())
        for code in [code for code in self._handlers if not _is_known(code, state.options)]:
            del self._handlers[code]
        self._make_topics()

    def _make_topics(self) -> None:
        state, options = self.state, self.state.options
        for topic in sorted(OWN_TOPICS - {DEFAULT_TOPIC}):
            state.topics.put(TopicConfig(topic, 1, 1))
        queues = options.auto_create_queues
        state.topics.put(TopicConfig(DEFAULT_TOPIC, queues, queues, READ | WRITE | 1))
        for name in (options.cluster, state.name):
            state.topics.put(TopicConfig(name, 1, 1, READ | WRITE | 1))
        state.topics.put(TopicConfig(f"{options.cluster}{REPLY_SUFFIX}", 1, 1))
        for spec in options.topics:
            state.topics.put(TopicConfig(spec.name, spec.queues, spec.queues, spec.perm))

    async def restore(self, journal: BrokerJournal) -> None:
        """Restore the state of a file and continue writing to it; in steps, so it can be
        interrupted.

        Raise SandboxError if the state exceeds the broker's limits.
        """
        state = self.state
        for config in journal.topics():
            state.topics.put(config)
        for group in journal.groups():
            state.groups.put(group)
        for offset in journal.offsets():
            state.offsets.put(*offset)
        try:
            await self._restore_messages(journal)
        except StoreFull:
            raise SandboxError(
                f"{state.options.store} has more messages than broker {self.name} may hold",
                "raise store_limit, or let it forget the oldest ones with drop_oldest",
            ) from None
        state.store.end_offset = max(state.store.end_offset, journal.blocked)
        state.store.go_on_with(journal)
        for problem in journal.problems:
            self.tell(EventKind.STORE_DAMAGED, detail=problem)
        if journal.damaged > len(journal.problems):
            self.tell(EventKind.STORE_DAMAGED, detail=f"{journal.damaged} damaged rows in all")

    async def _restore_messages(self, journal: BrokerJournal) -> None:
        state = self.state
        for end in journal.ends():
            state.store.restore_end(*end)
        for number, record in enumerate(journal.records(state.options.store_limit)):
            if not number % _RESTORED_AT_ONCE:
                await asyncio.sleep(0)
            if not state.store.restore(record):
                journal.note("message", record.physical_offset, "another is at its place")
                continue
            place = record.physical_offset
            if record.topic in WAITING_TOPICS and not journal.is_finished(place):
                waits = self.transactions if record.topic == HALF_TOPIC else self.schedule
                waits.restore(record)

    def start(self) -> None:
        """Start background tasks."""
        self._scan = asyncio.get_running_loop().call_later(_SCAN_SECONDS, self._scan_clients)

    def close(self) -> None:
        """Stop background tasks."""
        if self._scan is not None:
            self._scan.cancel()
        self.schedule.close()
        self.transactions.close()
        self.pop.close()
        self.state.holds.close()

    # -- connections ----------------------------------------------------------------------------

    def opened(self, connection: Connection) -> bool:
        """Return whether a client may connect; an injection may reject it."""
        if not self._injector.admits(self.name, connection):
            return False
        self.tell(EventKind.CONNECTED, connection)
        return True

    def closed(self, connection: Connection) -> None:
        """Handle a closed client connection."""
        self.state.forget(connection)
        self.tell(EventKind.DISCONNECTED, connection)

    def tell(self, kind: EventKind, connection: Connection | None = None, detail: str = "") -> None:
        """Emit an event."""
        self.state.tell(kind, connection, detail)

    def drop_connections(self, chosen: Callable[[Connection], bool]) -> None:
        """Reset the chosen connections to this broker."""
        for connection in list(self.state.hub.connections):
            if connection.service is self and chosen(connection):
                connection.close(reset=True)

    # -- requests -------------------------------------------------------------------------------

    def serve(self, connection: Connection, command: RemotingCommand, body: bytes) -> None:
        """Serve a request, unless an injection takes it."""
        request = ReceivedRequest(connection, command, body)
        self.state.count_request(command.code)
        if self._injector.is_active and self._injector.take(self, request):
            return
        self.execute(request)

    def execute(self, request: ReceivedRequest) -> None:
        """Serve a request as a healthy broker does."""
        response = self._response_of(request)
        if response is not None:
            request.respond(response)
            if response.code:
                self.note_error(request, response)

    def note_error(self, request: ReceivedRequest, response: HandlerResponse) -> None:
        """Count an error response, and emit an event."""
        self.state.count_response(request.command.code, response.code)
        if self.state.options.on_event is not None:
            self.state.tell(
                EventKind.ANSWERED,
                request.connection,
                response.remark or "",
                code=request.command.code,
                topic=topic_of(request),
                response=response.code,
            )

    def _response_of(self, request: ReceivedRequest) -> HandlerResponse | None:
        handler = self._handlers.get(request.command.code)
        if handler is None:
            code = ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            remark = f" request type {request.command.code} not supported"
            return HandlerResponse(code, None, b"", remark)
        try:
            return handler(request)
        except BadRequest as bad:
            return bad.response
        except StoreFull:
            self.tell(EventKind.STORE_FULL, request.connection, "the limit of the store is reached")
            return HandlerResponse(ResponseCode.SERVICE_NOT_AVAILABLE, None, b"", DISK_FULL)
        except Exception as error:  # a bug must not end the broker
            detail = "".join(traceback.format_exception(error))
            self.tell(EventKind.INTERNAL, request.connection, detail)
            return HandlerResponse(ResponseCode.SYSTEM_ERROR, None, b"", type(error).__name__)

    # -- background tasks -----------------------------------------------------------------------

    def _scan_clients(self) -> None:
        self.start()
        before = self.state.now_ms() - self.state.options.client_timeout_ms
        for connection in self.state.clients.silent_since(before):
            self.tell(EventKind.CLIENT_GONE, connection, "no heartbeat for too long")
            connection.close()


def _is_known(code: int, options: SandboxOptions) -> bool:
    """Return whether the emulated release has this request code."""
    operation = operation_of(code)
    if operation is None or not operation.since:
        return True
    first = "V" + operation.since.partition("-")[0].replace(".", "_")
    return first not in VERSIONS or VERSIONS.index(first) <= options.version

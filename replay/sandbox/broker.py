"""One broker of the sandbox: its handlers, its restore from a file, and its background task.

RocketMQ: BrokerController.
"""

from __future__ import annotations

import asyncio
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

from .configs import OWN_TOPICS, READ, WRITE, TopicConfig
from .errors import SandboxError
from .events import EventKind
from .handlers.broker_requests import BrokerHandlers
from .handlers.client_requests import ClientHandlers
from .handlers.group_requests import GroupHandlers
from .handlers.queue_requests import QueueHandlers
from .handlers.schedule import Schedule
from .handlers.send import SendHandlers
from .handlers.topic_requests import TopicHandlers
from .handlers.transaction import HalfMessages
from .injection.injector import DISK_FULL, Injector
from .options import SandboxOptions
from .pop import PopHandlers
from .request import ReceivedRequest, handlers_of
from .server import Connection, HandlerResponse
from .service import SandboxServer
from .state import BrokerState
from .store.memory import StoreFull
from .store.sqlite import BrokerJournal

_SCAN_SECONDS: Final = 5.0
_RESTORED_AT_ONCE: Final = 500
"""messages of a file between two looks at whether the start was given up"""
WAITING_TOPICS: Final = frozenset({SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC})
"""Topics whose messages are for later."""


class Broker(SandboxServer):
    """A broker that serves the requests of its port."""

    def __init__(self, state: BrokerState, injector: Injector) -> None:
        super().__init__(state.hub, injector, state.events)
        self.state = state
        self.schedule = Schedule(state)
        """delayed messages"""
        self.transactions = HalfMessages(state, self.schedule)
        self.pop = PopHandlers(state)
        """POP messages in flight"""
        self._scan: asyncio.TimerHandle | None = None
        for family in (
            SendHandlers(state, self.schedule, self.transactions),
            QueueHandlers(state),
            ClientHandlers(state),
            TopicHandlers(state),
            GroupHandlers(state),
            BrokerHandlers(state),
            self.pop,
        ):
            for code, handler in handlers_of(family).items():
                if _is_known(code, state.options):
                    self.handlers[code] = handler
        self._make_topics()

    def _make_topics(self) -> None:
        state, options = self.state, self.state.options
        for topic in sorted(OWN_TOPICS - {DEFAULT_TOPIC}):
            state.topics.put(TopicConfig(topic, 1, 1))
        queues = options.auto_create_queues
        state.topics.put(TopicConfig(DEFAULT_TOPIC, queues, queues, READ | WRITE | 1))
        # as in RocketMQ: each cluster and each broker is a topic, too
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
        # Damaged rows stay in the file, whose index allows one row at an offset.
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

    def closed(self, connection: Connection) -> None:
        """Handle a closed client connection."""
        self.state.forget(connection)
        super().closed(connection)

    def serve(self, connection: Connection, command: RemotingCommand, body: bytes) -> None:
        """Count and serve a request, unless an injection takes it."""
        self.state.count_request(command.code)
        super().serve(connection, command, body)

    def note_error(self, request: ReceivedRequest, response: HandlerResponse) -> None:
        """Count an error response, and emit an event."""
        self.state.count_response(request.code, response.code)
        super().note_error(request, response)

    def _response_to(self, error: Exception, request: ReceivedRequest) -> HandlerResponse:
        if isinstance(error, StoreFull):
            self.tell(EventKind.STORE_FULL, request.connection, "the limit of the store is reached")
            return HandlerResponse(ResponseCode.SERVICE_NOT_AVAILABLE, remark=DISK_FULL)
        return super()._response_to(error, request)

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

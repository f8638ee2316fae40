"""The sandbox: a NameServer and brokers in one process, for tests and learning.

`async with Sandbox(SandboxOptions(brokers=2)) as box:` or, where no loop runs,
`with sandbox_thread(SandboxOptions()) as box:`; then send to `box.namesrv`.
RocketMQ: NamesrvStartup, BrokerStartup.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import random
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from dissectors.endpoint import endpoint_text
from dissectors.open_files import require_files

from ..accepting import Acceptor, bound_socket, run_server
from .broker import Broker
from .errors import SandboxError
from .events import EventKind
from .injection.injection import Injection
from .injection.injector import Injector
from .namesrv import NameServer, Registered, addresses_in
from .options import PORT_STEP, SandboxOptions, check_options
from .room import Room
from .server import Connection, Hub, Service
from .state import BrokerState
from .store.sqlite import StoreFile

_FREE_PAIRS = 20
"""Ports that are tried until one and the one two below it are free."""
_READY_SECONDS = 10.0
_T = TypeVar("_T")


def now_ms() -> int:
    """Return the clock of the sandbox."""
    return time.time_ns() // 1_000_000


class Sandbox:
    """A NameServer and brokers; listens between `start` and `close`."""

    def __init__(self, options: SandboxOptions | None = None) -> None:
        """Raise SandboxError for invalid options."""
        self.options = options or SandboxOptions()
        check_options(self.options)
        self.namesrv = ""
        """`ip:port` of the NameServer, once started"""
        self.addresses: Mapping[str, str] = {}
        """broker name → `ip:port`, once started"""
        self.brokers: dict[str, Broker] = {}
        """the brokers by name, for tests that look inside"""
        self.injector: Injector
        """what goes wrong, once started: `add` and `clear` change it while it runs"""
        self.hub = Hub(
            self.options.version,
            self.options.serialize_type,
            self.options.connections_limit,
            self.options.input_limit,
        )
        """what all connections share, for tests that look inside"""
        self._listeners: list[Acceptor] = []
        self._bound: dict[str, list[socket.socket]] = {}
        self._file: StoreFile | None = None
        self._random = random.Random(self.options.seed)

    async def start(self) -> Sandbox:
        """Listen; raise SandboxError if a port is in use or a store is unusable."""
        try:
            await self._start()
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """Close every connection, stop listening, and write stores to disk."""
        for listener in self._listeners:
            listener.close()
        for broker in self.brokers.values():
            broker.close()
        # without a start there is no injector
        if self._listeners:
            self.injector.close()
        for listener in self._listeners:
            # what was just accepted becomes a connection first, which the loop below closes
            await listener.settled()
        self.hub.close()
        for connection in list(self.hub.connections):
            connection.close()
        self._listeners = []
        for bound in itertools.chain.from_iterable(self._bound.values()):
            bound.close()  # the start was interrupted before this server listened
        self._bound = {}
        if self._file is not None:
            self._file.close()
            self._file = None

    async def __aenter__(self) -> Sandbox:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- internal -------------------------------------------------------------------------------

    async def _start(self) -> None:
        options = self.options
        injector = self.injector = Injector(options.seed, asyncio.get_running_loop().time)
        names = NameServer(options, self.hub, injector, now_ms)
        injector.watch(names)
        if options.store is not None:
            self._file = StoreFile(options.store, self.hub.schedule_flush)
            self.hub.commit = self._file.commit
            self.hub.on_failure = lambda error: names.tell(EventKind.INTERNAL, None, str(error))
        for number, name in enumerate(options.broker_names):
            port = options.port + number * PORT_STEP if options.port else 0
            self._make_broker(name, port, names, injector)
        # All stores are restored before any broker listens, and the NameServer listens last:
        # whoever reaches it finds all brokers.
        for broker in self.brokers.values():
            if self._file is not None:
                await broker.restore(self._file.journal(broker.name))
        for broker in self.brokers.values():
            broker.start()
            while self._bound[broker.name]:
                self._listen(broker, self._bound[broker.name].pop(0))
            broker.tell(EventKind.LISTENING, detail=broker.state.address)
        bound = self._bind(options.namesrv_port)
        self.namesrv = endpoint_text(options.host, bound.getsockname()[1])
        self._listen(names, bound)
        names.tell(EventKind.LISTENING, detail=self.namesrv)
        # last: their windows count from now, without the time that a restore took
        injector.add(options.injections)
        self.hub.watch_silence(options.greeting_ms / 1000, options.idle_ms / 1000)

    def _make_broker(self, name: str, port: int, names: NameServer, injector: Injector) -> None:
        options = self.options
        sockets = self._bind_with_vip(port) if options.vip else [self._bind(port)]
        self._bound[name] = sockets
        address = endpoint_text(options.advertised or options.host, sockets[0].getsockname()[1])
        chance = random.Random(self._random.random())
        state = BrokerState(name, address, options, self.hub, now_ms, chance)
        state.route = names.readable_queues
        broker = self.brokers[name] = Broker(state, injector)
        addresses = addresses_in(Room())
        addresses.put(0, address)
        names.add(
            Registered(
                options.cluster,
                name,
                addresses,
                state.topics,
                listed=lambda: injector.is_listed(name),
                perm=lambda: state.perm & injector.perm(name),
            )
        )
        injector.watch(broker)
        self.addresses = {**self.addresses, name: address}

    def _bind(self, port: int) -> socket.socket:
        """Return a socket bound to a port, or any free one for 0; SandboxError if in use."""
        host = self.options.host
        try:
            return bound_socket(host, port)
        except OSError as error:
            raise SandboxError(
                f"cannot listen on {endpoint_text(host, port)}: {error.strerror or error}",
                "give another port, or 0 for any free one",
            ) from None

    def _bind_with_vip(self, port: int) -> list[socket.socket]:
        """Bind sockets of a port and of the port - 2, any free pair for 0."""
        for _ in range(_FREE_PAIRS):
            bound = self._bind(port)
            try:
                return [bound, self._bind(bound.getsockname()[1] - 2)]
            except SandboxError:
                bound.close()
                if port:
                    raise
        raise SandboxError("no two free ports for a broker and its VIP channel", "name one")

    def _listen(self, service: Service, bound: socket.socket) -> None:
        try:
            factory = functools.partial(Connection, self.hub, service)
            tell = functools.partial(service.tell, EventKind.REFUSED, None)
            self._listeners.append(Acceptor(bound, factory, self.hub.files, tell))
        except OSError as error:
            bound.close()
            raise SandboxError(f"cannot listen: {error.strerror or error}") from None


class SandboxThread:
    """A sandbox with a loop and a thread of its own, for callers without a loop."""

    def __init__(self, options: SandboxOptions | None = None) -> None:
        self._sandbox = Sandbox(options)
        require_files()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="sandbox", daemon=True)

    @property
    def namesrv(self) -> str:
        """`ip:port` of the NameServer."""
        return self._sandbox.namesrv

    @property
    def addresses(self) -> Mapping[str, str]:
        """Broker name → `ip:port`."""
        return self._sandbox.addresses

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox itself; change it only inside `call`."""
        return self._sandbox

    def call(self, function: Callable[[Sandbox], _T], timeout: float = 30.0) -> _T:
        """Run a function in the sandbox's thread; return its result or raise its error."""

        async def run() -> _T:
            return function(self._sandbox)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(timeout)

    def add_injections(self, *injections: Injection) -> None:
        """Add injections; their windows start now."""
        self.call(lambda box: box.injector.add(injections))

    def clear_injections(self) -> None:
        """Remove all injections."""
        self.call(lambda box: box.injector.clear())

    def start(self) -> SandboxThread:
        """Listen; raises SandboxError as `Sandbox.start` does."""
        self._thread.start()
        try:
            self._wait_for(self._sandbox.start(), None)  # a large store takes long to restore
        except BaseException:
            self._end()
            raise
        return self

    def close(self) -> None:
        """Stop the sandbox completely."""
        try:
            self._wait_for(self._sandbox.close(), _READY_SECONDS)
        finally:
            self._end()

    def _wait_for(self, work: Coroutine[object, object, object], seconds: float | None) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_READY_SECONDS)
        self._loop.close()


@contextmanager
def sandbox_thread(options: SandboxOptions | None = None) -> Iterator[SandboxThread]:
    """Yield a running sandbox in a thread of its own: `.namesrv`, `.addresses`, `.call`."""
    box = SandboxThread(options).start()
    try:
        yield box
    finally:
        box.close()


def run_sandbox(
    options: SandboxOptions,
    started: Callable[[Sandbox], None],
    tick: Callable[[], None],
    stoppable: Callable[[Callable[[], None]], AbstractContextManager[None]],
    seconds: float | None = None,
) -> Sandbox:
    """Run a sandbox in this thread until `stoppable`'s argument is called or the time is up.

    `started` is called once it listens, `tick` every second. Returns the sandbox, closed; raises
    SandboxError as `Sandbox.start` does, KeyboardInterrupt if interrupted before it listened.
    """
    box = Sandbox(options)
    if not run_server(box, started, tick, stoppable, seconds):
        raise KeyboardInterrupt
    return box

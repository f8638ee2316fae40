"""Inject the sandbox's faults into traffic between a client and its real server.

Rules: the sandbox's `Injector` decides and acts; this module is the server that it expects. A
request without a fault passes unchanged; a response is intercepted only if a fault needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol, cast

from dissectors.remoting.command import ONEWAY_FLAG, RESPONSE_FLAG, RemotingCommand
from dissectors.remoting.framing.frame import encode_frame
from dissectors.remoting.header_codec import BINARY_TYPE, JSON_TYPE, encode_header

from ..sandbox.errors import SandboxError
from ..sandbox.events import EventKind
from ..sandbox.injection.injection import Injection, InjectionKind
from ..sandbox.injection.injector import Injector
from ..sandbox.request import ReceivedRequest
from ..sandbox.server import Connection, HandlerResponse
from .options import MOST_DUE

INJECTED: Final = "injected by rmqtool proxy"
"""remark of an error that has none of its own"""
_NOT_HERE: Final = (InjectionKind.LEAVE_ROUTE,)


def check_injections(injections: Iterable[Injection]) -> None:
    """Raise SandboxError for a fault that only a sandbox can inject."""
    for injection in injections:
        if injection.kind in _NOT_HERE:
            hint = "a proxy changes only the addresses in routes; use down or drop"
            raise SandboxError(f"fault {injection.kind}: only the sandbox has it", hint)


class ServerResponse(HandlerResponse):
    """The unchanged response of the real server."""

    raw: bytes = b""
    """the frame for the client"""
    shown: bytes = b""
    """the frame for recordings"""

    @classmethod
    def of(cls, command: RemotingCommand, raw: bytes, shown: bytes) -> ServerResponse:
        """Return the response; injections read its fields, and use its frame as the body size."""
        response = cls(command.code, command.ext_fields, raw, command.remark)
        response.raw, response.shown = raw, shown
        return response


class FaultyConnection(Protocol):
    """What faults need of a proxied connection, besides the methods of a sandbox's."""

    judged: bytes
    """a fault is decided on: the frame of the request"""

    @property
    def front_name(self) -> str:
        """The name of the front that the client connected to."""

    def mark(self, fault: str) -> None:
        """Record the current request, with its injected fault."""

    def execute(self, request: ProxiedRequest, raw: bytes) -> None:
        """Forward a request; a fault may intercept its response."""

    def to_server(self, data: bytes) -> None:
        """Record bytes from the client and send them to the real server."""

    def close(self, reset: bool = False) -> None:
        """End both sides."""


class ProxiedRequest(ReceivedRequest):
    """A request of a client, on its way to the real server."""

    __slots__ = ("raw",)

    def __init__(
        self, connection: FaultyConnection, command: RemotingCommand, raw: bytes, body: bytes
    ) -> None:
        # Injections use only methods that both kinds of connections have.
        super().__init__(cast(Connection, connection), command, body)
        self.raw = raw


class FaultyServer:
    """One front as injections see it: a broker or the NameServers."""

    def __init__(
        self,
        name: str,
        tell: Callable[[EventKind, str, str, str], None],
        connections: Callable[[], Iterable[FaultyConnection]],
    ) -> None:
        """`tell` is called with the kind, the name, the client, and the detail."""
        self.name = name
        self._notify = tell
        self._connections = connections

    def execute(self, request: ReceivedRequest) -> None:
        """Forward a request to the real server."""
        assert isinstance(request, ProxiedRequest)
        connection = cast(FaultyConnection, request.connection)
        # a request that waits for its response keeps only its header
        raw, request.raw, request.body = request.raw, b"", b""
        connection.execute(request, raw)

    def note_error(self, request: ReceivedRequest, response: HandlerResponse) -> None:
        """Do nothing: the fault's own event covers it."""

    def tell(
        self,
        kind: EventKind,
        connection: Connection | None = None,
        detail: str = "",
    ) -> None:
        """Emit an event, and mark the request that a fault was injected into."""
        if connection is not None and kind is EventKind.INJECTED:
            cast(FaultyConnection, connection).mark(detail)
        self._notify(kind, self.name, "" if connection is None else connection.peer, detail)

    def drop_connections(self, chosen: Callable[[Connection], bool]) -> None:
        """Reset the chosen connections to this front."""
        for connection in list(self._connections()):
            if connection.front_name == self.name and chosen(cast(Connection, connection)):
                connection.close(reset=True)


class FaultGate:
    """Intercepts the requests of one connection to inject faults."""

    def __init__(self, connection: FaultyConnection, server: FaultyServer, injector: Injector):
        self._connection = connection
        self._server = server
        self._injector = injector
        self._waiting: dict[int, ProxiedRequest] = {}

    def request(self, command: RemotingCommand, raw: bytes, body: bytes) -> None:
        """Handle a request: inject a fault or forward it."""
        request = ProxiedRequest(self._connection, command, raw, body)
        self._connection.judged = raw
        if not self._injector.take(self._server, request):
            self._connection.judged = b""
            self._connection.to_server(raw)

    def wait_for(self, request: ProxiedRequest) -> None:
        """Intercept the response to a request, for the fault that needs it."""
        if request.shape is None or request.command.flag & ONEWAY_FLAG:
            return
        if len(self._waiting) >= MOST_DUE:  # the oldest: a dict keeps the order
            del self._waiting[next(iter(self._waiting))]
        self._waiting[request.command.opaque] = request

    def response(self, command: RemotingCommand, raw: bytes, shown: bytes) -> bool:
        """Handle a response; return False if no fault needs it."""
        request = self._waiting.pop(command.opaque, None)
        if request is None:
            return False
        request.respond(ServerResponse.of(command, raw, shown))
        return True


def frame_of(request: RemotingCommand, response: HandlerResponse) -> bytes:
    """Return the frame of a response: the real server's unchanged, or a fault's encoded."""
    if isinstance(response, ServerResponse):
        return response.raw
    command = RemotingCommand(
        response.code,
        request.opaque,
        RESPONSE_FLAG,
        "JAVA",
        request.version,
        response.remark,
        dict(response.fields) if response.fields else {},
        request.serialize_type,
    )
    kind = BINARY_TYPE if request.serialize_type == "ROCKETMQ" else JSON_TYPE
    return encode_frame(kind, encode_header(command, kind), response.body)

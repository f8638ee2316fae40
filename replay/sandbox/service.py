"""What the NameServer and the brokers of a sandbox have in common.

Rules: a server responds to any request or closes the connection; no client can make it crash.
RocketMQ: NettyRemotingAbstract.processRequestCommand.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable

from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.command import RemotingCommand

from .events import EventKind, Events
from .injection.injector import Injector
from .request import BadRequest, Handler, ReceivedRequest, topic_of
from .server import Connection, HandlerResponse, Hub


class SandboxServer:
    """A NameServer or a broker, as its listeners and injections see it."""

    def __init__(self, hub: Hub, injector: Injector, events: Events) -> None:
        self.name = events.server
        """`namesrv` or the broker's name"""
        self.handlers: dict[int, Handler] = {}
        """request code → what serves it"""
        self._hub = hub
        self._injector = injector
        self._events = events

    def tell(self, kind: EventKind, connection: Connection | None = None, detail: str = "") -> None:
        """Emit an event."""
        self._events.tell(kind, connection, detail)

    def opened(self, connection: Connection) -> bool:
        """Return whether a client may connect; an injection may reject it."""
        if not self._injector.admits(self.name, connection):
            return False
        self.tell(EventKind.CONNECTED, connection)
        return True

    def closed(self, connection: Connection) -> None:
        """Handle a closed connection."""
        self.tell(EventKind.DISCONNECTED, connection)

    def drop_connections(self, chosen: Callable[[Connection], bool]) -> None:
        """Reset the chosen connections to this server."""
        for connection in list(self._hub.connections):
            if connection.service is self and chosen(connection):
                connection.close(reset=True)

    def serve(self, connection: Connection, command: RemotingCommand, body: bytes) -> None:
        """Serve a request, unless an injection takes it."""
        request = ReceivedRequest(connection, command, body)
        if not (self._injector.is_active and self._injector.take(self, request)):
            self.execute(request)

    def execute(self, request: ReceivedRequest) -> None:
        """Serve a request as a healthy server does."""
        response = self._response_of(request)
        if response is not None:
            request.respond(response)
            if response.code:
                self.note_error(request, response)
            else:
                self.note_success(request, response)

    def note_error(self, request: ReceivedRequest, response: HandlerResponse) -> None:
        """Emit an event for an error response."""
        self._note(EventKind.ANSWERED, request, response)

    def note_success(self, request: ReceivedRequest, response: HandlerResponse) -> None:
        """Handle a response that is no error."""

    def _note(self, kind: EventKind, request: ReceivedRequest, response: HandlerResponse) -> None:
        self._events.tell(
            kind,
            request.connection,
            response.remark or "",
            code=request.code,
            topic=topic_of(request),
            response=response.code,
        )

    def _response_of(self, request: ReceivedRequest) -> HandlerResponse | None:
        handler = self.handlers.get(request.code)
        if handler is None:
            remark = f" request type {request.code} not supported"
            return HandlerResponse(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
        try:
            return handler(request)
        except BadRequest as bad:
            return bad.response
        except Exception as error:  # a bug must not end the server
            return self._response_to(error, request)

    def _response_to(self, error: Exception, request: ReceivedRequest) -> HandlerResponse:
        """Return the response to a request whose handler raised an error, and report a defect."""
        detail = "".join(traceback.format_exception(error))
        self.tell(EventKind.INTERNAL, request.connection, detail)
        return HandlerResponse(ResponseCode.SYSTEM_ERROR, remark=type(error).__name__)

"""A NameServer and broker in one, on a loopback socket, that behaves as a test says.

It runs in a thread of the test; what it does with a send is a `Serve`: it gets the connection, the
command and the body, and does what it likes with the socket.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator

from dissectors.remoting.command import RESPONSE_FLAG, RemotingCommand
from dissectors.remoting.framing.frame import Frame
from dissectors.remoting.framing.frame_decoder import KEEP_ALL, FrameDecoder
from dissectors.remoting.header_codec import decode_header
from replay.wire.request import encode_command
from tests.patience import wait_for

from .script import route_body

Serve = Callable[[socket.socket, RemotingCommand, bytes], None]


def answer(
    connection: socket.socket,
    command: RemotingCommand,
    code: int = 0,
    fields: dict[str, str] | None = None,
    body: bytes = b"",
) -> None:
    """Answer a request, unless it wants none."""
    if not command.is_oneway:
        reply = RemotingCommand(
            code, command.opaque, RESPONSE_FLAG, "JAVA", 479, None, fields or {}
        )
        connection.sendall(encode_command(reply, body))


def store(connection: socket.socket, command: RemotingCommand, body: bytes) -> None:
    """Say that it is stored."""
    fields = {"msgId": "7F00000100002A9F00000000000003E8", "queueId": "0", "queueOffset": "7"}
    answer(connection, command, 0, fields)


def silence(connection: socket.socket, command: RemotingCommand, body: bytes) -> None:
    """Say nothing."""


def saying(data: bytes) -> Serve:
    """Send these bytes instead of an answer."""
    return lambda connection, command, body: connection.sendall(data)


def hang_up(connection: socket.socket, command: RemotingCommand, body: bytes) -> None:
    """End the connection in order."""
    connection.shutdown(socket.SHUT_RDWR)


def reset(connection: socket.socket, command: RemotingCommand, body: bytes) -> None:
    """End the connection by RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Responder:
    """Answers route queries with its listeners as masters, and sends as `serve` says."""

    def __init__(
        self, brokers: int = 1, tls: ssl.SSLContext | None = None, everywhere: bool = False
    ) -> None:
        """`everywhere`: listen on all IPv4 and IPv6 addresses, not on 127.0.0.1 alone."""
        self.serve: Serve = store
        self.serve_route: Serve | None = None
        self.received: list[tuple[RemotingCommand, bytes]] = []
        """everything that came"""
        self.accepted = 0
        self.bytes_received = 0
        self.reading = threading.Event()
        self.reading.set()
        self._tls = tls
        self._listeners = [_listener(everywhere) for _ in range(brokers)]
        self.addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in self._listeners]
        self._open: set[socket.socket] = set()
        self._closed = False
        for listener in self._listeners:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    @property
    def address(self) -> str:
        """`host:port` of the first listener."""
        return self.addresses[0]

    def sends(self) -> list[RemotingCommand]:
        """The sends that came."""
        return [command for command, _ in self.received if command.code in (10, 310, 320)]

    def wait_for_sends(self, number: int) -> list[RemotingCommand]:
        """Return the sends when so many came: nobody waits for a one-way send to arrive."""
        wait_for(f"{number} sends", lambda: len(self.sends()) >= number)
        return self.sends()

    def _accept(self, listener: socket.socket) -> None:
        while not self._closed:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        plain = connection
        self._open.add(plain)
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
                self._open.add(connection)
            self._read(connection)
        except (OSError, ValueError):
            pass
        finally:
            for one in (connection, plain):
                self._open.discard(one)
                with contextlib.suppress(OSError):
                    one.close()

    def _read(self, connection: socket.socket) -> None:
        decoder = FrameDecoder(0, [], KEEP_ALL, True)
        at = 0
        while True:
            self.reading.wait()
            data = connection.recv(65536)
            if not data:
                return
            self.bytes_received += len(data)
            frames: list[Frame] = []
            decoder.receive(data, 0, len(data), at, 0, 0, frames)
            at += len(data)
            for frame in frames:
                command = decode_header(frame.serialize_type, frame.header)
                assert command is not None
                self.received.append((command, frame.body))
                self._answer(connection, command, frame.body)

    def _answer(self, connection: socket.socket, command: RemotingCommand, body: bytes) -> None:
        if command.code == 105 and self.serve_route is None:
            brokers = {f"broker-{at}": address for at, address in enumerate(self.addresses)}
            answer(connection, command, 0, {}, route_body(brokers))
        elif command.code == 105 and self.serve_route is not None:
            self.serve_route(connection, command, body)
        elif command.code in (10, 310, 320):
            self.serve(connection, command, body)
        else:
            answer(connection, command)

    def hang_up_all(self) -> None:
        """End every connection."""
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop listening, end every connection."""
        self._closed = True
        self.reading.set()
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.hang_up_all()


def _listener(everywhere: bool) -> socket.socket:
    if everywhere:
        return socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("127.0.0.1", 0))


@contextlib.contextmanager
def responding(
    brokers: int = 1, tls: ssl.SSLContext | None = None, everywhere: bool = False
) -> Iterator[Responder]:
    """A responder that ends with the block."""
    responder = Responder(brokers, tls, everywhere)
    try:
        yield responder
    finally:
        responder.close()


def free_address() -> str:
    """An address where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return f"127.0.0.1:{one.getsockname()[1]}"

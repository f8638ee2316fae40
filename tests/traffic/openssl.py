"""What `openssl s_client` and `s_server` say: what Python's ssl cannot be asked for."""

from __future__ import annotations

import contextlib
import selectors
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.patience import wait_for

from .encrypted import certificate

WAIT = 20.0
"""seconds that one session may take"""
QUIET = 0.3
"""seconds without a byte after which an end has said what it had to"""
KEY_UPDATE, BOTH_UPDATE, HANDSHAKE_AGAIN = b"k\n", b"K\n", b"R\n"
"""what makes `s_client` change its keys, those of both ends, and shake hands again (TLS 1.2)"""
SWITCHES = (KEY_UPDATE, BOTH_UPDATE, HANDSHAKE_AGAIN)
"""what nobody answers, as data is"""


class Relayed:
    """One server of OpenSSL, and sessions with it through a relay that writes down all bytes."""

    def __init__(self, folder: Path, *server: str) -> None:
        pytest.importorskip("cryptography")
        cert, key = certificate()
        self._folder = folder
        (folder / "both.pem").write_bytes(cert + key)
        self._openssl = shutil.which("openssl") or pytest.skip("no openssl")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        command = [self._openssl, "s_server", "-accept", f"127.0.0.1:{self.port}", "-quiet"]
        self._server = subprocess.Popen(
            [*command, "-cert", "both.pem", "-key", "both.pem", *server],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for("s_server listens", self._listens)

    def __enter__(self) -> Relayed:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.kill()
        self._server.communicate()

    @property
    def key_log(self) -> bytes:
        """The secrets of all sessions."""
        path = self._folder / "keys.log"
        return path.read_bytes() if path.exists() else b""

    def session(self, *client: str, says: Sequence[bytes]) -> list[tuple[int, bytes]]:
        """What both ends send, as (0 for the client, bytes), where a client says this."""
        with socket.create_server(("127.0.0.1", 0)) as relay:
            port = relay.getsockname()[1]
            command = [self._openssl, "s_client", "-connect", f"127.0.0.1:{port}"]
            process = subprocess.Popen(
                [*command, "-keylogfile", "keys.log", *client],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                relay.settimeout(WAIT)
                near, _ = relay.accept()
                far = socket.create_connection(("127.0.0.1", self.port), WAIT)
                with near, far:
                    return _relayed(near, far, process, says)
            finally:
                process.kill()
                process.communicate()

    def _listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


def _relayed(
    near: socket.socket,
    far: socket.socket,
    process: subprocess.Popen[bytes],
    says: Sequence[bytes],
) -> list[tuple[int, bytes]]:
    """Pass on what comes, and let the client say the next thing when it is quiet."""
    said: list[tuple[int, bytes]] = []
    left = list(says)
    answered = 0
    selector = selectors.DefaultSelector()
    selector.register(near, selectors.EVENT_READ, (0, far))
    selector.register(far, selectors.EVENT_READ, (1, near))
    end = time.monotonic() + WAIT
    assert process.stdin is not None
    with selector:
        while time.monotonic() < end:
            ready = selector.select(QUIET)
            if not ready:
                if not said or sum(side for side, _ in said) < answered:
                    continue
                if not left:
                    return said
                text = left.pop(0)
                if text not in SWITCHES:
                    answered = sum(side for side, _ in said) + 1
                process.stdin.write(text)
                process.stdin.flush()
            for key, _ in ready:
                side, other = key.data
                data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
                if not data:
                    return said
                said.append((side, data))
                other.sendall(data)
    return said

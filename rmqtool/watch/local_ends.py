"""Local ends of connections: process, container, and pod of addresses of this machine.

Rules: /proc maps sockets to processes, with sufficient privileges; control groups name containers
and pods. Invisible facts are unknown, never guessed. Command lines and environments are not read,
because they may contain secrets. Work is limited, and done only when a problem starts.
"""

from __future__ import annotations

import ipaddress
import os
import re
import select
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from dissectors.endpoint import endpoint_text, split_endpoint
from dissectors.foreign import Unreadable, hex_bytes_of, hexadecimal_of, json_of, natural_of
from dissectors.live.privileges import keep_only
from dissectors.printable import printable

FRESH: Final = 5.0
"""seconds for which data from /proc is cached"""
MOST_PROCESSES: Final = 5000
MOST_SOCKETS: Final = 20_000
MOST_NETWORKS: Final = 256
LONGEST_READ: Final = 1.0
"""time limit for a scan of processes in seconds"""
_LISTENING: Final = 10
"""state of a server's socket in /proc/net/tcp, TCP_LISTEN of the kernel"""
_UNKNOWN: Final = ""
_NOT_ACCEPTED: Final = "0"
"""inode of a connection that no process has accepted yet"""
_CONTAINER: Final = re.compile(r"([0-9a-f]{64})(?:\.scope)?$")
_POD: Final = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})")
_SOCKET: Final = re.compile(r"socket:\[(\d{1,18})\]")


class LocalEnd(msgspec.Struct, omit_defaults=True):
    """One end of a connection."""

    address: str
    """`address:port`"""
    role: str
    """`client` or `server`"""
    process: str | None = None
    """name of the process; None: not visible"""
    pid: int | None = None
    container: str | None = None
    """id of the container, its first 12 characters"""
    pod: str | None = None
    """name of the pod, else its uid"""

    @property
    def text(self) -> str:
        """The end as a line of text."""
        if self.process is None:
            return f"{self.role} {self.address}: process unknown"
        place = f", container {self.container}" if self.container else ""
        pod = f", pod {self.pod}" if self.pod else ""
        return f"{self.role} {self.address}: {self.process} (pid {self.pid}){place}{pod}"


class LocalEnds:
    """Looks up processes by their sockets."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._read_at = -FRESH
        self._own_addresses: set[str] = set()
        self._inodes: dict[str, str] = {}
        """`address:port`, or `:port` of a server on all addresses -> inode of the socket"""
        self._owners: dict[str, int] = {}
        """inode -> process"""

    def of(self, ends: Iterable[tuple[str, str]], most: int = 8) -> list[LocalEnd]:
        """Return the local ends of connections, given as client and server; the first ones."""
        wanted = dict.fromkeys(
            pair for client, server in ends for pair in ((client, "client"), (server, "server"))
        )
        if not wanted:
            return []
        self._refresh()
        local_ends = []
        for address, role in wanted:
            end = self._end_of(address, role)
            if end is not None:
                local_ends.append(end)
            if len(local_ends) >= most:
                break
        return local_ends

    def _end_of(self, address: str, role: str) -> LocalEnd | None:
        """Return the local end with an address, or None if it is not of this machine."""
        port = address.rpartition(":")[2]
        if not self._is_own(address):
            return None
        inode = self._inodes.get(address, self._inodes.get(f":{port}", _UNKNOWN))
        pid = self._owners.get(inode)
        if pid is None:
            return LocalEnd(address, role)
        name = self._text(pid, "comm").strip()
        groups = self._text(pid, "cgroup")
        return LocalEnd(address, role, printable(name) or None, pid, *self._place(pid, groups))

    def _place(self, pid: int, groups: str) -> tuple[str | None, str | None]:
        """Return container and pod."""
        container = pod = None
        for line in groups.splitlines():
            match = _CONTAINER.search(line)
            # as long as `docker ps` shows it
            container = container or (match[1][:12] if match is not None else None)
            match = _POD.search(line)
            pod = pod or (match[1].replace("_", "-") if match is not None else None)
        if pod is not None:  # a pod's host name is its name, unless it has the network of its node
            pod = printable(self._text(pid, "root/etc/hostname").strip()) or pod
        return container, pod

    def _is_own(self, address: str) -> bool:
        parts = split_endpoint(address)
        return parts is not None and parts[0] in self._own_addresses

    def _refresh(self) -> None:
        now = time.monotonic()
        if now - self._read_at < FRESH:
            return
        self._inodes, self._owners = {}, {}
        self._own_addresses = {"127.0.0.1", "::1"}
        networks = {self._link("self/ns/net"): None}
        own = self._sockets("self")
        self._inodes = dict(own)
        # Each network namespace has its own sockets; any process in it shows them all.
        for pid in self._processes(now + LONGEST_READ):
            network = self._link(f"{pid}/ns/net")
            if not network or network in networks or len(networks) >= MOST_NETWORKS:
                continue
            networks[network] = None
            for address, inode in self._sockets(pid).items():
                if address not in own:  # the same address in two other namespaces: ambiguous
                    self._inodes[address] = _UNKNOWN if address in self._inodes else inode
        self._read_at = time.monotonic()  # after the scan, which may have been long

    def _processes(self, until: float) -> Iterator[int | str]:
        """Yield processes and record their sockets."""
        try:
            pids = [pid for name in os.listdir(self._proc) if (pid := natural_of(name))]
        except OSError:
            return
        for pid in pids[:MOST_PROCESSES]:
            if time.monotonic() > until:
                return
            try:
                entries = os.listdir(self._proc / str(pid) / "fd")
            except OSError:  # permission denied, or ended
                continue
            for entry in entries:
                match = _SOCKET.fullmatch(self._link(f"{pid}/fd/{entry}"))
                if match is not None and len(self._owners) < MOST_SOCKETS:
                    self._owners.setdefault(match[1], pid)
            yield pid

    def _sockets(self, pid: int | str) -> dict[str, str]:
        """Return the TCP sockets in the network namespace of a process."""
        sockets: dict[str, str] = {}
        for name in ("tcp", "tcp6"):
            for line in self._text(pid, f"net/{name}").splitlines()[1:]:
                parts = line.split()
                if len(parts) < 10 or len(sockets) >= MOST_SOCKETS:
                    continue
                local = _endpoint_of(parts[1])
                if local is None:
                    continue
                host, port = local
                if hexadecimal_of(parts[3]) != _LISTENING:
                    self._own_addresses.add(host)
                    if parts[9] != _NOT_ACCEPTED:
                        sockets.setdefault(endpoint_text(host, port), parts[9])
                elif host in ("0.0.0.0", "::"):
                    sockets.setdefault(f":{port}", parts[9])
                else:
                    self._own_addresses.add(host)
                    sockets.setdefault(endpoint_text(host, port), parts[9])
        return sockets

    def _link(self, name: str) -> str:
        try:
            return os.readlink(self._proc / name)
        except OSError:
            return ""

    def _text(self, pid: int | str, name: str) -> str:
        try:
            with (self._proc / str(pid) / name).open("rb") as file:
                return file.read(1 << 22).decode("utf-8", "replace")
        except OSError:
            return ""


def _endpoint_of(text: str) -> tuple[str, int] | None:
    """Return address and port as /proc/net/tcp has them: words in the byte order of the machine."""
    address, _, port_text = text.partition(":")
    port = hexadecimal_of(port_text)
    if port is None or len(address) not in (8, 32):
        return None
    data = hex_bytes_of(address)
    if data is None:
        return None
    if sys.byteorder == "little":
        data = b"".join(data[at : at + 4][::-1] for at in range(0, len(data), 4))
    if len(data) == 4:
        return str(ipaddress.IPv4Address(data)), port
    host = ipaddress.IPv6Address(data)
    return str(host.ipv4_mapped or host), port


# Both are needed to list /proc/PID/fd of other users: the first because of the mode of the folder,
# the second because the kernel asks who may trace the process.
CAP_DAC_READ_SEARCH: Final = 2
CAP_SYS_PTRACE: Final = 19
PATIENCE: Final = 3.0
"""timeout of a response in seconds"""
LONGEST: Final = 1 << 20
"""most bytes of a request or a response"""
_QUESTION: Final = msgspec.json.Decoder(list[tuple[str, str]])
_RESPONSE: Final = msgspec.json.Decoder(list[LocalEnd])


class EndsHelper:
    """Client of a helper process; without its response, looks up what is visible here.

    The helper keeps the privilege to inspect other processes: it is forked before the capture
    starts and before privileges are dropped, has only the two capabilities that /proc requires, and
    sees no packets. It ends with its parent process.
    """

    def __init__(self) -> None:
        """Fork the helper process; this process must have one thread only."""
        to_child, from_child = os.pipe(), os.pipe()
        self._inside = LocalEnds()
        self._pid = os.fork()
        if self._pid == 0:
            _serve(to_child, from_child)
        os.close(to_child[0])
        os.close(from_child[1])
        self._ask, self._responses = to_child[1], from_child[0]

    def of(self, ends: Sequence[tuple[str, str]]) -> list[LocalEnd]:
        """Return the local ends of connections, given as client and server."""
        if not ends:
            return []
        if self._ask >= 0:
            try:
                os.write(self._ask, msgspec.json.encode(ends) + b"\n")
                return json_of(_RESPONSE, _line(self._responses, time.monotonic() + PATIENCE))
            except (OSError, Unreadable):
                self.close()
        return self._inside.of(ends)

    def close(self) -> None:
        """End the process."""
        if self._ask >= 0:
            os.close(self._ask)
            os.close(self._responses)
            self._ask = self._responses = -1
            with suppress(OSError):
                os.waitpid(self._pid, 0)


def _line(number: int, until: float) -> bytes:
    """Return the next line of a pipe; raise TimeoutError at `until`."""
    data = b""
    while not data.endswith(b"\n") and len(data) < LONGEST:
        ready, _, _ = select.select([number], [], [], max(until - time.monotonic(), 0))
        if not ready:
            raise TimeoutError
        more = os.read(number, 65536)
        if not more:
            raise BrokenPipeError
        data += more
    return data


def _serve(to_child: tuple[int, int], from_child: tuple[int, int]) -> None:
    """Run the helper process; does not return."""
    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # it ends with the pipe
        os.close(to_child[1])  # otherwise its pipe never ends
        os.close(from_child[0])
        # Who reads the output of the parent would also wait for the end of this process.
        devnull = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(devnull, standard)
        keep_only((CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE))
        ends = LocalEnds()
        with os.fdopen(to_child[0], "rb") as questions:
            while line := questions.readline(LONGEST):
                asked = json_of(_QUESTION, line)
                os.write(from_child[1], msgspec.json.encode(ends.of(asked)) + b"\n")
        status = 0
    except BaseException as error:  # no code of the parent may run here
        if os.environ.get("RMQTOOL_DEBUG"):
            sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(status)

"""Faults on demand: what goes wrong with a broker, a NameServer or the network between.

Rules:
- A fault is a context manager where it can be undone: leaving it heals, also when the body raised.
- Only processes of the given cluster are touched, by their ids; the network is a proxy of ours on
  loopback.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator

from . import probe
from .cluster import Broker, Cluster, Node
from .processes import wait_until

READ_ONLY = 4
READ_WRITE = 6
INHERIT = 1
CHUNK = 65536
_TABLES = itertools.count()


def kill(node: Node) -> None:
    """Ends a server without a word, as a crash does: the kernel resets its connections."""
    node.running().kill()


def restart(cluster: Cluster, broker: Broker) -> None:
    """Starts a stopped broker again on its old store and waits until it is listed."""
    broker.start()
    cluster.wait_listed(broker)


@contextlib.contextmanager
def frozen(node: Node) -> Iterator[None]:
    """The server stops running but its connections stay open: all is buffered, none answered."""
    process = node.running()
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def read_only(broker: Broker) -> Iterator[None]:
    """The broker registers without write permission, and takes what is sent to it all the same."""
    probe.set_broker_config(broker.address, brokerPermission=READ_ONLY)
    try:
        yield
    finally:
        probe.set_broker_config(broker.address, brokerPermission=READ_WRITE)


@contextlib.contextmanager
def disk_full(broker: Broker) -> Iterator[None]:
    """The store refuses to write as when its disk passed the threshold (code 14)."""
    _tell(broker, "disk-full")
    try:
        yield
    finally:
        _tell(broker, "disk-ok")


@contextlib.contextmanager
def page_cache_busy(broker: Broker) -> Iterator[None]:
    """The store says that a message has been in the writing for a minute (code 2)."""
    _tell(broker, "page-cache-busy")
    try:
        yield
    finally:
        _tell(broker, "page-cache-ok")


@contextlib.contextmanager
def slow_sends(broker: Broker, milliseconds: int) -> Iterator[None]:
    """Each send takes so much longer in the thread that serves it; the broker may die meanwhile."""
    _tell(broker, f"slow-sends {milliseconds}")
    try:
        yield
    finally:
        if broker.process is not None and broker.process.returncode is None:
            _tell(broker, "slow-sends 0")


@contextlib.contextmanager
def no_new_files(broker: Broker) -> Iterator[None]:
    """The folder of the commit log takes no new files, as a disk that became read-only.

    Only inside the namespaces of a recording: it mounts something over the folder.
    """
    folder = str(broker.folder / "store" / "commitlog")
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=4k", "tmpfs", folder]
    subprocess.run(mount, check=True, timeout=10)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True, timeout=10)


@contextlib.contextmanager
def narrow_network() -> Iterator[None]:
    """Loopback carries 400 kbit a second, keeps 300 ms of it waiting, and drops what is more.

    Only inside the namespaces of a recording, whose loopback is nobody else's.
    """
    shape = "tc qdisc add dev lo root tbf rate 400kbit burst 6kb latency 300ms"
    for command in ("ip link set lo mtu 1500", shape):
        subprocess.run(command.split(), check=True, timeout=10)
    try:
        yield
    finally:
        for command in ("tc qdisc del dev lo root", "ip link set lo mtu 65536"):
            subprocess.run(command.split(), check=True, timeout=10)


@contextlib.contextmanager
def small_path_mtu(node: Node) -> Iterator[None]:
    """Full segments to a server are captured and then lost: the path MTU is smaller than that of
    its ends, and nobody says so. Only inside the namespaces of a recording."""
    for command in ("ip link set lo mtu 1500", "ip link set lo gso_max_segs 1"):
        subprocess.run(command.split(), check=True, timeout=10)
    try:
        with lost(f"ip daddr {node.host} tcp dport {node.port} meta length > 1400"):
            yield
    finally:
        for command in ("ip link set lo gso_max_segs 65535", "ip link set lo mtu 65536"):
            subprocess.run(command.split(), check=True, timeout=10)


@contextlib.contextmanager
def forgotten(node: Node) -> Iterator[None]:
    """Packets of the connections that a server has now are captured and then lost, as where a
    firewall forgot them; new connections work. Only inside the namespaces of a recording."""
    command = ["ss", "-Htn", f"dst {node.host} and dport = :{node.port}"]
    run = subprocess.run(command, check=True, timeout=10, capture_output=True, text=True)
    clients = {line.split()[3].rpartition(":")[2] for line in run.stdout.splitlines()}
    ports = f"{{ {', '.join(sorted(clients))} }}"
    towards = f"ip daddr {node.host} tcp sport {ports}"
    with lost(towards, f"ip saddr {node.host} tcp dport {ports}"):
        yield


@contextlib.contextmanager
def lost(*packets: str, verdict: str = "drop") -> Iterator[None]:
    """Packets that an expression of nftables selects are captured and then lost.

    With `reject with tcp reset` they are answered so instead.

    Only inside the namespaces of a recording, whose loopback is nobody else's.
    """
    table = f"lost_{os.getpid()}_{next(_TABLES)}"  # two scenarios may run at the same time
    chain = f"{table} arriving {{ type filter hook input priority 0 ; }}"
    for command in (
        ["add", "table", "ip", table],
        ["add", "chain", "ip", *chain.split()],
        *(
            ["add", "rule", "ip", table, "arriving", *one.split(), *verdict.split()]
            for one in packets
        ),
    ):
        subprocess.run(["nft", *command], check=True, timeout=10)
    try:
        yield
    finally:
        subprocess.run(["nft", "delete", "table", "ip", table], check=True, timeout=10)


@contextlib.contextmanager
def configured(broker: Broker, setting: str, value: object, healed: object) -> Iterator[None]:
    """A setting of the running broker is another one."""
    probe.set_broker_config(broker.address, **{setting: value})
    try:
        yield
    finally:
        probe.set_broker_config(broker.address, **{setting: healed})


@contextlib.contextmanager
def no_auto_create(broker: Broker) -> Iterator[None]:
    """An unknown topic is refused (code 17) instead of made (healed on 5.x servers only)."""
    probe.set_broker_config(broker.address, autoCreateTopicEnable="false")
    try:
        yield
    finally:
        probe.set_broker_config(broker.address, autoCreateTopicEnable="true")
        # The first refusal took the right to inherit from TBW102 for good, so it is given back.
        probe.set_broker_config(broker.address, validateSystemTopicWhenUpdateTopic="false")
        probe.make_topic(broker.address, "TBW102", queues=8, perm=READ_WRITE | INHERIT)
        probe.set_broker_config(broker.address, validateSystemTopicWhenUpdateTopic="true")


@contextlib.contextmanager
def no_permission(broker: Broker, topic: str, queues: int = 4) -> Iterator[None]:
    """Sends to the topic are refused (code 16), which a broker does only when the topic is ordered
    and itself without write permission."""
    probe.make_topic(broker.address, topic, queues=queues, order=True)
    try:
        with read_only(broker):
            yield
    finally:
        probe.make_topic(broker.address, topic, queues=queues)


class Proxy:
    """A TCP proxy in front of a broker: delays, swallows, or resets what passes.

    The broker must advertise `listen_host` (see `BrokerSpec.advertised`), so that clients come
    through here.
    """

    def __init__(self, listen: tuple[str, int], target: tuple[str, int]):
        self.delay = 0.0
        """Seconds that each chunk of an answer waits before it is passed on."""
        self.swallows: bytes | None = None
        """The next chunk of an answer that has these bytes is not passed on."""
        self.forgets_after: float | None = None
        """Seconds without a byte after which a load balancer gives a connection up: the server is
        told at once, the client by a RST when it sends again."""
        self._cut_after: int | None = None
        self._target = target
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._server = socket.create_server(listen)
        self._closed = False
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops listening and ends every connection."""
        self._closed = True
        with contextlib.suppress(OSError):
            # A thread that waits in accept is woken by this, not by close alone.
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        with self._lock:
            for one in list(self._sockets):
                _end(one)
            self._sockets.clear()

    def reset_after(self, size: int) -> None:
        """The next answer is passed on for `size` bytes only, then both sides get a RST."""
        self._cut_after = size

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target, 5.0)
                server.settimeout(None)
            except OSError:
                _reset(client)
                continue
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._sockets |= {client, server}
            for source, sink, answers in ((client, server, False), (server, client, True)):
                threading.Thread(
                    target=self._pump, args=(source, sink, answers), name="proxy", daemon=True
                ).start()

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while True:
                began = time.monotonic()
                chunk = source.recv(CHUNK)
                if not chunk:
                    break
                if self.swallows is not None and answers and self.swallows in chunk:
                    self.swallows = None
                    continue
                idle = time.monotonic() - began
                if self.forgets_after is not None and not answers and idle > self.forgets_after:
                    with self._lock:
                        self._sockets -= {source, sink}
                    _reset(source)
                    _end(sink)
                    return
                if answers and self.delay:
                    time.sleep(self.delay)
                if answers and self._cut_after is not None:
                    size, self._cut_after = self._cut_after, None
                    sink.sendall(chunk[:size])
                    # The client must have read the part before the reset discards what it has not.
                    time.sleep(0.2)
                    with self._lock:
                        self._sockets -= {source, sink}
                    _reset(sink)
                    _reset(source)
                    return
                sink.sendall(chunk)
        # Whoever comes first ends both; after a reset there is nothing left to end.
        with self._lock:
            ours = self._sockets & {source, sink}
            self._sockets -= ours
        for one in ours:
            _end(one)


def _tell(broker: Broker, word: str) -> None:
    done = f"done {word}"
    before = broker.log.read_text(errors="replace").count(done)
    broker.running().write_line(word)
    wait_until(
        f"{broker.name}: {done}",
        lambda: broker.log.read_text(errors="replace").count(done) > before,
        10.0,
    )


def _reset(connection: socket.socket) -> None:
    """Closes with RST instead of FIN."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # A thread that reads from it would keep it open; this wakes that thread and sends nothing.
        connection.shutdown(socket.SHUT_RD)
    connection.close()


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()

"""Runs a scenario twice, without and with `rmqtool proxy` before its cluster; what clients said.

Rules: both runs are at the same time, each on a cluster of its own, so that they share the load of
the machine. Clients see the proxy wherever they would see the NameServer, a broker, or a RocketMQ
proxy that speaks gRPC; what breaks servers still acts on the real ones.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import socket
import ssl
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from unittest.mock import patch

from replay.config import TlsSettings
from replay.sandbox.events import EventKind, SandboxEvent
from tests.cluster.clients import clients
from tests.cluster.clients.clients import (
    CPP_LOCK,
    GO_GRPC_SOURCES,
    Client,
    run_mqadmin,
    start_go,
    start_python,
)
from tests.cluster.clients.hosts import end_hosts
from tests.cluster.scenarios import SCENARIOS
from tests.cluster.scenarios.encrypted import TOPIC, tls_4x, tls_5x
from tests.cluster.scenarios.proxies import callers, grpc
from tests.cluster.scenarios.scene import Scenario, Scene, single_4x, single_5x
from tests.cluster.servers import probe
from tests.cluster.servers.artifacts import NEWEST_4, PROXY_53, Unavailable
from tests.cluster.servers.authority import Authority
from tests.cluster.servers.cluster import Broker, Cluster, Node
from tests.cluster.servers.proxy import grpc_text
from tests.cluster.servers.proxy import proxied as rocketmq_proxy
from tests.replay.proxy.proxied import ProxyThread, proxied

_LOGGED: Final = re.compile(r"\d\d:\d\d:\d\d\.\d{3} ")
"""the start of a line of a client's log: warnings and errors"""
_STAMP: Final = re.compile(r"\d{13} ")
_DETAIL: Final = re.compile(
    r"\s+at |See https://|Caused by|\s+\.\.\. |For more |[\w.$]+(Exception|Error)\b"
)
"""lines below one of a log"""
_CHANGING: Final = re.compile(
    r"@[0-9a-f]{5,8}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|[0-9A-Fa-f]{16,}|\bid=\w+"
    r"|127\.\d+\.\d+\.\d+(?::\d+)?|(?<!\w)-\d+|\d+"
)
"""objects, ids, addresses, offsets and times; some of them are negative"""
_PADDING: Final = re.compile(r"  +")
"""of the columns of mqadmin, as wide as an address"""
_AT_ITS_END: Final = re.compile(
    r"lock heartBeat, but failed|didn't terminate|has shutdown|execute the pull request exception"
    r"|the message queue not be found|shutdown|tryLock timeout"
    r"|sending heartbeat, but no consumer and no producer"
    # Half a second has passed at the first use of a connection.
    r"|prepare send request for <\S+> cost # ms"
)
"""what a client warns of where it is ended in the middle of something, or is slow"""
RUNS: Final = 3
"""how often a scenario runs at most"""
_HELD: Final = '{"kind":"queues"'
"""the start of a line about the queues that a client holds, looked at every 20 ms"""
_OF_A_WHILE: Final = re.compile(r'{"kind":"(?:send|state)",.*"items":')
"""a line of a program that sends until it is stopped: how often it does is chance"""
_DELIVERED: Final = re.compile(r'^{"kind":"(\w+)".*"msgId":"(\w+)"|^(\w+Topic \d+ \d+) \d+$')
"""what a client says of a message: kind and id, or topic, queue, and offset"""
_MEMBER: Final = re.compile(r'"client":"[^"]*",')
SCALING: Final = frozenset(
    f"{name}-{generation}" for name in ("scaling", "lock-hand-over") for generation in ("4x", "5x")
)
"""scenarios whose members join and leave while messages come"""
_THREADS: Final = threading.local()
"""clients that a thread started"""


class Said(NamedTuple):
    """What clients said, without what differs between runs."""

    clients: int
    printed: list[str]
    """lines of programs, sorted"""
    warned: list[str]
    """warnings and errors of their logs, each once"""
    full: str
    """all they wrote, for a person who looks for the cause"""
    has_failed: bool = False
    """whether the scenario ended early: a client failed, or was not done in time"""

    @classmethod
    def of(cls, outputs: Iterable[str], scaling: bool = False) -> Said:
        """Make it of what each client wrote to standard output.

        `scaling`: members join and leave while messages come. Which of them gets a message, and
        whether two do, is chance then; that the group gets it is not.
        """
        texts = list(outputs)
        printed, warned = [], set()
        of_a_while = set()
        delivered: set[tuple[str, ...]] = set()
        for output in texts:
            held = ""
            for line in output.splitlines():
                if scaling and (message := _DELIVERED.search(line)):
                    if message.groups() in delivered:
                        continue
                    delivered.add(message.groups())
                    line = _MEMBER.sub("", line)
                if scaling and line.startswith(_HELD):
                    continue
                text, logged = _LOGGED.subn("", line, count=1)
                text = _PADDING.sub("  ", _CHANGING.sub("#", _STAMP.sub("", text, count=1)))
                if line.startswith(_HELD):
                    # It gets one after the other: which of the steps are seen is chance.
                    held = text if text.count(":") >= held.count(":") else held
                elif _OF_A_WHILE.match(line):
                    of_a_while.add(text)
                elif not logged and not _DETAIL.match(line):
                    printed.append(text)
                elif logged and not _AT_ITS_END.search(text):
                    warned.add(text)
            printed += [*of_a_while, held] if held else of_a_while
            of_a_while.clear()
        return cls(len(texts), sorted(printed), sorted(warned), "\n".join(texts))

    def unlike(self, direct: Said) -> Counter[str]:
        """What was said through a proxy and not without (`+`), and the other way round (`-`)."""
        without, through = (
            [f"{way.clients} clients", *way.printed, *way.warned] for way in (direct, self)
        )
        found = difflib.unified_diff(without, through, lineterm="", n=0)
        lines = islice(found, 2, None)  # without the names of both
        differs = Counter(line[:300] for line in lines if not line.startswith("@@"))
        for name, way in (("direct", direct), ("through", self)):
            if way.has_failed:  # always a difference, even where both fail
                differs[f"{name}: failed"] += 1
        return differs


class _Other:
    """A node or a cluster of which some attributes are other ones."""

    def __init__(self, real: object, **other: object) -> None:
        self.__dict__ |= other
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _through(cluster: Cluster, proxy: ProxyThread) -> Cluster:
    """Return a cluster as clients of a proxy see it."""
    host, _, port = proxy.namesrv.rpartition(":")
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection((host, int(port)), 30.0))
        if proxy.proxy.options.listen_cert is not None:
            trusting = ssl.create_default_context()
            trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
            connection = stack.enter_context(trusting.wrap_socket(connection))
        probe.ask_on(connection, probe.GET_BROKER_CLUSTER_INFO)  # opens the fronts
    fronts = {one.targets[0]: f"{one.host}:{one.port}" for one in proxy.proxy.fronts.known()}
    brokers = [
        cast(Broker, _Other(one, text=fronts.get(one.text, one.text))) for one in cluster.brokers
    ]
    return cast(Cluster, _Other(cluster, namesrv_text=proxy.namesrv, brokers=brokers))


@contextlib.contextmanager
def _noted_clients() -> Iterator[None]:
    """Note which clients each thread starts, and put a proxy before servers that speak gRPC."""
    made = Client.__init__

    def init(self: Client, *args: Any) -> None:
        made(self, *args)
        if (noted := getattr(_THREADS, "clients", None)) is not None:
            noted.append(self)

    def text(node: Node) -> str:
        before: Callable[[Node], str] = getattr(_THREADS, "before", grpc_text)
        return before(node)

    with (
        patch.object(clients.Client, "__init__", init),
        patch.object(grpc, "grpc_text", text),
        patch.object(callers, "grpc_text", text),
    ):
        yield


def _run(scenario: Scenario, cluster: Cluster, before: Callable[[Node], str]) -> Said:
    """Run a scenario; return what its clients said."""
    _THREADS.clients, _THREADS.before = [], before
    with tempfile.TemporaryDirectory(prefix="rmqtool-scene-") as work:
        scene = Scene(cluster, scenario.client, Path(work), scenario.name)
        try:
            failure = ""
            try:
                with _captures_of_any_network(scene):
                    scenario.run(scene)
            except Unavailable:
                raise
            except Exception:  # of any client: see `Pairs.compared`
                failure = traceback.format_exc()
            outputs = (one.output for one in _THREADS.clients)
            said = Said.of(outputs, scenario.name in SCALING)
            return said._replace(full=said.full + failure, has_failed=bool(failure))
        finally:
            scene.stop_clients()
            _THREADS.clients = None


def _captures_of_any_network(scene: Scene) -> contextlib.AbstractContextManager[object]:
    """Let the captures of a scenario see its cluster, whose network is another one here."""
    capture = scene.capture
    return patch.object(
        scene, "capture", lambda _="", *args, **named: capture("tcp", *args, **named)
    )


def network_of_worker() -> int:
    """Return a network of this worker of pytest-xdist alone."""
    return 200 + 2 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def _cpp_client(scene: Scene) -> None:
    scene.cluster.make_topic("CppTopic", queues=2)
    start_python([scene.cluster.namesrv_text, "CppTopic", "4"], CPP_LOCK).finish(120.0)


def _tls_client(scene: Scene) -> None:
    scene.cluster.make_topic(TOPIC)
    options = {"topic": TOPIC, "count": 5, "tls": True}
    scene.run("Send", instance="producer", **options)
    scene.run("PushConsume", instance="consumer", group="tls_group", **options)


def _mqadmin(scene: Scene) -> None:
    scene.cluster.make_topic("AdminTopic", queues=2)
    # Its offset is listed: without the topic, it is chance whether the consumer pulls it in time.
    scene.cluster.make_topic("%RETRY%progress", queues=1)
    scene.run("Send", topic="AdminTopic", instance="producer", count=4)
    scene.run("PushConsume", topic="AdminTopic", instance="consumer", group="progress", count=4)
    for command in ("topicRoute -t AdminTopic", "clusterList", "consumerProgress -g progress"):
        run_mqadmin(command.split(), scene.cluster.namesrv_text, scene.client)


def _grpc_go_client(scene: Scene) -> None:
    grpc.make_topics(scene)
    # With a file for its secrets it speaks TLS.
    secrets = [str(scene.folder / "keys.log")] if scene.name in GRPC_OVER_TLS else []
    with rocketmq_proxy(scene.cluster, version=PROXY_53) as proxy:
        arguments = [grpc.grpc_text(proxy), "GrpcNormal", "4", *secrets]
        start_go(arguments, GO_GRPC_SOURCES).finish(90.0)


ALL: Final = (
    *SCENARIOS,
    Scenario("cpp-client-5x", single_5x, _cpp_client, "The C++ client: sends, then consumes"),
    Scenario("mqadmin-5x", single_5x, _mqadmin, "Route, cluster, and progress by mqadmin"),
    Scenario("mqadmin-4x", single_4x, _mqadmin, "The same with 4.x", client=NEWEST_4),
    Scenario("tls-client-5x", tls_5x, _tls_client, "A producer and a consumer over TLS"),
    Scenario("tls-client-4x", tls_4x, _tls_client, "The same with 4.x", client=NEWEST_4),
    Scenario("grpc-go-5x", single_5x, _grpc_go_client, "The Go client over gRPC: sends, consumes"),
    Scenario("grpc-go-tls-5x", single_5x, _grpc_go_client, "The same over TLS"),
)
"""those that are recorded, and those that are only compared"""
OVER_TLS: Final = frozenset(("tls-client-5x", "tls-client-4x"))
"""scenarios in which the proxy speaks TLS, with clients and with servers"""
GRPC_OVER_TLS: Final = frozenset(("grpc-go-tls-5x",))
"""scenarios in which it does so in front of gRPC"""


class Pair:
    """Two equal clusters, one of them behind a proxy."""

    def __init__(self, make: Callable[[], Cluster], network: int) -> None:
        """`network` and the one above it are those of the clusters: the third byte of 127.77."""
        self._clusters = [make(), make()]
        for at, one in enumerate(self._clusters):
            one.move(f"127.77.{network + at}", 10 * (network + at))

    def __enter__(self) -> Pair:
        with contextlib.ExitStack() as stack:
            for one in self._clusters:
                stack.enter_context(one)
            # What a thread has started, clients' hosts too, ends with it.
            self._threads = stack.enter_context(ThreadPoolExecutor(2))
            stack.callback(end_hosts)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def said(self, scenario: Scenario) -> tuple[Said, Said, Counter[str]]:
        """Run a scenario both ways: what clients said, and what the proxy counted."""
        direct, behind = self._clusters
        refused: Counter[str] = Counter()

        def note(event: SandboxEvent) -> None:
            if event.kind is EventKind.REFUSED:
                refused[f"refused: {event.detail}"] += 1

        with contextlib.ExitStack() as fronts:
            folder = Path(fronts.enter_context(tempfile.TemporaryDirectory()))
            cert, key = Authority(folder, "own CA").files(-1, 365)
            secure = {"listen_cert": str(cert), "listen_key": str(key)}
            both_sides: dict[str, Any] = {**secure, "tls": TlsSettings(verify=False)}
            of_remoting = both_sides if scenario.name in OVER_TLS else {}
            of_grpc = both_sides if scenario.name in GRPC_OVER_TLS else {}
            fronts.enter_context(_noted_clients())
            namesrvs = behind.namesrv_text
            proxy = fronts.enter_context(proxied(namesrvs, on_event=note, **of_remoting))
            more: dict[str, ProxyThread] = {}

            def before(node: Node) -> str:
                real = grpc_text(node)
                if real not in more:
                    options = {"grpc": real, "grpc_port": 0, "on_event": note, **of_grpc}
                    more[real] = fronts.enter_context(proxied(namesrvs, **options))
                return more[real].proxy.grpc

            first = self._threads.submit(_run, scenario, direct, grpc_text)
            second = self._threads.submit(_run, scenario, _through(behind, proxy), before)
            results = first.result(), second.result()
            counts = Counter(proxy.proxy.counts)
            for one in more.values():
                counts += one.proxy.counts
            counts += refused
        return *results, counts


class Compared(NamedTuple):
    """How what clients said differs, in all runs of a scenario."""

    direct: Said
    """what they said without a proxy, in the last run"""
    unlike: list[str]
    """what differs in the same way in each run"""
    counts: Counter[str]
    """what the proxy counted in the last run"""
    runs: int
    outputs: str
    """what clients said in each run that differs, in full"""


class Pairs:
    """The pair of clusters that scenarios ran on last: those of one cluster share it."""

    def __init__(self, network: int) -> None:
        """`network`: see `Pair`."""
        self._network = network
        self._stack = contextlib.ExitStack()
        self._make: Callable[[], Cluster] | None = None

    def compared(self, scenario: Scenario) -> Compared:
        """Run a scenario both ways, where something differs again on new clusters.

        Two runs of the same client differ by chance on a busy machine: a lookup before the first
        heartbeat, a send that comes too late. The proxy does it each time.
        """
        unlike: Counter[str] = Counter()
        outputs = ""
        for number in range(1, RUNS + 1):
            direct, through, counts = self._of(scenario.cluster).said(scenario)
            found = through.unlike(direct)
            unlike = found if number == 1 else unlike & found
            if not unlike:
                break
            outputs += f"run {number}, direct:\n{direct.full}\nthrough:\n{through.full}\n"
            self.close()
        return Compared(direct, sorted(unlike.elements()), counts, number, outputs)

    def _of(self, make: Callable[[], Cluster]) -> Pair:
        if make is not self._make:
            self.close()
            self._pair = self._stack.enter_context(Pair(make, self._network))
            self._make = make
        return self._pair

    def close(self) -> None:
        """Stop the clusters."""
        self._make = None
        self._stack.close()


def compare(names: Iterable[str]) -> int:
    """Run scenarios, or all, both ways, and print how they differ; return 1 where one does."""
    wanted = set(names)
    chosen = [one for one in ALL if not wanted or one.name in wanted]
    chosen.sort(key=lambda one: one.cluster.__qualname__)
    different = 0
    with contextlib.closing(Pairs(network_of_worker())) as pairs:
        for scenario in chosen:
            begin = time.monotonic()
            try:
                found = pairs.compared(scenario)
            except Exception:
                traceback.print_exc()
                print(f"{scenario.name}: failed", flush=True)
                different += 1
                pairs.close()  # nobody knows how its cluster is left
                continue
            seconds = time.monotonic() - begin
            word = "DIFFERENT" if found.unlike else "same" if found.direct.clients else "no client"
            print(
                f"{scenario.name}: {word}, {found.direct.clients} clients, "
                f"{len(found.direct.printed)} lines, {len(found.direct.warned)} warnings, "
                f"{found.runs} runs, {seconds:.0f} s, {dict(found.counts)}",
                flush=True,
            )
            print(found.outputs, end="", flush=True)
            if found.unlike:
                different += 1
                print("\n".join(found.unlike[:20]), flush=True)
    return 1 if different else 0

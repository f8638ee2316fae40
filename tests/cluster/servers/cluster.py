"""NameServers and brokers of a real RocketMQ on loopback, as one context manager.

Rules:
- Every node has its own address of 127.0.0.0/8 and ports that were free when it was made.
- Stores are small (a broker takes tens of megabytes) and live in a temporary folder that goes with
  the cluster;
  after a failure the logs stay and their place is part of the error.
- `start()` returns only when the NameServers list every broker. Brokers start when the NameServers
  listen: one that finds none tries again after ten seconds.
- Servers take no TLS unless `properties` say so.

RocketMQ: NamesrvStartup, BrokerStartup, MessageStoreConfig.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import probe
from .artifacts import JAVA_SOURCES, NEWEST_5, RELEASES, Unavailable, class_path
from .processes import OwnedProcess, java_command, port_is_free, wait_until

START_SECONDS = 60.0
STOP_SECONDS = 40.0
"""A 5.x broker takes its time to unregister, to flush and to end its threads."""
CLUSTER_NAME = "SampleCluster"

SMALL_STORE = {
    "mappedFileSizeCommitLog": 8 * 1024 * 1024,
    "mappedFileSizeConsumeQueue": 20 * 5000,
    "mappedFileSizeTimerLog": 1024 * 1024,
    "maxHashSlotNum": 5000,
    "maxIndexNum": 20000,
    "fileReservedTime": 1,
    "diskMaxUsedSpaceRatio": 95,
    # On a disk that is 85 % full nothing is deleted for it.
    "cleanFileForciblyEnable": "false",
    "cleanResourceInterval": 3600 * 1000,
}
CALM_BROKER = {
    # On a busy machine the queue waits of production would answer "broker busy" where a sample
    # wants success.
    "waitTimeMillsInSendQueue": 5000,
    "sendMessageThreadPoolNums": 2,
    "pullMessageThreadPoolNums": 2,
    "enablePropertyFilter": "true",
    "flushDiskType": "ASYNC_FLUSH",
    "deleteWhen": "04",
    # Once this interval has passed since the last transaction ended, a 5.x broker spins on a core
    # as long as it runs. What has ended is written at once instead.
    "transactionOpBatchInterval": 24 * 3600 * 1000,
    "transactionOpMsgMaxSize": 1,
    # A 5.x broker spins for the first of these intervals (10 s), and writes the 38 MB of its timer
    # wheel at each of these (1 s): more than all that a test asks of it.
    "transactionMetricFlushInterval": 500,
    "timerFlushIntervalMs": 600_000,
}

PLAIN = "tls.server.mode=disabled"
"""Unless a cluster is told otherwise. To be ready for TLS, RocketMQ makes a certificate at each
start, by classes of signed jars, which Java cannot archive: two thirds of what a start costs."""


@dataclass(slots=True)
class BrokerSpec:
    """The settings of a broker; the cluster chooses address and ports."""

    name: str = "broker-a"
    """Name of the replica group."""
    broker_id: int = 0
    """0 is the master, anything else a slave."""
    role: str = "ASYNC_MASTER"
    """ASYNC_MASTER, SYNC_MASTER or SLAVE."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """More lines for the broker's configuration."""
    advertised: str | None = None
    """Host that the route names instead of its own, for a proxy in front of it (5.x servers)."""


class Node:
    """One server process of the cluster."""

    def __init__(self, name: str, host: str, port: int, folder: Path, command: list[str]):
        self.name = name
        self.host = host
        self.port = port
        self.folder = folder
        self.command = command
        self.process: OwnedProcess | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port for a socket."""
        return self.host, self.port

    @property
    def text(self) -> str:
        """`host:port`, as RocketMQ writes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def log(self) -> Path:
        """What the process printed."""
        return self.folder / "process.log"

    def start(self) -> None:
        """Starts the process; it may not serve yet."""
        self.process = OwnedProcess(self.command, self.log, cwd=self.folder)

    def stop(self) -> None:
        """Ends the process in order: it unregisters and says good-bye first."""
        if self.process is not None:
            self.process.stop(STOP_SECONDS)

    def kill(self) -> None:
        """Ends the process at once."""
        if self.process is not None:
            self.process.kill()

    def alive(self) -> bool:
        """Whether the process was started and has not ended."""
        return self.process is not None and self.process.returncode is None

    def running(self) -> OwnedProcess:
        """The live process; raises when it has ended."""
        if self.process is None or not self.alive():
            raise RuntimeError(f"{self.name} does not run; {self.log}")
        return self.process


class Broker(Node):
    """A broker, master or slave."""

    def __init__(self, spec: BrokerSpec, host: str, port: int, folder: Path, command: list[str]):
        super().__init__(f"{spec.name}-{spec.broker_id}", host, port, folder, command)
        self.spec = spec

    @property
    def registered_as(self) -> str:
        """The address that the NameServer lists."""
        return f"{self.spec.advertised}:{self.port}" if self.spec.advertised else self.text


class Cluster:
    """NameServers and brokers, started and stopped together."""

    def __init__(
        self,
        brokers: Iterable[BrokerSpec] = (BrokerSpec(),),
        *,
        version: str = NEWEST_5,
        namesrvs: int = 1,
        network: str = "127.77.0",
        ipv6: bool = False,
        properties: Iterable[str] = (),
        namesrv_settings: Mapping[str, object] | None = None,
        home_files: Mapping[str, str] | None = None,
    ):
        self.version = version
        self.network = network
        self.ipv6 = ipv6
        self.properties = tuple(properties)
        self.namesrv_settings = dict(namesrv_settings or {})
        self.home_files = dict(home_files or {})
        self.namesrvs: list[Node] = []
        self.brokers: list[Broker] = []
        self._wanted = (namesrvs, list(brokers))
        self._ports: set[int] = set()
        self.folder: Path | None = None

    def move(self, network: str, offset: int) -> None:
        """Uses another network before the start, and other ports where settings name them.

        A DLedger peer or controller listens on its port at all addresses of this machine. `offset`
        is that of its new port, which is below those that the system gives to clients.
        """

        def moved(settings: Mapping[str, object]) -> dict[str, object]:
            own = re.compile(re.escape(self.network) + r"\.(\d+):(\d+)")

            def other(peer: re.Match[str]) -> str:
                return f"{network}.{peer[1]}:{10_000 + int(peer[2]) % 10_000 + offset}"

            return {
                name: own.sub(other, value) if isinstance(value, str) else value
                for name, value in settings.items()
            }

        namesrvs, specs = self._wanted
        specs = [replace(spec, settings=moved(spec.settings)) for spec in specs]
        self._wanted = namesrvs, specs
        self.namesrv_settings = moved(self.namesrv_settings)
        self.network = network

    def start(self) -> Cluster:
        """Starts every node and waits until all are listed; stops all of them on failure."""
        path = class_path(self.version)
        self.folder = Path(tempfile.mkdtemp(prefix="rmqtool-cluster-"))
        try:
            namesrvs, specs = self._wanted
            for number in range(namesrvs):
                self.namesrvs.append(self._make_namesrv(path, number))
                self.namesrvs[-1].start()
            for node in self.namesrvs:
                self._wait_listening(node)
            for number, spec in enumerate(specs):
                self.brokers.append(self._make_broker(path, number, spec))
                self.brokers[-1].start()
            for broker in self.brokers:
                self.wait_listed(broker)
                broker.running().keep_classes()
        except BaseException as error:
            self.stop(keep_logs=not isinstance(error, Unavailable))
            raise
        return self

    def stop(self, *, keep_logs: bool = False) -> None:
        """Ends every process and removes the stores; logs stay only when asked for."""
        # The stores go with the cluster, so nothing is lost by not waiting for an orderly end.
        for node in (*reversed(self.brokers), *self.namesrvs):
            node.kill()
        if self.folder is None:
            return
        for store in self.folder.glob("*/store"):
            shutil.rmtree(store, ignore_errors=True)
        if not keep_logs:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, _: object, error: BaseException | None, *rest: object) -> None:
        self.stop(keep_logs=error is not None)

    @property
    def namesrv_text(self) -> str:
        """The NameServer list as clients take it: `host:port;host:port`."""
        return ";".join(node.text for node in self.namesrvs)

    def broker(self, name: str = "broker-a", broker_id: int = 0) -> Broker:
        """The broker of that name and id; raises `KeyError`."""
        for broker in self.brokers:
            if (broker.spec.name, broker.spec.broker_id) == (name, broker_id):
                return broker
        raise KeyError(f"{name} {broker_id}")

    @contextlib.contextmanager
    def unknown_namesrv(self, *properties: str, port: int | None = None) -> Iterator[Node]:
        """One more NameServer, which no broker knows, with system properties of its own.

        `port` is one that is free on its address; None: one that is free everywhere.
        """
        shared, self.properties = self.properties, (*self.properties, *properties)
        try:
            node = self._make_namesrv(class_path(self.version), len(self.namesrvs), port)
        finally:
            self.properties = shared
        node.start()
        try:
            self._wait_listening(node)
            yield node
        finally:
            node.kill()
            shutil.rmtree(node.folder, ignore_errors=True)

    def spare_broker(self, spec: BrokerSpec) -> Broker:
        """One more broker, which is not started and not one of `brokers`; who starts it ends it."""
        number = len(self.brokers)
        return self._make_broker(class_path(self.version), number, spec, f"spare-{number}")

    def _wait_listening(self, node: Node) -> None:
        """Waits until a NameServer takes connections; raises as `wait_listed`."""

        def listens() -> bool:
            node.running()
            return probe.listens(node.address)

        wait_until(f"{node.name} listens (logs in {self.folder})", listens, START_SECONDS)

    def wait_listed(self, broker: Broker, timeout: float = START_SECONDS) -> None:
        """Waits until every NameServer lists it; raises `TimeoutError` or `RuntimeError`."""

        def listed() -> bool:
            broker.running()
            return all(
                probe.is_registered(node.address, broker.registered_as) for node in self.namesrvs
            )

        wait_until(f"{broker.name} is listed (logs in {self.folder})", listed, timeout)

    def make_topic(
        self, topic: str, *, queues: int = 4, perm: int = 6, attributes: str = ""
    ) -> None:
        """Makes a topic on every master and waits until every NameServer has its route."""
        masters = [broker for broker in self.brokers if broker.spec.broker_id == 0]
        for broker in masters:
            probe.make_topic(broker.address, topic, queues=queues, perm=perm, attributes=attributes)

        def routed() -> bool:
            return all(probe.has_route(node.address, topic, len(masters)) for node in self.namesrvs)

        wait_until(f"route of {topic}", routed, 20.0)

    def _make_namesrv(self, path: str, number: int, port: int | None = None) -> Node:
        host = "::1" if self.ipv6 else f"{self.network}.{1 + number}"
        port = port or self._free_port(host, 9876 + number)
        folder = self._folder(f"namesrv-{number}")
        config = folder / "namesrv.properties"
        settings = {
            "listenPort": port,
            "bindAddress": host,
            "rocketmqHome": folder,
            "controllerStorePath": folder / "controller",
        }
        _write_settings(config, {**settings, **self.namesrv_settings})
        command = java_command(
            path,
            "Node",
            ["namesrv", "-c", str(config)],
            folder,
            heap="128m",
            properties=[f"rocketmq.home.dir={folder}", PLAIN, *self.properties],
        )
        return Node(f"namesrv-{number}", host, port, folder, command)

    def _make_broker(
        self, path: str, number: int, spec: BrokerSpec, folder_name: str = ""
    ) -> Broker:
        host = "::1" if self.ipv6 else f"{self.network}.{11 + number}"
        port = self._free_port(host, 10911 + 10 * number)
        folder = self._folder(folder_name or f"{spec.name}-{spec.broker_id}")
        config = folder / "broker.properties"
        own_host = f"[{host}]" if ":" in host else host
        settings: dict[str, object] = {
            "brokerClusterName": CLUSTER_NAME,
            "brokerName": spec.name,
            "brokerId": spec.broker_id,
            "brokerRole": spec.role,
            "namesrvAddr": self.namesrv_text,
            "listenPort": port,
            "bindAddress": host,
            "brokerIP1": spec.advertised or own_host,
            "brokerIP2": own_host,
            "haListenPort": port + 1,
            "rocketmqHome": folder,
            "storePathRootDir": folder / "store",
            "storePathCommitLog": folder / "store" / "commitlog",
            **SMALL_STORE,
            **CALM_BROKER,
            **spec.settings,
        }
        _write_settings(config, settings)
        command = java_command(
            path,
            "Node",
            ["broker", "-c", str(config)],
            folder,
            properties=[f"rocketmq.home.dir={folder}", PLAIN, *self.properties],
        )
        return Broker(spec, host, port, folder, command)

    def _folder(self, name: str) -> Path:
        assert self.folder is not None
        folder = self.folder / name
        folder.mkdir(parents=True)
        files = dict(self.home_files)
        if RELEASES[self.version].generation == "v4":
            # The 4.x start classes insist on these files below their home.
            quiet = (JAVA_SOURCES / "resources" / "logback.xml").read_text()
            files |= {f"conf/logback_{kind}.xml": quiet for kind in ("broker", "namesrv")}
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return folder

    def _free_port(self, host: str, preferred: int) -> int:
        """A port free for itself, its VIP port (two below) and its HA port (one above).

        HA ports, and all ports of a 4.x broker, are bound on all addresses, and late: each network
        looks from a port of its own, so that clusters that start together do not take the same. Up
        to network 217 it is below the ports that the kernel gives to clients (32768 and higher).
        """
        first = preferred + 100 * int(self.network.rpartition(".")[2])
        for port in range(first, first + 10000, 100):
            span = {port - 2, port, port + 1}
            if not span & self._ports and all(port_is_free(host, one) for one in span):
                self._ports |= span
                return port
        raise RuntimeError(f"no free port near {first} on {host}")


def _write_settings(path: Path, settings: Mapping[str, object]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

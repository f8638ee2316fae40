"""A scenario is one capture: which cluster, which client, what happens, what to notice.

Rules:
- A scenario runs its own clients and opens its own captures; the cluster is shared by all that
  name the same one.
- Names end with the client's generation: `-4x` is the newest 4.x client on the newest 4.x server,
  `-5x` both newest 5.x.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.clients import told
from tests.cluster.clients.clients import Client, run_java, start_java
from tests.cluster.recording.capture import Capture
from tests.cluster.servers import probe
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_4_SERVER, NEWEST_5
from tests.cluster.servers.cluster import Broker, BrokerSpec, Cluster

NETWORK = "127.77.0"
EVERYTHING = f"net {NETWORK}.0/24 and not host {probe.SOURCE}"
TOPIC = "SampleTopic"
QUICK_TRANSACTIONS = {"transactionTimeOut": 2000, "transactionCheckInterval": 2000}


def single_5x() -> Cluster:
    """One NameServer and one broker, newest 5.x."""
    spec = BrokerSpec(settings={**QUICK_TRANSACTIONS, "recallMessageEnable": "true"})
    return Cluster([spec], version=NEWEST_5, network=NETWORK)


def single_53() -> Cluster:
    """One NameServer and one broker of 5.3.3."""
    return Cluster([BrokerSpec(settings=QUICK_TRANSACTIONS)], version="5.3.3", network=NETWORK)


def single_4x() -> Cluster:
    """One NameServer and one broker, newest 4.x server."""
    spec = BrokerSpec(settings=QUICK_TRANSACTIONS)
    return Cluster([spec], version=NEWEST_4_SERVER, network=NETWORK)


def on_both(
    make: Callable[[str], Cluster],
) -> tuple[Callable[[], Cluster], Callable[[], Cluster]]:
    """Makers of the same cluster with the servers of 5.x and of 4.x."""
    return (lambda: make(NEWEST_5)), (lambda: make(NEWEST_4_SERVER))


class Scene:
    """What a scenario's function works with."""

    def __init__(self, cluster: Cluster, client: str, folder: Path, name: str):
        self.cluster = cluster
        self.client = client
        self.folder = folder
        self.name = name
        self.made: list[Path] = []
        self.killed: list[dict[str, Any]] = []
        """clients that were killed, as they would have told it"""
        self._clients: list[Client] = []

    @property
    def broker(self) -> Broker:
        """The first master."""
        return self.cluster.brokers[0]

    def master(self) -> str:
        """The address that the NameServer lists under id 0; empty where there is none."""
        _, body = probe.ask(self.cluster.namesrvs[0].address, probe.GET_BROKER_CLUSTER_INFO)
        found = re.search(rb'[{,]"?0"?:"([^"]+)"', body)
        return found[1].decode() if found else ""

    def capture(self, expression: str = EVERYTHING, suffix: str = "", **options: object) -> Capture:
        """A capture of the cluster's traffic into `samples/<name><suffix>.pcap`."""
        path = self.folder / f"{self.name}{suffix}.pcap"
        self.made.append(path)
        return Capture(path, expression, **options)  # type: ignore[arg-type]

    def write_json(self, value: object, suffix: str) -> None:
        """Writes a JSON file beside the capture."""
        path = self.folder / f"{self.name}.{suffix}.json"
        path.write_text(json.dumps(value) + "\n")
        self.made.append(path)

    def tell(self, *printed: str | Client) -> None:
        """Writes what clients knew to `samples/<name>.clients.json`.

        `printed`: what they printed, or they themselves.
        """
        texts = [one if isinstance(one, str) else one.output for one in printed]
        path = self.folder / f"{self.name}.{told.SUFFIX}"
        lines = (line for text in texts for line in told.told_in(text))
        told.write_truth(path, told.truth_of([*lines, *self.killed]))
        self.made.append(path)

    def kill(self, client: Client) -> None:
        """Ends a client at once, and notes when."""
        last = told.told_in(client.output)[-1]
        client.kill()
        at = time.time_ns() // 1_000_000
        self.killed.append(
            {"kind": "killed", "at": at, "client": last["client"], "group": last["group"]}
        )

    def run(self, program: str, **options: object) -> str:
        """Runs one of our Java programs on the scenario's client; returns what it printed."""
        options.setdefault("version", self.client)
        return run_java(program, self.cluster.namesrv_text, **options)  # type: ignore[arg-type]

    def start(self, program: str, **options: object) -> Client:
        """Starts one of our Java programs on the scenario's client."""
        options.setdefault("version", self.client)
        client = start_java(
            program,
            self.cluster.namesrv_text,
            **options,  # type: ignore[arg-type]
        )
        self._clients.append(client)
        return client

    def stop_clients(self) -> None:
        """Ends the clients that a failed scenario left running."""
        for client in self._clients:
            client.stop()


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of `samples/README.md` and how to record it."""

    name: str
    """File name without its ending."""
    cluster: Callable[[], Cluster]
    """Makes the cluster; scenarios with the same maker share one."""
    run: Callable[[Scene], None]
    """Runs clients and captures them."""
    what: str
    """What happens."""
    odd: str = ""
    """What a reader should notice."""
    client: str = NEWEST_5
    """Release of the client."""
    keeps: frozenset[str] = field(default_factory=frozenset)
    """Words that the check for traces of the machine must let pass."""
    shows: tuple[str, ...] = ()
    """Rules of the diagnosis that it was recorded for; the text of `run` says what was provoked."""
    packed: bool = False
    """Its captures are stored with gzip."""


def both(
    name: str,
    run: Callable[[Scene], None],
    what: str,
    odd: str = "",
    *,
    clusters: tuple[Callable[[], Cluster], Callable[[], Cluster]] = (single_5x, single_4x),
    shows: tuple[str, ...] = (),
    packed: bool = False,
) -> tuple[Scenario, Scenario]:
    """The same scenario on both generations of the client; `clusters` are those of 5.x and 4.x."""
    return (
        Scenario(f"{name}-5x", clusters[0], run, what, odd, NEWEST_5, shows=shows, packed=packed),
        Scenario(f"{name}-4x", clusters[1], run, what, odd, NEWEST_4, shows=shows, packed=packed),
    )

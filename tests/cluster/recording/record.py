"""Records `samples/` anew from nothing: runs the scenarios, checks and describes the captures.

Rules:
- Everything runs in namespaces of its own (see `namespace.py`).
- A capture that is too large or holds a trace of the machine is an error, not a sample.
- The README is made from the same table as the captures, so it cannot tell of others.
"""

from __future__ import annotations

import gzip
import os
import platform
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from tests.cluster.clients import hosts
from tests.cluster.clients.clients import (
    CPP_LOCK,
    GO_GRPC_SOURCES,
    PYTHON_STUCK_LOCK,
    build_go,
    fetch_python,
)
from tests.cluster.scenarios import SCENARIOS
from tests.cluster.scenarios.scene import Scenario, Scene
from tests.cluster.servers.artifacts import HERE, RELEASES, TLS_AGENT, class_path, fetch
from tests.cluster.servers.cluster import Cluster
from tests.cluster.servers.processes import log_end

from . import namespace
from .capture import tcpdump
from .readme import write_readme

LARGEST = 300_000
ALL_TOGETHER = 20_000_000


def record(names: Sequence[str], folder: Path) -> int:
    """Records the named scenarios, or all; returns 0, or 1 when one failed."""
    chosen = [one for one in SCENARIOS if not names or one.name in names]
    unknown = set(names) - {one.name for one in chosen}
    if unknown:
        raise SystemExit(f"no such scenario: {', '.join(sorted(unknown))}")
    if not namespace.inside():
        prepare()
        folder.mkdir(parents=True, exist_ok=True)
        status = namespace.run_inside(["record", "--into", str(folder), *names])
        write_readme(folder, SCENARIOS)
        return status
    namespace.furnish()
    hosts.are_shared = False
    # Group by cluster without changing the order of the table's themes more than needed.
    order = {maker: i for i, maker in enumerate(dict.fromkeys(one.cluster for one in chosen))}
    chosen.sort(key=lambda one: order[one.cluster])
    failed = [
        name
        for _, group in groupby(chosen, key=lambda one: one.cluster)
        for name in _record_group(list(group), folder)
    ]
    if failed:
        print(f"FAILED: {', '.join(failed)}", flush=True)
    return 1 if failed else 0


def prepare() -> None:
    """Fetches and builds everything that cannot be fetched inside."""
    tcpdump()
    for version in RELEASES:
        class_path(version)
    fetch(TLS_AGENT)
    build_go()
    build_go(GO_GRPC_SOURCES)
    fetch_python()
    fetch_python(PYTHON_STUCK_LOCK)
    fetch_python(CPP_LOCK)


def _record_group(group: Sequence[Scenario], folder: Path) -> list[str]:
    """Records scenarios that share a cluster; returns the names of those that failed.

    A failure leaves the cluster as nobody planned it, so those behind it get a new one.
    """
    failed: list[str] = []
    rest = list(group)
    while rest:
        try:
            with rest[0].cluster() as cluster:
                while rest:
                    scenario = rest.pop(0)
                    try:
                        _record_one(scenario, cluster, folder)
                    except Exception:
                        traceback.print_exc()
                        failed.append(scenario.name)
                        _print_logs(cluster)
                        break
        except Exception:
            # The cluster did not come up, and would not for the next one either.
            traceback.print_exc()
            failed += [scenario.name for scenario in rest]
            break
    return failed


def _record_one(scenario: Scenario, cluster: Cluster, folder: Path) -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rmqtool-record-") as work:
        scene = Scene(cluster, scenario.client, Path(work), scenario.name)
        try:
            scenario.run(scene)
        finally:
            scene.stop_clients()
        check(scene.made, scenario.keeps)
        if scenario.packed:
            scene.made = [_packed(path) for path in scene.made]
        for path in scene.made:
            shutil.copyfile(path, folder / path.name)
    sizes = [f"{path.name} {(folder / path.name).stat().st_size}" for path in scene.made]
    print(f"{scenario.name}: {time.monotonic() - began:.1f} s, {', '.join(sizes)}", flush=True)


def _packed(path: Path) -> Path:
    """A capture in a file of its own with gzip; any other file as it is."""
    if path.suffix != ".pcap":
        return path
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    return packed


def _print_logs(cluster: Cluster) -> None:
    """The ends of the servers' logs: their files go with the namespaces."""
    for node in (*cluster.namesrvs, *cluster.brokers):
        status = node.process.returncode if node.process else None
        print(f"--- {node.name}, exit status {status}\n{log_end(node.log, 12)}", flush=True)


def check(paths: Iterable[Path], keeps: frozenset[str] = frozenset()) -> None:
    """Raises `ValueError` for a file that is too large or holds a trace of the machine."""
    for path in paths:
        data = path.read_bytes()
        if len(data) > LARGEST:
            raise ValueError(f"{path.name} has {len(data)} bytes, more than {LARGEST}")
        for trace in _traces():
            if trace.encode() in data and trace not in keeps:
                raise ValueError(f"{path.name} holds {trace!r}")


def _traces() -> set[str]:
    """Texts of this machine that have no business in a sample."""
    texts = {
        str(Path.home()),
        str(HERE.parents[1]),
        "/tmp/",
        platform.release(),
        os.environ.get("RMQTOOL_HOST", ""),
    }
    # A short word would be found by chance in binary data.
    return {text for text in texts if len(text) > 4}

"""The cluster does what it says: it serves, its faults happen and heal, and nothing of it stays."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.clients.clients import run_java
from tests.cluster.fixtures import require_jars, skip_or_fail
from tests.cluster.recording.capture import Capture
from tests.cluster.servers import faults, probe
from tests.cluster.servers.artifacts import HERE, NEWEST_4, NEWEST_4_SERVER, NEWEST_5, Unavailable
from tests.cluster.servers.cluster import Broker, BrokerSpec, Cluster
from tests.cluster.servers.processes import wait_until

pytestmark = pytest.mark.cluster

SEND_MESSAGE_V2 = 310
GET_MAX_OFFSET = 30
SUCCESS, SERVICE_NOT_AVAILABLE, NO_PERMISSION, TOPIC_NOT_EXIST = 0, 14, 16, 17
FLUSH_SLAVE_TIMEOUT = 12


def send(broker: Broker, topic: str, timeout: float = 30.0) -> int:
    """Response code of one message sent to queue 0."""
    fields = {"a": "test_group", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0"}
    fields |= {"g": str(time.time_ns() // 1_000_000), "h": "0", "i": "", "j": "0"}
    fields |= {"k": "false", "l": "0", "m": "false"}
    header, _ = probe.ask(broker.address, SEND_MESSAGE_V2, fields, b"a body", timeout)
    code = header["code"]
    assert isinstance(code, int)
    return code


def max_offset(broker: Broker, topic: str) -> int:
    """Number of messages in queue 0."""
    header, _ = probe.ask(broker.address, GET_MAX_OFFSET, {"topic": topic, "queueId": "0"})
    fields = header["extFields"]
    assert isinstance(fields, dict)
    return int(fields["offset"])


def perms(cluster: Cluster, topic: str) -> dict[str, bool]:
    """Whether each broker's queues may be written, by broker name, as the NameServer says."""
    _, body = probe.ask(cluster.namesrvs[0].address, probe.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    text = body.decode()
    queues = text[text.index('"queueDatas"') :]
    found = {}
    for part in queues.split("{")[1:]:
        name = part.split('"brokerName":"')[1].split('"')[0]
        found[name] = bool(int(part.split('"perm":')[1].split(",")[0]) & 2)
    return found


@pytest.fixture
def broker(rocketmq: Cluster) -> Broker:
    """The broker that the faults happen to."""
    return rocketmq.broker("broker-a")


def test_serves_routes_of_both_masters(rocketmq: Cluster) -> None:
    rocketmq.make_topic("RouteTopic")
    assert perms(rocketmq, "RouteTopic") == {"broker-a": True, "broker-b": True}
    assert [send(one, "RouteTopic") for one in rocketmq.brokers] == [SUCCESS, SUCCESS]


def test_stores_are_small() -> None:
    # A cluster of its own: other tests store messages in the shared one.
    with _cluster([BrokerSpec()], network="127.77.4") as cluster:
        cluster.make_topic("StoreTopic")
        folder = cluster.brokers[0].folder
        blocks = sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
    assert 0 < blocks < 60_000_000


def test_frozen_broker_answers_later(rocketmq: Cluster, broker: Broker) -> None:
    rocketmq.make_topic("FrozenTopic")
    before = max_offset(broker, "FrozenTopic")
    with faults.frozen(broker), pytest.raises(TimeoutError):
        send(broker, "FrozenTopic", timeout=1.0)
    # What was sent while it stood still was buffered by the kernel and is stored afterwards.
    wait_until("stored late", lambda: max_offset(broker, "FrozenTopic") == before + 1, 10.0)


def test_killed_broker_refuses_and_comes_back(rocketmq: Cluster, broker: Broker) -> None:
    rocketmq.make_topic("KilledTopic")
    assert send(broker, "KilledTopic") == SUCCESS
    namesrv = rocketmq.namesrvs[0].address
    faults.kill(broker)
    try:
        with pytest.raises(ConnectionRefusedError):
            send(broker, "KilledTopic")
        wait_until("route gone", lambda: not probe.is_registered(namesrv, broker.text), 10.0)
    finally:
        faults.restart(rocketmq, broker)
    assert send(broker, "KilledTopic") == SUCCESS


def test_disk_full_is_answered_14_and_heals(rocketmq: Cluster, broker: Broker) -> None:
    rocketmq.make_topic("FullTopic")
    with faults.disk_full(broker):
        assert send(broker, "FullTopic") == SERVICE_NOT_AVAILABLE
    assert send(broker, "FullTopic") == SUCCESS


def test_read_only_broker_is_not_writable_in_the_route(rocketmq: Cluster, broker: Broker) -> None:
    rocketmq.make_topic("ReadOnlyTopic")
    with faults.read_only(broker):
        wanted = {"broker-a": False, "broker-b": True}
        wait_until("read only", lambda: perms(rocketmq, "ReadOnlyTopic") == wanted, 10.0)
    wait_until("writable", lambda: all(perms(rocketmq, "ReadOnlyTopic").values()), 10.0)


def test_no_permission_is_answered_16(rocketmq: Cluster, broker: Broker) -> None:
    rocketmq.make_topic("ForbiddenTopic")
    with faults.no_permission(broker, "ForbiddenTopic"):
        assert send(broker, "ForbiddenTopic") == NO_PERMISSION
    assert send(broker, "ForbiddenTopic") == SUCCESS


def test_unknown_topic_is_answered_17_without_auto_create(broker: Broker) -> None:
    with faults.no_auto_create(broker):
        assert send(broker, "UnknownTopic") == TOPIC_NOT_EXIST
    assert send(broker, "UnknownTopic") == SUCCESS


@contextlib.contextmanager
def proxied(broker: Broker) -> Iterator[tuple[faults.Proxy, tuple[str, int]]]:
    """A proxy in front of a broker and where it listens."""
    with socket.create_server(("127.77.1.61", 0)) as reserved:
        address = reserved.getsockname()[:2]
    with faults.Proxy(address, broker.address) as proxy:
        yield proxy, address


def test_proxy_delays_answers(broker: Broker) -> None:
    with proxied(broker) as (proxy, address):
        proxy.delay = 0.4
        began = time.monotonic()
        header, _ = probe.ask(address, GET_MAX_OFFSET, {"topic": "TBW102", "queueId": "0"})
        assert time.monotonic() - began >= 0.4
        assert header["code"] == SUCCESS


def test_proxy_resets_inside_a_frame(broker: Broker) -> None:
    with proxied(broker) as (proxy, address):
        proxy.reset_after(9)
        with pytest.raises(ConnectionResetError):
            probe.ask(address, GET_MAX_OFFSET, {"topic": "TBW102", "queueId": "0"})
        header, _ = probe.ask(address, GET_MAX_OFFSET, {"topic": "TBW102", "queueId": "0"})
        assert header["code"] == SUCCESS


def test_real_client_is_captured(rocketmq: Cluster, tmp_path: Path) -> None:
    rocketmq.make_topic("CaptureTopic")
    path = tmp_path / "send.pcap"
    try:
        capture = Capture(path, f"net {rocketmq.network}.0/24")
        with capture:
            printed = run_java("Send", rocketmq.namesrv_text, topic="CaptureTopic", count=3)
    except Unavailable as reason:
        skip_or_fail(str(reason))
    assert printed.count("SEND_OK") == 3
    data = path.read_bytes()
    assert data[:4] == bytes.fromhex("d4c3b2a1")
    assert data.count(b'"code":310') == 3


def test_slave_has_what_its_master_has() -> None:
    both = {"inSyncReplicas": 2, "totalReplicas": 2}
    specs = [BrokerSpec("broker-a", 0, "SYNC_MASTER", both), BrokerSpec("broker-a", 1, "SLAVE")]
    with _cluster(specs, namesrvs=2, network="127.77.2") as cluster:
        master, slave = cluster.brokers
        cluster.make_topic("ReplicaTopic")
        wait_until("replicated", lambda: send(master, "ReplicaTopic") == SUCCESS, 60.0, 0.5)
        sent = max_offset(master, "ReplicaTopic")
        wait_until("on the slave", lambda: max_offset(slave, "ReplicaTopic") == sent, 30.0)
        faults.kill(cluster.namesrvs[0])
        assert probe.has_route(cluster.namesrvs[1].address, "ReplicaTopic")
        faults.kill(slave)
        wait_until(
            "slave missed", lambda: send(master, "ReplicaTopic") == FLUSH_SLAVE_TIMEOUT, 60.0, 0.5
        )


def test_4x_server_serves_a_4x_client() -> None:
    with _cluster([BrokerSpec()], version=NEWEST_4_SERVER, network="127.77.3") as cluster:
        cluster.make_topic("FourTopic")
        printed = run_java(
            "Send", cluster.namesrv_text, version=NEWEST_4, topic="FourTopic", count=2
        )
        assert printed.count("SEND_OK") == 2


def test_nothing_outlives_a_killed_parent() -> None:
    _available()
    command = [sys.executable, "-m", "tests.cluster", "up"]
    parent = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=HERE.parents[1], start_new_session=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        assert any("Ctrl-C" in line for line in parent.stdout)
        children = _children_of(parent.pid)
        assert len(children) == 2
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    wait_until("servers ended", lambda: not any(_alive(pid) for pid in children), 15.0)


def test_stop_removes_processes_and_stores() -> None:
    with _cluster([BrokerSpec()], network="127.77.8") as cluster:
        folder = cluster.folder
        pids = [node.running().pid for node in (*cluster.namesrvs, *cluster.brokers)]
    assert folder is not None
    assert not folder.exists()
    assert not any(_alive(pid) for pid in pids)


@contextlib.contextmanager
def _cluster(specs: list[BrokerSpec], **options: object) -> Iterator[Cluster]:
    _available()
    with Cluster(specs, **options) as cluster:  # type: ignore[arg-type]
        yield cluster


def _available() -> None:
    require_jars((NEWEST_5,))


def _children_of(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

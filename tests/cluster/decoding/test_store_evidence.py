"""What a copied store and a capture say is what the broker itself says, for 4.9 and 5.x.

Oracle: `queryMsgByUniqueKey`, `printMsg`, and `statsAll` of mqadmin, and what a producer of
transactions decided. A proxy swallows responses, so that the capture leaves open what was stored.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dissectors.broker_store.commit_log import entries_of, log_files
from tests.cluster.clients.clients import run_java, run_mqadmin
from tests.cluster.fixtures import running, skip_or_fail
from tests.cluster.recording.capture import Capture
from tests.cluster.servers import probe
from tests.cluster.servers.artifacts import NEWEST_4_SERVER, NEWEST_5, Unavailable
from tests.cluster.servers.cluster import Broker, BrokerSpec, Cluster
from tests.cluster.servers.faults import Proxy
from tests.cluster.servers.processes import wait_until
from tests.rmqtool.command import rmqtool

pytestmark = pytest.mark.cluster

SEND_MESSAGE_V2 = 310
SETTINGS = {
    "transactionTimeOut": 3000,
    "transactionCheckInterval": 1000,
    "flushConsumerOffsetInterval": 500,
    "flushIntervalConsumeQueue": 200,
}
TOPIC, TX_TOPIC, GROUP = "StoreTopic", "TxTopic", "store_group"
PROXY, CLIENT = "127.0.0.77", "127.0.0.78"
TWICE, ONCE, LOST = (f"7F00004E000A000000000000000000{number:02d}" for number in (1, 2, 3))
"""a message whose response is swallowed and that is sent again; one whose first connection ends
before it is sent; one that is sent once, without a response"""


@dataclass
class Recording:
    """A capture, a copy of the store, and the cluster, which still runs."""

    cluster: Cluster
    capture: Path
    store: Path
    decided: str
    """what the producer of transactions printed"""

    def mqadmin(self, *words: str) -> str:
        return run_mqadmin(list(words), self.cluster.namesrv_text, self.cluster.version)


def send(address: tuple[str, int], topic: str, key: str, seconds: float = 20.0) -> bool:
    """Send a message of our own; return whether a response came."""
    fields = {"a": "raw_group", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0"}
    fields |= {"g": str(time.time_ns() // 1_000_000), "h": "0", "j": "0", "k": "false", "l": "0"}
    fields |= {"i": f"UNIQ_KEY\x01{key}\x02KEYS\x01{key[-2:]}\x02", "m": "false"}
    with socket.create_connection(address, seconds, (CLIENT, 0)) as connection:
        try:
            probe.ask_on(connection, SEND_MESSAGE_V2, fields, b"raw")
        except TimeoutError:
            return False
    return True


def traffic(cluster: Cluster, broker: Broker) -> str:
    """Make the traffic; return what the producer of transactions printed."""
    place = (PROXY, broker.port + 50)
    with Proxy(place, broker.address) as proxy:
        for number in range(4):
            assert send(place, TOPIC, f"7F00004E000A00000000000000000A{number:02d}")
        proxy.swallows = b"{"
        assert not send(place, TOPIC, TWICE, 1.0)
        assert send(place, TOPIC, TWICE)
        proxy.swallows = b"{"
        assert not send(place, TOPIC, LOST, 1.0)
        assert send(place, TOPIC, ONCE)
    namesrv = cluster.namesrv_text
    words = {"topic": TX_TOPIC, "group": "tx_group", "count": 8, "checks": 6}
    decided = run_java("TransactionSend", namesrv, timeout=120, wait_ms=90_000, **words)
    run_java("PushConsume", namesrv, topic=TOPIC, group=GROUP, count=8)
    return decided


@pytest.fixture(scope="module", params=[NEWEST_4_SERVER, NEWEST_5])
def recording(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recording]:
    folder = tmp_path_factory.mktemp("store")
    spec = BrokerSpec("broker-a", settings=SETTINGS)
    with running(Cluster([spec], version=request.param, network="127.77.188")) as cluster:
        (broker,) = cluster.brokers
        cluster.make_topic(TOPIC, queues=1)
        cluster.make_topic(TX_TOPIC, queues=2)
        capture = folder / "traffic.pcap"
        try:
            with Capture(
                capture, f"tcp and host ({CLIENT} or {broker.host}) and not host {probe.SOURCE}"
            ):
                decided = traffic(cluster, broker)
        except Unavailable as reason:
            skip_or_fail(str(reason))
        offsets = broker.folder / "store" / "config" / "consumerOffset.json"
        wait_until(
            "the broker writes the offsets",
            lambda: offsets.exists() and f"{TOPIC}@{GROUP}" in offsets.read_text(),
            30.0,
        )
        time.sleep(1.0)
        shutil.copytree(broker.folder / "store", folder / "store")
        yield Recording(cluster, capture, folder / "store", decided)


def rows(recording: Recording, where: str) -> list[dict[str, object]]:
    result = rmqtool("decode", "store", recording.store, "-Y", where, "-T", "jsonl")
    assert (result.status, result.err) == (0, "")
    return [json.loads(line) for line in result.out.splitlines()]


def test_messages_and_places_are_those_of_print_msg(recording: Recording) -> None:
    printed = recording.mqadmin("printMsg", "-t", TOPIC)
    theirs = re.findall(r"^MSGID: (\w+) .*?queueId=(\d+).*?queueOffset=(\d+)", printed, re.M)
    ours = rows(recording, f"topic = {TOPIC} and event = on_disk")
    assert sorted(theirs) == sorted(
        (str(row["unique_key"]), str(row["queue_id"]), str(row["queue_offset"])) for row in ours
    )
    assert len(theirs) == 8
    assert {row["remark"] for row in ours} == {"in its consume queue"}


@pytest.mark.parametrize(("key", "copies"), [(TWICE, 2), (ONCE, 1), (LOST, 1)])
def test_copies_are_those_of_a_query(recording: Recording, key: str, copies: int) -> None:
    found = recording.mqadmin("queryMsgByKey", "-t", TOPIC, "-k", key[-2:])
    offsets = re.findall(rf"^{key} +\d+ +(\d+)", found, re.M)
    ours = rows(recording, f"unique_key = {key}")
    assert sorted(offsets) == sorted(str(row["queue_offset"]) for row in ours)
    assert len(ours) == copies
    unique = recording.mqadmin("queryMsgByUniqueKey", "-i", key, "-t", TOPIC)
    (shown,) = {tuple(re.findall(rf"^{name}: +(\S+)", unique, re.M)) for name in ("Queue Offset",)}
    assert set(shown) <= {str(row["queue_offset"]) for row in ours}
    assert f"Store Host:          {ours[0]['server_address']}" in unique


def test_progress_is_that_of_stats_all(recording: Recording) -> None:
    stats = recording.mqadmin("statsAll", "-t", TOPIC)
    (accumulated,) = re.findall(rf"^{TOPIC} +{GROUP} +(\d+) ", stats, re.M)
    stored = rows(recording, f"topic = {TOPIC} and event = on_disk")
    (offset,) = rows(recording, f"covers = before and consumer_group = {GROUP}")
    assert len(stored) - int(str(offset["queue_offset"])) == int(accumulated)


def test_transactions_end_as_their_producer_decided(recording: Recording) -> None:
    # Of four messages the first and the third are committed, the others rolled back.
    committed = rows(recording, "event = committed")
    rolled_back = rows(recording, "event = rolled_back")
    assert sorted(str(row["keys"]) for row in committed) == ["key-0", "key-2", "key-4"]
    assert sorted(str(row["keys"]) for row in rolled_back)[:2] == ["key-1", "key-3"]
    visible = recording.mqadmin("printMsg", "-t", TX_TOPIC)
    seen = set(re.findall(r"^MSGID: (\w+) ", visible, re.M))
    assert {str(row["unique_key"]) for row in committed} == seen
    assert not {str(row["unique_key"]) for row in rolled_back} & seen


def test_a_diagnosis_is_certain(recording: Recording) -> None:
    words = ("diagnose", recording.capture, "--rule", "ambiguous-outcome", "-T", "jsonl", "-q")
    (before,) = [json.loads(line) for line in rmqtool(*words).out.splitlines()]
    assert "messages_maybe_stored_twice" in before["impact"]
    result = rmqtool(*words, "--store", recording.store)
    (after,) = [json.loads(line) for line in result.out.splitlines()]
    assert "more than once" in after["title"]
    assert after["confidence"] == "certain"
    assert f"consumed by {GROUP}" in json.dumps(after["details"])


def test_a_trace_tells_how_often_it_was_stored(recording: Recording) -> None:
    for key, words in ((TWICE, "twice"), (LOST, "once")):
        traced = rmqtool("trace", recording.capture, key, "--store", recording.store, "-q").out
        assert f"in the broker's store {words}" in " ".join(traced.split())
        assert f"consumed by {GROUP} according to the broker" in " ".join(traced.split())


def test_a_store_that_is_cut_anywhere_is_read(recording: Recording, tmp_path: Path) -> None:
    end = max(
        entry.message.physical_offset + entry.message.total_size
        for path in log_files(str(recording.store))
        for entry in entries_of(path)
        if entry.message
    )
    whole = len(rows(recording, "event = on_disk"))
    cut = tmp_path / "store"
    shutil.copytree(recording.store, cut)
    path = Path(log_files(str(cut))[0])
    data = path.read_bytes()[:end]
    counts = []
    for size in range(0, end, end // 40):
        path.write_bytes(data[:size])
        lines = rmqtool("decode", "store", cut, "-Y", "event = on_disk", "-T", "jsonl", "-q").out
        counts.append(len(lines.splitlines()))
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert counts[-1] <= whole


def test_the_way_out_of_a_rocksdb_store_leads_out(tmp_path: Path) -> None:
    settings = {"storeType": "defaultRocksDB", "flushConsumerOffsetInterval": 500}
    spec = BrokerSpec("broker-a", settings=settings)
    store = tmp_path / "store"
    with running(Cluster([spec], version=NEWEST_5, network="127.77.189")) as cluster:
        (broker,) = cluster.brokers
        cluster.make_topic(TOPIC, queues=1)
        run_java("Send", cluster.namesrv_text, topic=TOPIC, count=3)
        run_java("PushConsume", cluster.namesrv_text, topic=TOPIC, group=GROUP, count=3)
        time.sleep(2.0)
        broker.stop()
        shutil.copytree(broker.folder / "store", store)
    words = ("decode", "store", store, "-Y", f"topic = {TOPIC}", "-T", "jsonl")
    before = rmqtool(*words)
    rows = [json.loads(line) for line in before.out.splitlines()]
    assert [(row["event"], row["remark"]) for row in rows] == [("on_disk", None)] * 3
    way_out = re.search(r"Export it with mqadmin (.+), then remove (\w+)", before.err)
    assert way_out is not None
    run_mqadmin(way_out[1].split(), "", NEWEST_5)
    shutil.rmtree(store / "config" / way_out[2])
    after = rmqtool(*words)
    assert "config" not in after.err
    (offset,) = [
        row for line in after.out.splitlines() if (row := json.loads(line))["event"] != "on_disk"
    ]
    assert (offset["consumer_group"], offset["queue_offset"]) == (GROUP, 3)

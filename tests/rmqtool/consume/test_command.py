"""`rmqtool consume` and `topic` against the sandbox: what is read, and what is left behind."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from dissectors.remoting.codes import RequestCode
from replay import Message, Producer, ProducerConfig
from replay.cluster.route import ReadRoute
from replay.message import MessageQueue
from replay.sandbox import SandboxOptions, SandboxThread, TopicSpec, sandbox_thread
from replay.topic_reader import OffsetRange, TopicQueue, TopicReader
from tests.replay.sandbox.talk import Reply, Talk
from tests.rmqtool.command import PROGRAM, ROOT, Result, rmqtool
from tests.rmqtool.send.test_targets import cluster_at, own_address

TOPIC = "Orders"
BODIES = [f"message {number} ä消息" for number in range(100)]


@pytest.fixture(scope="module")
def box() -> Iterator[SandboxThread]:
    """Two brokers; a hundred messages on eight queues, every third with the tag `paid`."""
    topics = [TopicSpec(TOPIC, 4), TopicSpec("Empty", 1), TopicSpec("Later", 1)]
    with sandbox_thread(SandboxOptions(brokers=2, topics=topics)) as started:
        with Producer(ProducerConfig(group="g", namesrv=started.namesrv)) as producer:
            for number, body in enumerate(BODIES):
                tag = "paid" if number % 3 == 0 else "open"
                producer.send(Message(TOPIC, body.encode(), tag, f"order-{number} all"))
        yield started


def consume(box: SandboxThread, *arguments: str) -> Result:
    return rmqtool("consume", "-n", box.namesrv, "-t", TOPIC, *arguments)


def rows(result: Result) -> list[dict[str, object]]:
    assert result.status == 0, result
    return [json.loads(line) for line in result.out.splitlines()]


def test_every_message_is_read_once_in_the_order_of_its_queue(box: SandboxThread) -> None:
    found = rows(consume(box, "-T", "jsonl"))
    assert sorted(str(row["body"]) for row in found) == sorted(BODIES)
    places: dict[tuple[object, object], list[object]] = {}
    for row in found:
        places.setdefault((row["broker_name"], row["queue_id"]), []).append(row["queue_offset"])
    assert len(places) == 8
    assert all(offsets == list(range(len(offsets))) for offsets in places.values())
    assert {(row["event"], row["topic"]) for row in found} == {("delivered", TOPIC)}


def test_formats_say_the_same(box: SandboxThread) -> None:
    array = consume(box, "-T", "json")
    assert array.status == 0, array
    assert sorted(str(row["body"]) for row in json.loads(array.out)) == sorted(BODIES)
    assert sorted(consume(box, "-T", "body").out.splitlines()) == sorted(BODIES)
    table = consume(box)
    assert table.out.splitlines()[0].split() == [
        *("STORED", "BROKER", "QUEUE", "OFFSET", "TAGS", "KEYS", "BODY")
    ]
    assert len(table.out.splitlines()) == 101


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--tags", "paid"), BODIES[::3]),
        (("--tags", "open || paid"), BODIES),
        (("--tags", "none"), []),
        (("--key", "order-17"), BODIES[17:18]),
        (("--key", "order-1"), BODIES[1:2]),
        (("-Y", "tags == paid and keys ~ order-9"), [BODIES[9], BODIES[90], *BODIES[93:100:3]]),
    ],
)
def test_filters(box: SandboxThread, options: tuple[str, ...], expected: list[str]) -> None:
    found = consume(box, "-T", "body", *options)
    assert found.status == 0, found
    assert sorted(found.out.splitlines()) == sorted(expected)
    assert found.err == ("" if expected else "rmqtool: no messages\n")


def test_queues_offsets_and_limits(box: SandboxThread) -> None:
    one = rows(consume(box, "-T", "jsonl", "-b", "broker-a", "--queue", "2"))
    assert {(row["broker_name"], row["queue_id"]) for row in one} == {("broker-a", 2)}
    later = rows(consume(box, "-T", "jsonl", "-b", "broker-a", "--queue", "2", "--start", "3"))
    assert later == [{**row, "time": new["time"], "client_address": new["client_address"]}
                     for row, new in zip(one[3:], later, strict=True)]  # fmt: skip
    assert len(rows(consume(box, "-T", "jsonl", "-c", "7"))) == 7
    assert rows(consume(box, "-T", "jsonl", "-c", "0")) == []
    assert rows(consume(box, "-T", "jsonl", "--start", "end")) == []
    assert len(rows(consume(box, "-T", "jsonl", "--start", "2020-01-01"))) == 100
    middle = sorted(str(row["store_time"]) for row in rows(consume(box, "-T", "jsonl")))[60]
    found = rows(consume(box, "-T", "jsonl", "--start", middle[:23] + "Z"))
    assert 40 <= len(found) < 100
    assert all(str(row["store_time"]) >= middle[:23] for row in found)
    assert rows(consume(box, "-T", "jsonl", "--start", "2099-01-01")) == []


def test_write_queues_that_are_not_read_queues() -> None:
    topics = [TopicSpec(TOPIC, 4)]
    fewer = {"topic": TOPIC, "readQueueNums": "2", "writeQueueNums": "4", "perm": "6"}
    with sandbox_thread(SandboxOptions(topics=topics)) as box:
        broker = box.addresses["broker-a"]
        with Producer(ProducerConfig(group="g", namesrv=box.namesrv)) as producer:
            for number in range(4):
                queue = MessageQueue(TOPIC, "broker-a", number)
                producer.send(Message(TOPIC, str(number).encode()), queue=queue)
        assert ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, fewer).code == 0
        found = consume(box, "-T", "body")
        assert (found.status, sorted(found.out.split())) == (0, ["0", "1"])
        assert found.err == "rmqtool: 2 write queues of the topic cannot be read\n"
        chosen = consume(box, "-T", "body", "--queue", "3")
        assert (chosen.status, chosen.out) == (1, "")
        assert "queueId[3] is illegal" in chosen.err


def test_a_queue_whose_last_time_is_unknown_is_read_from_a_time(
    box: SandboxThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = TopicReader.offsets

    def unknown(self: TopicReader, topic: str, route: ReadRoute) -> dict[TopicQueue, OffsetRange]:
        offsets = known(self, topic, route)
        return {queue: of._replace(last_store_ms=0) for queue, of in offsets.items()}

    monkeypatch.setattr(TopicReader, "offsets", unknown)
    assert len(rows(consume(box, "-T", "jsonl", "--start", "2020-01-01"))) == 100
    assert rows(consume(box, "-T", "jsonl", "--start", "2099-01-01")) == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--start", "10:00"), "not a valid start: '10:00'"),
        (("--start", "soon"), "not a valid start"),
        (("-b", "broker-x"), "brokers: broker-a, broker-b"),
        (("--queue", "9"), "there is no queue 9"),
        (("-Y", "topik == A"), "did you mean topic"),
        (("-T", "csv"), "must be one of table, json, jsonl, body"),
    ],
)
def test_what_cannot_be_read_is_said(
    box: SandboxThread, options: tuple[str, ...], text: str
) -> None:
    found = consume(box, *options)
    assert (found.status, found.out) == (2, "")
    assert text in found.err


def test_unknown_topics_and_clusters() -> None:
    with sandbox_thread(SandboxOptions(auto_create=False)) as box:
        found = rmqtool("consume", "-n", box.namesrv, "-t", "Nope")
        assert found.status == 1
        assert "no NameServer has a route for topic Nope" in found.err
    found = rmqtool("topic", "-n", "127.0.0.1:1", "T", "--timeout", "1s")
    assert found.status == 1
    assert "127.0.0.1:1" in found.err
    assert rmqtool("consume", "-t", "T", NAMESRV_ADDR="").status == 2


@pytest.mark.parametrize("command", ["consume", "topic"])
def test_a_topic_is_an_argument_or_an_option(box: SandboxThread, command: str) -> None:
    cluster = (command, "-n", box.namesrv)
    expected = rmqtool(*cluster, TOPIC)
    assert expected.status == 0
    assert "broker-b" in expected.out
    for given in (("-t", TOPIC), (TOPIC, "--topic", TOPIC)):
        assert rmqtool(*cluster, *given).out == expected.out
    both = rmqtool(*cluster, TOPIC, "-t", "Other")
    assert both.status == 2
    assert f"two topics: {TOPIC} and Other; give one" in both.err
    none = rmqtool(*cluster)
    assert (none.status, none.out) == (2, "")
    assert "no topic given; add TOPIC or -t TOPIC" in none.err


def ask(address: str, code: int, fields: dict[str, str] | None = None) -> Reply:
    with Talk(address) as talk:
        return talk.ask(int(code), fields)


def state_of(box: SandboxThread) -> list[bytes]:
    """What the brokers have of groups and offsets."""
    codes = (RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, RequestCode.GET_ALL_CONSUMER_OFFSET)
    replies = [ask(address, code) for address in box.addresses.values() for code in codes]
    assert all(reply.code == 0 and reply.body for reply in replies)
    return [reply.body for reply in replies]


def test_nothing_is_left_behind(box: SandboxThread) -> None:
    before = state_of(box)
    assert len(rows(consume(box, "-T", "jsonl"))) == 100
    assert rmqtool("topic", "-n", box.namesrv, TOPIC).status == 0
    assert state_of(box) == before


def test_following_ends_with_ctrl_c(box: SandboxThread) -> None:
    command = [*PROGRAM, "consume", "-n", box.namesrv, "-t", "Later", "--follow", "-T", "body"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as running:
        assert running.stdout is not None
        with Producer(ProducerConfig(group="g", namesrv=box.namesrv)) as producer:
            for body in ("one", "two"):
                producer.send(Message("Later", body.encode()))
                assert running.stdout.readline() == f"{body}\n"
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
    assert (running.returncode, out, err) == (130, "", "")


def test_following_goes_on_after_a_restart_of_the_broker(tmp_path: Path) -> None:
    options = SandboxOptions(topics=[TopicSpec("Later", 1)], store=tmp_path / "sandbox.db")
    with ExitStack() as stack:
        with sandbox_thread(options) as box:
            ports = {"namesrv_port": int(box.namesrv.rpartition(":")[2])}
            ports["port"] = int(box.addresses["broker-a"].rpartition(":")[2])
            command = [*PROGRAM, "consume", "-n", box.namesrv, "-t", "Later", "--follow"]
            running = stack.enter_context(
                subprocess.Popen(
                    [*command, "-T", "body", "-c", "2"],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    cwd=ROOT,
                )
            )
            assert running.stdout is not None
            assert running.stderr is not None
            with Producer(ProducerConfig(group="g", namesrv=box.namesrv)) as producer:
                producer.send(Message("Later", b"one"))
            assert running.stdout.readline() == "one\n"
        warning = running.stderr.readline()
        with sandbox_thread(replace(options, **ports)) as box:
            with Producer(ProducerConfig(group="g", namesrv=box.namesrv)) as producer:
                producer.send(Message("Later", b"two"))
            out, err = running.communicate(timeout=30)
    assert (running.returncode, out, err) == (0, "two\n", "")
    assert warning.endswith("; trying broker-a again until Ctrl-C\n")


def test_a_reader_that_leaves_ends_it(box: SandboxThread) -> None:
    command = [*PROGRAM, "consume", "-n", box.namesrv, "-t", TOPIC, "-T", "body"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert b"Traceback" not in running.stderr.read()


@pytest.mark.parametrize("command", [["consume", "-t", TOPIC], ["topic", TOPIC]])
def test_a_broker_that_only_a_route_names_needs_consent(command: list[str]) -> None:
    own = own_address()
    with cluster_at(own) as (namesrv, broker, named):
        refused = rmqtool(*command, "-n", namesrv.address)
        assert refused.status == 1
        assert f"names {named}, which is neither loopback nor allowed" in refused.err
        assert broker.accepted == 0
        allowed = rmqtool(*command, "-n", namesrv.address, "--allow", own)
        assert allowed.status == 0, allowed.err
        assert broker.accepted == 1


# -- topic ----------------------------------------------------------------------------------------


def test_a_topic_as_json_and_as_a_table(box: SandboxThread) -> None:
    found = rmqtool("topic", "-n", box.namesrv, TOPIC, "-T", "json")
    assert found.status == 0, found
    value = json.loads(found.out)
    assert [one["broker_name"] for one in value["brokers"]] == ["broker-a", "broker-b"]
    assert sum(one["messages"] for one in value["queues"]) == 100
    assert {one["permission"] for one in value["brokers"]} == {"rw"}
    table = rmqtool("topic", "-n", box.namesrv, TOPIC)
    assert table.out.splitlines()[0] == "Orders: 100 messages in 8 queues on 2 brokers"
    assert "Consumer groups\nnone" in table.out


def test_the_lag_of_a_group(box: SandboxThread) -> None:
    fields = {"consumerGroup": "billing", "topic": TOPIC, "queueId": "1", "commitOffset": "4"}
    assert ask(box.addresses["broker-a"], RequestCode.UPDATE_CONSUMER_OFFSET, fields).code == 0
    with TopicReader(ProducerConfig(group="g", namesrv=box.namesrv)) as reader:
        route = reader.route(TOPIC)
        most = {queue: of.most for queue, of in reader.offsets(TOPIC, route).items()}
    found = json.loads(rmqtool("topic", "-n", box.namesrv, TOPIC, "-T", "json").out)
    (group,) = found["groups"]
    assert group["group"] == "billing"
    lag = {(one["broker_name"], one["queue_id"]): one["lag"] for one in group["queues"]}
    assert lag["broker-a", 1] == most["broker-a", 1] - 4  # type: ignore[index]
    assert group["lag"] == sum(lag.values())
    named = rmqtool("topic", "-n", box.namesrv, TOPIC, "--group", "billing", "-T", "json")
    assert json.loads(named.out)["groups"] == found["groups"]
    assert named.err == ""
    unknown = rmqtool("topic", "-n", box.namesrv, TOPIC, "--group", "biling")
    assert unknown.status == 0
    assert (
        unknown.err == f"rmqtool: --group: biling neither subscribes to {TOPIC} nor has read it\n"
    )


def test_a_limit_of_no_message_says_nothing(box: SandboxThread) -> None:
    assert consume(box, "--limit", "0").err == ""

"""What a broker of the sandbox answers, seen from a socket."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from dissectors.remoting.bodies.registry import decode_body
from dissectors.remoting.messages.batch import BatchItem, encode_batch
from dissectors.remoting.messages.properties import encode_properties
from replay.sandbox import SandboxOptions, SandboxThread, TopicSpec, sandbox_thread
from tests.dissectors.remoting.registrations import encode_registration
from tests.patience import wait_for

from .requests import TOPIC, messages_of, read
from .talk import Talk, heartbeat, pull_fields, send_fields, within

# -- sends ------------------------------------------------------------------------------------


def test_a_send_is_stored_as_a_pull_delivers_it(broker: Talk) -> None:
    fields = send_fields(TOPIC, 1, TAGS="TagA", KEYS="k1 k2", UNIQ_KEY="U1", WAIT="true", own="x")
    sent = broker.ask(310, {**fields, "h": "7", "f": "1"}, b"compressed by the client")
    assert sent.code == 0
    assert sent.fields["queueId"] == "1"
    assert sent.fields["queueOffset"] == "0"
    assert sent.fields["transactionId"] == "U1"
    message = read(broker, TOPIC, 1)[0]
    assert message.body == b"compressed by the client"
    assert message.crc_ok
    assert (message.flag, message.sys_flag) == (7, 1)
    assert message.keys == ("k1", "k2")
    assert message.properties["own"] == "x"
    assert message.properties["MSG_REGION"] == "DefaultRegion"
    assert message.offset_msg_id == sent.fields["msgId"]
    assert message.born_timestamp == int(fields["g"])
    assert message.born_host == "{}:{}".format(*broker.socket.getsockname())


def test_the_long_header_says_the_same(broker: Talk) -> None:
    fields = {
        "producerGroup": "producers",
        "topic": TOPIC,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "queueId": "0",
        "sysFlag": "0",
        "bornTimestamp": "1700000000000",
        "flag": "0",
        "properties": "TAGS\x01TagA",
    }
    assert broker.ask(10, fields, b"body").code == 0
    assert read(broker, TOPIC)[0].tags == "TagA"


def test_a_batch_is_stored_one_by_one(broker: Talk) -> None:
    items = [BatchItem(f"body {n}".encode(), {"UNIQ_KEY": f"U{n}"}, flag=n) for n in range(3)]
    sent = broker.ask(320, {**send_fields(TOPIC), "m": "true"}, encode_batch(items))
    assert sent.code == 0
    stored = read(broker, TOPIC)
    assert [message.body for message in stored] == [b"body 0", b"body 1", b"body 2"]
    assert [message.flag for message in stored] == [0, 1, 2]
    assert [message.unique_key for message in stored] == ["U0", "U1", "U2"]
    assert sent.fields["msgId"].split(",") == [message.offset_msg_id for message in stored]


@pytest.mark.parametrize(("version", "is_5"), [("4.9.7", False), ("5.5.0", True)])
def test_properties_are_counted_in_bytes_as_they_are_stored(version: str, is_5: bool) -> None:
    options = SandboxOptions(topics=[TopicSpec(TOPIC)], server_version=version)
    with sandbox_thread(options) as box, Talk(box.addresses["broker-a"]) as broker:

        def send(value: str, **half: str) -> int:
            fields = send_fields(TOPIC, UNIQ_KEY="U", own=value, **half)
            return broker.ask(310, fields, b"x").code

        assert send("x") == 0
        stored = encode_properties(read(broker, TOPIC)[0].properties, final_separator=is_5)
        room = 32_767 - len(stored) + 1
        assert [send("x" * size) for size in (room, room + 1)] == [0, 13]
        assert [send("ä" * (size // 2) + "x" * (size % 2)) for size in (room, room + 1)] == [0, 13]
        assert send("ä" * room, TRAN_MSG="true", PGROUP="producers") == 13


def test_a_oneway_send_is_stored_and_not_answered(broker: Talk) -> None:
    broker.send(310, send_fields(TOPIC), b"oneway", flag=2)
    reply = broker.ask(30, {"topic": TOPIC, "queueId": "0"})
    assert reply.fields["offset"] == "1"


def test_an_unknown_topic_is_made_by_a_send(broker: Talk, box: SandboxThread) -> None:
    assert broker.ask(310, send_fields("New"), b"x").code == 0
    with Talk(box.namesrv) as namesrv:
        route = json.loads(namesrv.ask(105, {"topic": "New"}).body)
    assert route["queueDatas"] == [
        {
            "brokerName": "broker-a",
            "perm": 6,
            "readQueueNums": 4,
            "topicSysFlag": 0,
            "writeQueueNums": 4,
        }
    ]


@pytest.mark.parametrize(
    ("fields", "body", "code", "remark"),
    [
        (send_fields("no spaces"), b"x", 29, "illegal characters"),
        (send_fields(TOPIC, 2), b"x", 29, "queueId[2] is illegal"),
        (send_fields("SCHEDULE_TOPIC_XXXX"), b"x", 16, "forbidden"),
        ({**send_fields("Other"), "c": "Nothing"}, b"x", 17, "not exist"),
        (send_fields(TOPIC), b"x" * (4 * 1024 * 1024 + 1), 13, "illegal"),
        (send_fields(TOPIC, own="x" * 32_768), b"x", 13, "illegal"),
        ({"b": TOPIC}, b"x", 1, "producerGroup"),
        ({**send_fields(TOPIC), "e": "one"}, b"x", 1, "not a number"),
        ({**send_fields(TOPIC), "e": str(1 << 40)}, b"x", 1, "not an int"),
    ],
)
def test_what_cannot_be_sent(
    broker: Talk, fields: dict[str, str], body: bytes, code: int, remark: str
) -> None:
    reply = broker.ask(310, fields, body)
    assert reply.code == code
    assert remark in reply.remark
    assert broker.ask(310, send_fields(TOPIC), b"x").code == 0  # the connection lives on


def test_topics_are_not_made_where_that_is_off() -> None:
    options = SandboxOptions(auto_create=False)
    with sandbox_thread(options) as box, Talk(box.addresses["broker-a"]) as broker:
        assert broker.ask(310, send_fields("New"), b"x").code == 17


def test_a_code_that_nobody_knows(broker: Talk) -> None:
    reply = broker.ask(9999)
    assert (reply.code, reply.remark) == (3, " request type 9999 not supported")


# -- pulls ------------------------------------------------------------------------------------


def test_offsets_beyond_the_ends(broker: Talk) -> None:
    assert broker.ask(11, pull_fields(TOPIC)).code == 19
    assert broker.ask(11, pull_fields(TOPIC, 0, 5)).code == 21
    broker.ask(310, send_fields(TOPIC), b"x")
    end = broker.ask(11, pull_fields(TOPIC, 0, 1))
    assert (end.code, end.fields["nextBeginOffset"], end.fields["maxOffset"]) == (19, "1", "1")
    beyond = broker.ask(11, pull_fields(TOPIC, 0, 9))
    assert (beyond.code, beyond.fields["nextBeginOffset"]) == (21, "1")
    assert broker.ask(11, pull_fields(TOPIC, 7)).code == 29
    assert broker.ask(11, pull_fields("Nothing")).code == 17


def test_a_held_pull_is_answered_by_the_message(box: SandboxThread, broker: Talk) -> None:
    broker.send(11, pull_fields(TOPIC, hold_ms=60_000))
    with Talk(box.addresses["broker-a"]) as producer, within(30):
        time.sleep(0.1)
        producer.ask(310, send_fields(TOPIC), b"now")
        assert messages_of(broker.receive())[0].body == b"now"


def test_a_held_pull_waits_for_its_tag_and_then_for_its_time(
    box: SandboxThread, broker: Talk
) -> None:
    begin = time.monotonic()
    broker.send(11, pull_fields(TOPIC, hold_ms=500, tags="TagB || TagC"))
    with Talk(box.addresses["broker-a"]) as producer:
        producer.ask(310, send_fields(TOPIC, TAGS="TagA"), b"other")
    reply = broker.receive()
    assert time.monotonic() - begin > 0.45
    assert (reply.code, reply.fields["nextBeginOffset"]) == (20, "1")


def test_a_pull_takes_only_its_tags(broker: Talk) -> None:
    for tag in ("TagA", "TagB", "TagA", "TagC"):
        broker.ask(310, send_fields(TOPIC, TAGS=tag), tag.encode())
    reply = broker.ask(11, pull_fields(TOPIC, tags="TagA || TagC"))
    assert [message.body for message in messages_of(reply)] == [b"TagA", b"TagA", b"TagC"]
    assert reply.fields["nextBeginOffset"] == "4"


def test_a_pull_is_bounded_in_bytes(broker: Talk) -> None:
    for _ in range(4):
        broker.ask(310, send_fields(TOPIC), b"x" * 100_000)
    assert len(messages_of(broker.ask(11, pull_fields(TOPIC)))) == 2


def test_sql_is_refused_in_words(broker: Talk) -> None:
    reply = broker.ask(11, {**pull_fields(TOPIC), "expressionType": "SQL92"})
    assert reply.code == 1
    assert "SQL92" in reply.remark


# -- replies, queries ---------------------------------------------------------------------------


def test_a_reply_is_pushed_to_who_waits_for_it(box: SandboxThread, broker: Talk) -> None:
    broker.ask(34, body=heartbeat("asker", producers=("producers",)))
    topic = "SandboxCluster_REPLY_TOPIC"
    fields = send_fields(topic, MSG_TYPE="reply", CORRELATION_ID="c", REPLY_TO_CLIENT="asker")
    with Talk(box.addresses["broker-a"]) as replier:
        replier.send(325, fields, b"the answer")
        push = broker.receive()
        assert (push.code, push.flag, push.body) == (326, 0, b"the answer")
        assert "CORRELATION_ID\x01c" in push.fields["properties"]
        assert "PUSH_REPLY_TIME" in push.fields["properties"]
        broker.send(0, flag=1, opaque=push.opaque)
        assert replier.receive().code == 0
        nobody = send_fields(topic, MSG_TYPE="reply", REPLY_TO_CLIENT="nobody")
        assert replier.ask(325, nobody, b"lost").code == 1


def test_messages_are_found_by_id_and_key(broker: Talk) -> None:
    ids = [
        broker.ask(310, send_fields(TOPIC, KEYS=f"same k{n}", UNIQ_KEY=f"U{n}"), b"%d" % n)
        for n in range(3)
    ]
    offset = int(ids[1].fields["msgId"][16:], 16)
    assert messages_of(broker.ask(33, {"offset": str(offset)}))[0].body == b"1"
    assert broker.ask(33, {"offset": "1"}).code == 1
    query = {
        "topic": TOPIC,
        "maxNum": "32",
        "beginTimestamp": "0",
        "endTimestamp": str(1 << 62),
    }
    found = broker.ask(12, {**query, "key": "same"})
    assert [message.body for message in messages_of(found)] == [b"0", b"1", b"2"]
    by_id = broker.ask(12, {**query, "key": "U2", "_UNIQUE_KEY_QUERY": "true"})
    assert [message.body for message in messages_of(by_id)] == [b"2"]
    assert broker.ask(12, {**query, "key": "k0", "endTimestamp": "5"}).code == 22


def test_a_broker_limits_the_messages_of_a_key(broker: Talk) -> None:
    for _ in range(70):
        broker.ask(310, send_fields(TOPIC, KEYS="many", UNIQ_KEY="U"), b"x")
    query = {"topic": TOPIC, "beginTimestamp": "0", "endTimestamp": str(1 << 62)}
    by_key = broker.ask(12, {**query, "key": "many", "maxNum": "100"})
    assert len(messages_of(by_key)) == 64  # maxMsgsNumBatch
    for limit in ("1", "100"):  # defaultQueryMaxNum, whatever the client asks for
        by_id = {**query, "key": "U", "maxNum": limit, "_UNIQUE_KEY_QUERY": "true"}
        assert len(messages_of(broker.ask(12, by_id))) == 32


# -- administration -----------------------------------------------------------------------------


def topic_fields(topic: str, queues: int = 3) -> dict[str, str]:
    return {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(queues),
        "writeQueueNums": str(queues),
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }


def test_topics_are_made_changed_and_removed(box: SandboxThread, broker: Talk) -> None:
    assert broker.ask(17, topic_fields("Made")).code == 0
    assert broker.ask(17, topic_fields("bad name")).code == 29
    assert broker.ask(17, topic_fields("TBW102")).code == 29
    with Talk(box.namesrv) as namesrv:
        assert namesrv.ask(105, {"topic": "Made"}).code == 0
        broker.ask(310, send_fields("Made"), b"x")
        assert broker.ask(215, {"topic": "Made"}).code == 0
        assert namesrv.ask(105, {"topic": "Made"}).code == 17
    assert broker.ask(17, topic_fields("Made")).code == 0
    assert broker.ask(30, {"topic": "Made", "queueId": "0"}).fields["offset"] == "0"


def test_a_read_only_broker_says_so(box: SandboxThread, broker: Talk) -> None:
    assert broker.ask(17, {**topic_fields("Ordered"), "order": "true"}).code == 0
    assert broker.ask(25, body=b"brokerPermission=4\n").code == 0
    # As a real one it only refuses sends to ordered topics; producers heed the route.
    assert broker.ask(310, send_fields("Ordered"), b"x").code == 16
    assert broker.ask(310, send_fields(TOPIC), b"x").code == 0
    with Talk(box.namesrv) as namesrv:
        route = json.loads(namesrv.ask(105, {"topic": TOPIC}).body)
    assert route["queueDatas"][0]["perm"] == 4


def test_old_clients_get_routes_with_bare_keys(box: SandboxThread) -> None:
    with Talk(box.namesrv) as namesrv:
        assert b'"brokerAddrs":{0:"' in namesrv.ask(105, {"topic": TOPIC}, version=399).body
        assert b'"brokerAddrs":{"0":"' in namesrv.ask(105, {"topic": TOPIC}, version=479).body


@pytest.mark.parametrize(("version", "is_5"), [("4.9.7", False), ("5.3.3", True)])
def test_members_that_came_with_5_are_in_bodies_of_5_alone(version: str, is_5: bool) -> None:
    """A strict client of 4.9 reads no route with a member that it does not know."""
    options = SandboxOptions(topics=[TopicSpec(TOPIC)], server_version=version)
    with (
        sandbox_thread(options) as box,
        Talk(box.namesrv) as namesrv,
        Talk(box.addresses["broker-a"]) as broker,
    ):
        broker.ask(34, body=heartbeat("one", consumers={"g": TOPIC}))
        broker.receive()
        found = {
            "enableActingMaster": namesrv.ask(105, {"topic": TOPIC}).body,
            "enableActingMaster ": namesrv.ask(106).body,
            "attributes": broker.ask(21).body,
            "stateVersion": broker.ask(21).body,
            "groupRetryPolicy": broker.ask(201).body,
            "topicPutTps": broker.ask(202, {"topic": TOPIC}).body,
            "pullOffset": broker.ask(208, {"consumerGroup": "g", "topic": TOPIC}).body,
        }
    assert {name for name, body in found.items() if name.strip().encode() in body} == (
        set(found) if is_5 else set()
    )


def test_entries_of_a_queue(broker: Talk) -> None:
    broker.ask(310, send_fields(TOPIC, TAGS="TagA"), b"x")
    broker.ask(310, send_fields(TOPIC), b"y")
    fields = {"topic": TOPIC, "queueId": "0", "index": "0", "count": "1"}
    value = json.loads(broker.ask(321, fields).body)
    (first,) = value.pop("queueData")
    assert value == {"maxQueueIndex": 2, "minQueueIndex": 0}
    assert (first["physicOffset"], first["tagsCode"]) == (0, 2598919)
    all_of_it = json.loads(broker.ask(321, {**fields, "count": "9999999999"}).body)
    assert len(all_of_it["queueData"]) == 2
    assert broker.ask(321, {**fields, "count": "-1"}).code == 0
    beyond = broker.ask(321, {**fields, "index": "2"})
    assert (beyond.code, beyond.remark) == (0, f"Index 2 of 0@{TOPIC} is not exist!")
    assert broker.ask(321, {**fields, "topic": "Nope"}).remark == "0@Nope is not exist!"


def progress(broker: Talk, ordered: str) -> dict[str, Any]:
    body = decode_body(317, True, 0, broker.ask(317, {"isOrder": ordered}).body, {})
    assert isinstance(body.value, dict)
    return body.value


def test_progress_of_all_groups(broker: Talk) -> None:
    for queue_id in (0, 1):
        broker.ask(310, send_fields(TOPIC, queue_id), b"x")
    broker.ask(15, {"consumerGroup": "g", "topic": TOPIC, "queueId": "0", "commitOffset": "1"})
    body = progress(broker, "false")
    assert body["totalDiff"] == 1
    groups = {name: stats for item in body["consumeStatsList"] for name, stats in item.items()}
    assert [row["value"]["consumerOffset"] for row in groups["g"][0]["offsetTable"]] == [1, 0]
    assert progress(broker, "true")["totalDiff"] == 0


def test_what_a_sandbox_has_no_part_for_is_refused_as_by_a_broker(broker: Talk) -> None:
    assert json.loads(broker.ask(907).body)["master"] is True
    assert json.loads(broker.ask(2003).body)["globalAcc"] == 0
    assert broker.ask(1007).remark == "this request only for controllerMode "
    for code in (3005, 3010):
        assert broker.ask(code).code == 1
    assert broker.ask(344).code == 3  # no release has this code


def test_settings_of_a_namesrv_change_where_they_are_known(box: SandboxThread) -> None:
    with Talk(box.namesrv) as namesrv:
        assert namesrv.ask(318, body=b"orderMessageEnable=true\nunknown=1\n").code == 0
        settings = namesrv.ask(319).body.decode()
        assert "orderMessageEnable=true\n" in settings
        assert "unknown" not in settings
        assert namesrv.ask(318, body=b"kvConfigPath=/elsewhere\n").code == 16


def test_a_response_over_the_limit_of_a_frame_is_an_error_response(box: SandboxThread) -> None:
    with Talk(box.namesrv) as namesrv:
        for number in range(300):
            pair = {"namespace": "n", "key": str(number), "value": "v" * 60_000}
            assert namesrv.ask(100, pair).code == 0
        reply = namesrv.ask(219, {"namespace": "n"})
        assert (reply.code, reply.body) == (1, b"")
        assert "frame" in reply.remark
        assert namesrv.ask(106).code == 0


def test_a_reset_group_learns_it_from_its_next_pull(broker: Talk) -> None:
    for _ in range(3):
        broker.ask(310, send_fields(TOPIC), b"x")
    reset = {"topic": TOPIC, "group": "consumers", "timestamp": "-1", "isForce": "true"}
    assert broker.ask(222, reset).code == 0
    first = broker.ask(11, pull_fields(TOPIC))
    assert (first.code, first.fields["nextBeginOffset"]) == (21, "3")
    assert broker.ask(11, pull_fields(TOPIC)).code == 0


def test_the_vip_channel_is_two_ports_below() -> None:
    options = SandboxOptions(brokers=2, vip=True, topics=[TopicSpec(TOPIC)])
    with sandbox_thread(options) as box:
        for address in box.addresses.values():
            host, _, port = address.rpartition(":")
            with Talk(f"{host}:{int(port) - 2}") as channel, Talk(address) as main:
                assert channel.ask(310, send_fields(TOPIC), b"x").code == 0
                assert main.ask(30, {"topic": TOPIC, "queueId": "0"}).fields["offset"] == "1"


@pytest.mark.parametrize("compressed", [False, True])
def test_a_broker_of_another_process_registers(box: SandboxThread, compressed: bool) -> None:
    topic = {"topicName": "Theirs", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6}
    wrapper = {
        "dataVersion": {"counter": 1, "stateVersion": 0, "timestamp": 1},
        "topicConfigTable": {"Theirs": {**topic, "topicFilterType": "SINGLE_TAG"}},
    }
    value = {"filterServerList": [], "topicConfigSerializeWrapper": wrapper}
    fields = {
        "brokerName": "theirs",
        "brokerAddr": "10.0.0.9:10911",
        "clusterName": "TheirCluster",
        "haServerAddr": "10.0.0.9:10912",
        "brokerId": "0",
        "compressed": "false",
        "bodyCrc32": "0",
    }
    with Talk(box.namesrv) as asks:
        with Talk(box.namesrv) as theirs:
            body = encode_registration(value, compressed=compressed)
            assert theirs.ask(103, fields, body).code == 0
            assert theirs.ask(103, {**fields, "brokerName": "broker-a"}, body).code == 1
            assert theirs.ask(103, fields, b"unreadable").code == 1  # and changes nothing
            route = json.loads(asks.ask(105, {"topic": "Theirs"}).body)
            assert route["brokerDatas"][0]["brokerAddrs"] == {"0": "10.0.0.9:10911"}
            assert b'"theirs"' in asks.ask(106).body
        # its connection has ended, so it has gone
        wait_for("it is gone", lambda: asks.ask(105, {"topic": "Theirs"}).code == 17)


def test_values_of_the_nameserver(box: SandboxThread) -> None:
    with Talk(box.namesrv) as namesrv:
        key = {"namespace": "ORDER_TOPIC_CONFIG", "key": TOPIC}
        assert namesrv.ask(101, key).code == 22
        assert namesrv.ask(100, {**key, "value": "broker-a:2"}).code == 0
        assert namesrv.ask(101, key).fields == {"value": "broker-a:2"}
        table = json.loads(namesrv.ask(219, {"namespace": "ORDER_TOPIC_CONFIG"}).body)
        assert table == {"table": {TOPIC: "broker-a:2"}}
        assert namesrv.ask(102, key).code == 0
        assert namesrv.ask(101, key).code == 22


def test_a_client_that_gets_no_push_fails_its_replier(box: SandboxThread, broker: Talk) -> None:
    asker = Talk(box.addresses["broker-a"])
    asker.ask(34, body=heartbeat("asker", producers=("producers",)))
    topic = "SandboxCluster_REPLY_TOPIC"
    broker.send(325, send_fields(topic, MSG_TYPE="reply", REPLY_TO_CLIENT="asker"), b"x")
    assert asker.receive().code == 326
    asker.close()  # without a word
    assert broker.receive().code == 1

"""Requests that a broker and the sandbox must answer alike, one after the other."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from dissectors.remoting.messages.batch import BatchItem, encode_batch
from tests.replay.sandbox.talk import heartbeat, pull_fields, send_fields

TOPIC = "Alike"
Asked = tuple[str, int, dict[str, str], bytes]
"""a request: its name here, its code, fields and body"""


def _now() -> str:
    """Return the time as clients write it, in ms."""
    return str(int(time.time() * 1000))


def topic(name: str, queues: int = 2, perm: int = 6) -> dict[str, str]:
    """Return the fields of a request that makes a topic."""
    return {
        "topic": name,
        "defaultTopic": "TBW102",
        "readQueueNums": str(queues),
        "writeQueueNums": str(queues),
        "perm": str(perm),
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }


def _topic_steps() -> Iterator[Asked]:
    """Return requests that make topics."""
    yield "topic", 17, topic(TOPIC), b""
    yield "topic bad", 17, topic("bad name"), b""
    yield "topic system", 17, topic("TBW102"), b""
    yield "topic readonly", 17, topic("RO", 2, 4), b""
    yield "topic writeonly", 17, topic("WO", 2, 2), b""


def _send_steps() -> Iterator[Asked]:
    """Return sends that are stored, alone and in a batch."""
    yield (
        "send",
        310,
        send_fields(
            TOPIC,
            0,
            TAGS="TagA",
            KEYS="k1",
            UNIQ_KEY="7F0000013AFDE5F22B4368247EA500C5",
            WAIT="true",
        ),
        b"one",
    )
    yield (
        "send v1",
        10,
        {
            "producerGroup": "p",
            "topic": TOPIC,
            "defaultTopic": "TBW102",
            "defaultTopicQueueNums": "4",
            "queueId": "0",
            "sysFlag": "0",
            "bornTimestamp": _now(),
            "flag": "0",
            "properties": "TAGS\x01TagB",
        },
        b"two",
    )
    yield (
        "batch",
        320,
        {**send_fields(TOPIC, 1), "m": "true"},
        encode_batch(
            [
                BatchItem(b"b0", {"UNIQ_KEY": "7F0000013AFDE5F22B4368247EA500C6"}),
                BatchItem(b"b1", {"UNIQ_KEY": "7F0000013AFDE5F22B4368247EA500C7"}),
            ]
        ),
    )


def _refused_send_steps() -> Iterator[Asked]:
    """Return sends that are refused."""
    yield "send bad queue", 310, send_fields(TOPIC, 9), b"x"
    yield "send bad name", 310, send_fields("bad name"), b"x"
    yield "send no topic", 310, {**send_fields("Unk"), "c": "Nothing"}, b"x"
    yield "send readonly", 310, send_fields("RO"), b"x"
    yield "send forbidden", 310, send_fields("SCHEDULE_TOPIC_XXXX"), b"x"
    yield "send long props", 310, send_fields(TOPIC, own="x" * 33000), b"x"
    yield "send long body", 310, send_fields(TOPIC), b"x" * (4 * 1024 * 1024 + 1)


def _special_send_steps() -> Iterator[Asked]:
    """Return sends with a meaning of their own: delays, timers, half messages, replies."""
    yield "send empty body", 310, send_fields(TOPIC), b""
    yield "send delay", 310, send_fields(TOPIC, 0, DELAY="3"), b"x"
    yield (
        "send timer",
        310,
        send_fields(TOPIC, 0, TIMER_DELAY_SEC="3000", UNIQ_KEY="7F0000013AFDE5F22B4368247EA500C8"),
        b"x",
    )
    yield "send timer far", 310, send_fields(TOPIC, 0, TIMER_DELAY_SEC="3000000"), b"x"
    yield (
        "send half",
        310,
        {
            **send_fields(
                TOPIC, 0, TRAN_MSG="true", PGROUP="p", UNIQ_KEY="7F0000013AFDE5F22B4368247EA500C9"
            ),
            "f": "4",
        },
        b"x",
    )
    yield "send header missing", 310, {"b": TOPIC}, b"x"
    yield (
        "send batch retry",
        320,
        {**send_fields("%RETRY%g"), "m": "true"},
        encode_batch([BatchItem(b"b0")]),
    )
    yield (
        "reply nobody",
        325,
        send_fields(TOPIC, 0, MSG_TYPE="reply", REPLY_TO_CLIENT="nobody", CORRELATION_ID="c"),
        b"x",
    )


def _heartbeat_steps() -> Iterator[Asked]:
    """Return the heartbeats of a producer and two groups, a second apart."""
    body = heartbeat("c1", producers=("p",), consumers={"consumers": TOPIC, "g": TOPIC})
    yield "heartbeat", 34, {}, body
    time.sleep(1)
    yield "heartbeat again", 34, {}, body


def _pull_steps() -> Iterator[Asked]:
    """Return pulls: of messages, of none, without right or subscription."""
    yield "pull", 11, pull_fields(TOPIC), b""
    yield "pull batch", 11, pull_fields(TOPIC, 1), b""
    yield "pull tag", 11, pull_fields(TOPIC, tags="TagB"), b""
    yield "pull tag none", 11, pull_fields(TOPIC, 0, tags="TagZ"), b""
    yield "pull end", 11, pull_fields(TOPIC, 1, 3), b""
    yield "pull beyond", 11, pull_fields(TOPIC, 1, 99), b""
    yield "pull bad queue", 11, pull_fields(TOPIC, 9), b""
    yield "pull neg queue", 11, pull_fields(TOPIC, -1), b""
    yield "pull empty0", 11, pull_fields("RO", 0, 0), b""
    yield "pull empty5", 11, pull_fields("RO", 0, 5), b""
    yield "pull no topic", 11, pull_fields("Nope"), b""
    yield "pull writeonly", 11, pull_fields("WO"), b""
    yield (
        "pull sql",
        11,
        {**pull_fields(TOPIC), "expressionType": "SQL92", "subscription": "a > 1"},
        b"",
    )
    yield (
        "pull no sub",
        11,
        {**pull_fields(TOPIC), "sysFlag": "0", "consumerGroup": "stranger"},
        b"",
    )
    yield "pull other topic sub", 11, {**pull_fields("RO"), "sysFlag": "0"}, b""
    yield (
        "pull newer sub",
        11,
        {**pull_fields(TOPIC), "sysFlag": "0", "subVersion": str(1 << 60)},
        b"",
    )


def _offset_steps() -> Iterator[Asked]:
    """Return questions about offsets of groups and queues."""
    yield "14 none", 14, {"consumerGroup": "cg", "topic": "RO", "queueId": "0"}, b""
    yield "14 zero", 14, {"consumerGroup": "cg", "topic": TOPIC, "queueId": "0"}, b""
    yield (
        "14 zero off",
        14,
        {"consumerGroup": "cg", "topic": TOPIC, "queueId": "0", "setZeroIfNotFound": "false"},
        b"",
    )
    yield "15", 15, {"consumerGroup": "g", "topic": TOPIC, "queueId": "0", "commitOffset": "1"}, b""
    yield (
        "15 no topic",
        15,
        {"consumerGroup": "g", "topic": "Nope", "queueId": "0", "commitOffset": "1"},
        b"",
    )
    yield "14", 14, {"consumerGroup": "g", "topic": TOPIC, "queueId": "0"}, b""
    yield "29", 29, {"topic": TOPIC, "queueId": "0", "timestamp": "0"}, b""
    yield (
        "29 late",
        29,
        {"topic": TOPIC, "queueId": "0", "timestamp": str(int(_now()) + 10**9)},
        b"",
    )
    yield "29 empty", 29, {"topic": "RO", "queueId": "0", "timestamp": "0"}, b""
    yield "30", 30, {"topic": TOPIC, "queueId": "1"}, b""
    yield "30 nope", 30, {"topic": "Nope", "queueId": "1"}, b""
    yield "31", 31, {"topic": TOPIC, "queueId": "1"}, b""
    yield "31 nope", 31, {"topic": "Nope", "queueId": "1"}, b""
    yield "32", 32, {"topic": TOPIC, "queueId": "1"}, b""
    yield "32 empty", 32, {"topic": "RO", "queueId": "0"}, b""


def _stored_message_steps() -> Iterator[Asked]:
    """Return requests about single stored messages."""
    yield "33", 33, {"offset": "0"}, b""
    yield "33 bad", 33, {"offset": "99999999"}, b""
    times = {"beginTimestamp": "0", "endTimestamp": str(1 << 62)}
    yield "12", 12, {"topic": TOPIC, "key": "k1", "maxNum": "32", **times}, b""
    yield "12 none", 12, {"topic": TOPIC, "key": "zz", "maxNum": "32", **times}, b""
    yield "36 no group", 36, {"offset": "0", "group": "never", "delayLevel": "0"}, b""
    yield "36", 36, {"offset": "0", "group": "g", "delayLevel": "0", "originTopic": TOPIC}, b""
    yield "36 bad offset", 36, {"offset": "99999999", "group": "g", "delayLevel": "0"}, b""
    yield (
        "37 bad",
        37,
        {
            "producerGroup": "p",
            "tranStateTableOffset": "0",
            "commitLogOffset": "0",
            "commitOrRollback": "8",
            "msgId": "x",
        },
        b"",
    )


def _group_steps() -> Iterator[Asked]:
    """Return questions about groups, and their locks of queues."""
    yield "38", 38, {"consumerGroup": "g"}, b""
    yield "38 none", 38, {"consumerGroup": "never"}, b""
    queue = {"topic": TOPIC, "brokerName": "broker-a", "queueId": 0}
    held = json.dumps({"consumerGroup": "g", "clientId": "c1", "mqSet": [queue]}).encode()
    yield "41", 41, {}, held
    yield "42", 42, {}, held


def _admin_steps() -> Iterator[Asked]:
    """Return what operators ask a broker, and a code that is none."""
    yield "21", 21, {}, b""
    yield "26", 26, {}, b""
    yield "28", 28, {}, b""
    yield "201", 201, {}, b""
    yield "202", 202, {"topic": TOPIC}, b""
    yield "202 nope", 202, {"topic": "Nope"}, b""
    yield "203", 203, {"consumerGroup": "g"}, b""
    yield "203 none", 203, {"consumerGroup": "never"}, b""
    yield "204", 204, {"producerGroup": "p"}, b""
    yield "204 none", 204, {"producerGroup": "never"}, b""
    yield "208", 208, {"consumerGroup": "g", "topic": TOPIC}, b""
    yield "208 all", 208, {"consumerGroup": "g"}, b""
    yield "208 never", 208, {"consumerGroup": "never"}, b""
    yield "222", 222, {"topic": TOPIC, "group": "g", "timestamp": "-1", "isForce": "true"}, b""
    yield "300", 300, {"topic": TOPIC}, b""
    yield "343", 343, {"group": "g"}, b""
    yield "345", 345, {"group": "g", "topic": TOPIC}, b""
    yield "305", 305, {}, b""
    yield "351", 351, {"topic": TOPIC}, b""
    yield "351 nope", 351, {"topic": "Nope"}, b""
    yield "352", 352, {"group": "g"}, b""
    yield "370 bad", 370, {"producerGroup": "p", "topic": TOPIC, "recallHandle": "xx"}, b""
    yield "215", 215, {"topic": "RO"}, b""
    yield "35", 35, {"clientID": "c1", "consumerGroup": "g"}, b""
    yield "unknown", 9999, {}, b""


def _figures_steps() -> Iterator[Asked]:
    """Return what mqadmin and dashboards ask for: progress, queues, replication, users."""
    yield "317", 317, {"isOrder": "false"}, b""
    yield "317 order", 317, {"isOrder": "true"}, b""
    yield "303", 303, {"topic": TOPIC, "group": "g"}, b""
    entries = {"topic": TOPIC, "queueId": "0", "index": "0", "count": "10"}
    yield "321", 321, entries, b""
    yield "321 group", 321, {**entries, "consumerGroup": "consumers"}, b""
    yield "321 stranger", 321, {**entries, "consumerGroup": "nobody"}, b""
    yield "321 beyond", 321, {**entries, "index": "999"}, b""
    yield "321 bad queue", 321, {**entries, "queueId": "9"}, b""
    yield "321 nope", 321, {**entries, "topic": "Nope"}, b""
    for code in (45, 344, 402, 907, 1007, 2003, 3005, 3010):
        yield str(code), code, {}, b""


def _pop(topic: str, queue: int, most: int) -> dict[str, str]:
    """Return the fields of a POP request."""
    return {
        "consumerGroup": "pg",
        "topic": topic,
        "queueId": str(queue),
        "maxMsgNums": str(most),
        "invisibleTime": "60000",
        "pollTime": "0",
        "bornTime": _now(),
        "initMode": "0",
    }


def _acknowledgement(topic: str, queue: int, offset: int) -> dict[str, str]:
    """Return the fields of an acknowledgement; its receipt is one that the broker never gave."""
    return {
        "consumerGroup": "pg",
        "topic": topic,
        "queueId": str(queue),
        "extraInfo": f"0 1 2 0 0 broker-a {queue} {offset}",
        "offset": str(offset),
    }


def _pop_steps() -> Iterator[Asked]:
    """Return requests of POP consumers."""
    yield "pop", 200050, {**_pop(TOPIC, 0, 2), "expType": "TAG", "exp": "*"}, b""
    yield "pop many", 200050, _pop(TOPIC, -1, 33), b""
    yield "pop nope", 200050, _pop("Nope", -1, 2), b""
    yield "ack bad", 200051, _acknowledgement("Nope", 0, 0), b""
    yield "ack out", 200051, _acknowledgement(TOPIC, 0, 999), b""
    yield "ack queue", 200051, _acknowledgement(TOPIC, 9, 0), b""
    assignment = {
        "topic": TOPIC,
        "consumerGroup": "consumers",
        "clientId": "c1",
        "strategyName": "AVG",
        "messageModel": "CLUSTERING",
    }
    yield "400", 400, {}, json.dumps(assignment).encode()
    yield "55 polling", 200055, {"consumerGroup": "pg", "topic": TOPIC, "queueId": "-1"}, b""


def broker_steps() -> Iterator[Asked]:
    """Return the requests to a broker; those behind rest on what came before."""
    yield from _topic_steps()
    yield from _send_steps()
    yield from _refused_send_steps()
    yield from _special_send_steps()
    yield from _heartbeat_steps()
    yield from _pull_steps()
    yield from _offset_steps()
    yield from _stored_message_steps()
    yield from _group_steps()
    yield from _admin_steps()
    yield from _figures_steps()
    yield from _pop_steps()


def namesrv_steps() -> Iterator[Asked]:
    """Return the requests to a NameServer."""
    yield "105", 105, {"topic": TOPIC}, b""
    yield "105 nope", 105, {"topic": "Nope"}, b""
    yield "106", 106, {}, b""
    yield "206", 206, {}, b""
    yield "224", 224, {"cluster": "SampleCluster"}, b""
    yield "304", 304, {}, b""
    yield "101", 101, {"namespace": "n", "key": "k"}, b""
    yield "219", 219, {"namespace": "n"}, b""
    yield "318", 318, {}, b"orderMessageEnable=true\nunknown=1\n"
    yield "318 fixed", 318, {}, b"kvConfigPath=/elsewhere\n"
    yield "319", 319, {}, b""
    yield "311", 311, {}, b""

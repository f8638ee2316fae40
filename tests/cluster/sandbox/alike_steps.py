"""Requests that a broker and the sandbox must answer alike, one after the other."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from dissectors.remoting.messages.batch import BatchItem, encode_batch
from tests.replay.sandbox.talk import heartbeat, pull_fields, send_fields

TOPIC = "Alike"
Step = tuple[str, int, dict[str, str], bytes]


def topic(name: str, queues: int = 2, perm: int = 6) -> dict[str, str]:
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


def broker_steps() -> Iterator[Step]:
    now = str(int(time.time() * 1000))
    yield "topic", 17, topic(TOPIC), b""
    yield "topic bad", 17, topic("bad name"), b""
    yield "topic system", 17, topic("TBW102"), b""
    yield "topic readonly", 17, topic("RO", 2, 4), b""
    yield "topic writeonly", 17, topic("WO", 2, 2), b""
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
            "bornTimestamp": now,
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
    yield "send bad queue", 310, send_fields(TOPIC, 9), b"x"
    yield "send bad name", 310, send_fields("bad name"), b"x"
    yield "send no topic", 310, {**send_fields("Unk"), "c": "Nothing"}, b"x"
    yield "send readonly", 310, send_fields("RO"), b"x"
    yield "send forbidden", 310, send_fields("SCHEDULE_TOPIC_XXXX"), b"x"
    yield "send long props", 310, send_fields(TOPIC, own="x" * 33000), b"x"
    yield "send long body", 310, send_fields(TOPIC), b"x" * (4 * 1024 * 1024 + 1)
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
    yield (
        "heartbeat",
        34,
        {},
        heartbeat("c1", producers=("p",), consumers={"consumers": TOPIC, "g": TOPIC}),
    )
    time.sleep(1)
    yield (
        "heartbeat again",
        34,
        {},
        heartbeat("c1", producers=("p",), consumers={"consumers": TOPIC, "g": TOPIC}),
    )
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
    yield "29 late", 29, {"topic": TOPIC, "queueId": "0", "timestamp": str(int(now) + 10**9)}, b""
    yield "29 empty", 29, {"topic": "RO", "queueId": "0", "timestamp": "0"}, b""
    yield "30", 30, {"topic": TOPIC, "queueId": "1"}, b""
    yield "30 nope", 30, {"topic": "Nope", "queueId": "1"}, b""
    yield "31", 31, {"topic": TOPIC, "queueId": "1"}, b""
    yield "31 nope", 31, {"topic": "Nope", "queueId": "1"}, b""
    yield "32", 32, {"topic": TOPIC, "queueId": "1"}, b""
    yield "32 empty", 32, {"topic": "RO", "queueId": "0"}, b""
    yield "33", 33, {"offset": "0"}, b""
    yield "33 bad", 33, {"offset": "99999999"}, b""
    yield (
        "12",
        12,
        {
            "topic": TOPIC,
            "key": "k1",
            "maxNum": "32",
            "beginTimestamp": "0",
            "endTimestamp": str(1 << 62),
        },
        b"",
    )
    yield (
        "12 none",
        12,
        {
            "topic": TOPIC,
            "key": "zz",
            "maxNum": "32",
            "beginTimestamp": "0",
            "endTimestamp": str(1 << 62),
        },
        b"",
    )
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
    yield "38", 38, {"consumerGroup": "g"}, b""
    yield "38 none", 38, {"consumerGroup": "never"}, b""
    yield (
        "41",
        41,
        {},
        json.dumps(
            {
                "consumerGroup": "g",
                "clientId": "c1",
                "mqSet": [{"topic": TOPIC, "brokerName": "broker-a", "queueId": 0}],
            }
        ).encode(),
    )
    yield (
        "42",
        42,
        {},
        json.dumps(
            {
                "consumerGroup": "g",
                "clientId": "c1",
                "mqSet": [{"topic": TOPIC, "brokerName": "broker-a", "queueId": 0}],
            }
        ).encode(),
    )
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
    yield (
        "pop",
        200050,
        {
            "consumerGroup": "pg",
            "topic": TOPIC,
            "queueId": "0",
            "maxMsgNums": "2",
            "invisibleTime": "60000",
            "pollTime": "0",
            "bornTime": str(int(time.time() * 1000)),
            "initMode": "0",
            "expType": "TAG",
            "exp": "*",
        },
        b"",
    )
    yield (
        "pop many",
        200050,
        {
            "consumerGroup": "pg",
            "topic": TOPIC,
            "queueId": "-1",
            "maxMsgNums": "33",
            "invisibleTime": "60000",
            "pollTime": "0",
            "bornTime": str(int(time.time() * 1000)),
            "initMode": "0",
        },
        b"",
    )
    yield (
        "pop nope",
        200050,
        {
            "consumerGroup": "pg",
            "topic": "Nope",
            "queueId": "-1",
            "maxMsgNums": "2",
            "invisibleTime": "60000",
            "pollTime": "0",
            "bornTime": str(int(time.time() * 1000)),
            "initMode": "0",
        },
        b"",
    )
    yield (
        "ack bad",
        200051,
        {
            "consumerGroup": "pg",
            "topic": "Nope",
            "queueId": "0",
            "extraInfo": "0 1 2 0 0 broker-a 0 0",
            "offset": "0",
        },
        b"",
    )
    yield (
        "ack out",
        200051,
        {
            "consumerGroup": "pg",
            "topic": TOPIC,
            "queueId": "0",
            "extraInfo": "0 1 2 0 0 broker-a 0 999",
            "offset": "999",
        },
        b"",
    )
    yield (
        "ack queue",
        200051,
        {
            "consumerGroup": "pg",
            "topic": TOPIC,
            "queueId": "9",
            "extraInfo": "0 1 2 0 0 broker-a 9 0",
            "offset": "0",
        },
        b"",
    )
    yield (
        "400",
        400,
        {},
        json.dumps(
            {
                "topic": TOPIC,
                "consumerGroup": "consumers",
                "clientId": "c1",
                "strategyName": "AVG",
                "messageModel": "CLUSTERING",
            }
        ).encode(),
    )
    yield "55 polling", 200055, {"consumerGroup": "pg", "topic": TOPIC, "queueId": "-1"}, b""


def namesrv_steps() -> Iterator[Step]:
    yield "105", 105, {"topic": TOPIC}, b""
    yield "105 nope", 105, {"topic": "Nope"}, b""
    yield "106", 106, {}, b""
    yield "206", 206, {}, b""
    yield "224", 224, {"cluster": "SampleCluster"}, b""
    yield "304", 304, {}, b""
    yield "101", 101, {"namespace": "n", "key": "k"}, b""
    yield "219", 219, {"namespace": "n"}, b""
    yield "319", 319, {}, b""

"""What is begun and not ended: transactions nobody decides, requests whose asker is gone.

Each scenario's text says what was provoked: which group, which client, how many messages.
"""

from __future__ import annotations

import struct
import time

from tests.cluster.servers import probe

from .scene import Scenario, Scene, both, single_5x
from .servers import acting_5x

SEND_MESSAGE = 10
CONSUMER_SEND_MSG_BACK = 36
END_TRANSACTION = 37
SEND_BATCH_MESSAGE = 320
HALF = 4
COMMIT = 8


def transaction_undecided(scene: Scene) -> None:
    """Three half messages of undecided_group to UndecidedTopic that nobody ever decides.

    broker-a checks back (39) every few seconds; 127.0.0.1@producer answers each with 37 of kind 0,
    unknown, until each message was checked four times.
    """
    scene.cluster.make_topic("UndecidedTopic")
    with scene.capture():
        scene.run(
            "TransactionSend",
            topic="UndecidedTopic",
            instance="producer",
            group="undecided_group",
            undecided=True,
            count=3,
            checks=12,
            wait_ms=120_000,
            timeout=150.0,
        )


def transaction_abandoned(scene: Scene) -> None:
    """One half message of abandoned_group to AbandonedTopic whose producer is killed.

    127.0.0.1@killed dies inside its local transaction: no 37 follows, and as the group has no other
    member, broker-a has nobody to check back with.
    """
    scene.cluster.make_topic("AbandonedTopic")
    with scene.capture():
        killed = scene.start(
            "TransactionSend",
            topic="AbandonedTopic",
            instance="killed",
            group="abandoned_group",
            hang=True,
            count=1,
        )
        killed.wait_for("executing")
        killed.kill()
        time.sleep(8)


def transaction_refused(scene: Scene) -> None:
    """A half message of right_group to EndTopic, ended four times: three are refused with 1.

    The first names another group, the second another place in the queue of half messages, the
    third a place in the log where no message is; the fourth commits. A client would not wait for
    these answers, so the requests are our own.
    """
    scene.cluster.make_topic("EndTopic")
    key = f"C0000200000A000000000000000000{scene.client.replace('.', '')[:2]}"
    fields = {
        "producerGroup": "right_group",
        "topic": "EndTopic",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "queueId": "0",
        "sysFlag": str(HALF),
        "bornTimestamp": str(int(time.time() * 1000)),
        "flag": "0",
        "properties": "".join(
            f"{name}\x01{value}\x02"
            for name, value in (("TRAN_MSG", "true"), ("PGROUP", "right_group"), ("UNIQ_KEY", key))
        ),
        "reconsumeTimes": "0",
        "unitMode": "false",
    }
    with scene.capture():
        header = _ask(scene, SEND_MESSAGE, fields, b"half")
        stored = header["extFields"]
        assert isinstance(stored, dict)
        place, offset = int(stored["queueOffset"]), int(stored["msgId"][-16:], 16)
        for group, queue_offset, log_offset in (
            ("wrong_group", place, offset),
            ("right_group", place + 7, offset),
            ("right_group", place, offset + 1_000_000),
            ("right_group", place, offset),
        ):
            ending = {
                "producerGroup": group,
                "tranStateTableOffset": str(queue_offset),
                "commitLogOffset": str(log_offset),
                "commitOrRollback": str(COMMIT),
                "fromTransactionCheck": "false",
                "msgId": key,
                "transactionId": key,
                "topic": "EndTopic",
            }
            _ask(scene, END_TRANSACTION, ending)


def request_abandoned(scene: Scene) -> None:
    """127.0.0.1@asker of lost_ask_group sends one request to LostTopic and is killed.

    The replier answers four seconds later by 325 to broker-a, which has no connection to push the
    reply to and answers 1.
    """
    scene.cluster.make_topic("LostTopic", queues=1)
    with scene.capture():
        replies = scene.start(
            "RequestReply",
            role="replies",
            topic="LostTopic",
            instance="replier",
            group="lost_group",
            delay_ms=4000,
            retries=0,
        )
        replies.wait_for("started")
        asker = scene.start(
            "RequestReply",
            topic="LostTopic",
            instance="asker",
            group="lost_ask_group",
            count=1,
            ttl_ms=30_000,
        )
        replies.wait_for("asked", 60.0)
        asker.kill()
        replies.wait_for("repl", 60.0)
        time.sleep(5)
        replies.end_input()
        replies.finish()


def return_failed(scene: Scene) -> None:
    """Two returns (36) of messages that broker-a does not have, for back_group and BackTopic.

    Both get response 1, look message by offset failed. A client returns what it was given, so the
    requests, at two places beyond the end of the log, are our own.
    """
    scene.cluster.make_topic("BackTopic")
    with scene.capture():
        for offset in (900_000_000, 900_000_512):
            fields = {
                "offset": str(offset),
                "group": "back_group",
                "delayLevel": "0",
                "originMsgId": "C0000200000A00000000000000000002",
                "originTopic": "BackTopic",
                "unitMode": "false",
                "maxReconsumeTimes": "16",
            }
            _ask(scene, CONSUMER_SEND_MSG_BACK, fields)


def return_to_slave(scene: Scene) -> None:
    """A return (36) of a message for slave_group is sent to the slave of broker-a, 127.77.0.12.

    A slave passes returns on to its master only in one process with it: it answers 1, no master
    available. The request is our own.
    """
    slave = scene.cluster.broker("broker-a", 1)
    fields = {
        "offset": "0",
        "group": "slave_group",
        "delayLevel": "0",
        "originMsgId": "C0000200000A00000000000000000003",
        "originTopic": "SlaveTopic",
        "unitMode": "false",
        "maxReconsumeTimes": "16",
    }
    with scene.capture():
        probe.ask(slave.address, CONSUMER_SEND_MSG_BACK, fields, source="127.0.0.1")


def batch_refused(scene: Scene) -> None:
    """A batch (320) of batch_group to its own retry topic, which broker-a refuses with 13.

    A client would not even try, so the request is our own; the same batch to BatchTopic is taken.
    """
    scene.cluster.make_topic("BatchTopic")
    body = b"".join(
        struct.pack(">IIIII", 22 + len(text), 0, 0, 0, len(text)) + text + b"\0\0"
        for text in (b"one", b"two")
    )
    with scene.capture():
        for topic in ("%RETRY%batch_group", "BatchTopic"):
            # The one-letter names of the second header, in the order of its fields.
            values = ("batch_group", topic, "TBW102", 4, 0, 0, int(time.time() * 1000), 0, "")
            fields = dict(zip("abcdefghi", map(str, values), strict=True))
            fields |= {"j": "0", "k": "false", "m": "true"}
            _ask(scene, SEND_BATCH_MESSAGE, fields, body)


def _ask(scene: Scene, code: int, fields: dict[str, str], body: bytes = b"") -> dict[str, object]:
    header, _ = probe.ask(scene.broker.address, code, fields, body, source="127.0.0.1")
    return header


HALVES: tuple[Scenario, ...] = (
    *both(
        "transaction-undecided",
        transaction_undecided,
        "Three half messages whose producer never decides, each checked back four times",
        "each 39 is followed by a 37 that says unknown",
        shows=("check-back-loop",),
    ),
    *both(
        "transaction-abandoned",
        transaction_abandoned,
        "A producer is killed inside its local transaction",
        "a half message without 37; no producer is left for check-backs",
        shows=("half-message-unresolved",),
    ),
    *both(
        "transaction-refused",
        transaction_refused,
        "A half message is ended with a wrong group, a wrong offset, no message; then correctly",
        "three refusals (response 1) that a real client, which sends 37 oneway, never sees",
        shows=("end-transaction-refused",),
    ),
    *both(
        "request-abandoned",
        request_abandoned,
        "The requesting client is killed before its reply comes",
        "325 gets response 1: there is no connection to push the reply to",
        shows=("reply-undeliverable",),
    ),
    *both(
        "return-failed",
        return_failed,
        "Two returned messages that the broker does not have",
        "36 gets response 1, look message by offset failed",
        shows=("sendback-failed",),
    ),
    Scenario(
        "return-to-slave-5x",
        acting_5x,
        return_to_slave,
        "A message is sent back to a slave",
        "36 gets response 1, no master available along with …",
        shows=("no-master",),
    ),
    Scenario(
        "batch-refused-5x",
        single_5x,
        batch_refused,
        "A batch to a retry topic, and one to another topic",
        "320 gets response 13, batch request does not support retry group",
        shows=("batch-not-supported",),
    ),
)

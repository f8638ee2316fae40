"""Lives of messages of which the clients themselves tell: what lies beside these captures is truth.

Each scenario's text says what was provoked. `NAME.clients.json` has what the clients knew.
"""

from __future__ import annotations

import time
from typing import Any

from tests.cluster.clients.clients import QUICK_REBALANCE, Client, run_mqadmin, start_go
from tests.cluster.servers import faults
from tests.cluster.servers.artifacts import NEWEST_5
from tests.cluster.servers.processes import wait_until

from .failing.faulty import PROXY_HOST, SEEN_BY_CLIENTS, masters_5x
from .scene import Scenario, Scene, both, single_5x
from .servers import pair_4x, pair_5x, slave_fetch_seconds

PATIENT = "com.rocketmq.remoting.client.connect.timeout=20000"
QUICK = (PATIENT, QUICK_REBALANCE)


def _consumer(scene: Scene, instance: str, topic: str, group: str, **options: Any) -> Client:
    """Starts a consumer that runs until its input ends or it is killed."""
    client = scene.start(
        "PushConsume",
        instance=instance,
        topic=topic,
        group=group,
        told=True,
        properties=QUICK,
        api_ms=20_000,
        until_end=True,
        **options,
    )
    client.wait_for("started")
    return client


def _send(scene: Scene, topic: str, count: int, **options: Any) -> str:
    return _sender(scene, topic, count, **options).finish(120.0)


def _sender(scene: Scene, topic: str, count: int, **options: Any) -> Client:
    options = {"instance": "producer", "properties": (PATIENT,), "api_ms": 20_000, **options}
    return scene.start("Send", topic=topic, count=count, told=True, **options)


def _wait_done(what: str, clients: list[Client], count: int, timeout: float = 60.0) -> None:
    """Waits until listeners have said what became of so many messages."""

    def done() -> bool:
        return sum(one.output.count('{"kind":"done"') for one in clients) >= count

    wait_until(what, done, timeout)


def _end(*clients: Client) -> None:
    for client in clients:
        client.end_input()
    for client in clients:
        client.finish()


def two_groups(scene: Scene) -> None:
    """Twelve messages to TwoGroupsTopic; first_group and second_group get each of them once."""
    scene.cluster.make_topic("TwoGroupsTopic")
    with scene.capture():
        first = _consumer(scene, "first", "TwoGroupsTopic", "first_group")
        second = _consumer(scene, "second", "TwoGroupsTopic", "second_group")
        time.sleep(2)
        sent = _send(scene, "TwoGroupsTopic", 12)
        _wait_done("both groups have all", [first, second], 24)
        _end(first, second)
    scene.tell(sent, first, second)


def forwarded(scene: Scene) -> None:
    """Eight messages to Orders, which a consumer forwards to Audit; four objects to both topics.

    Java keeps the UNIQ_KEY of an object that is sent again.
    """
    for topic in ("Orders", "Audit"):
        scene.cluster.make_topic(topic)
    with scene.capture():
        auditors = _consumer(scene, "auditors", "Audit", "auditors")
        forwarder = _consumer(scene, "forwarder", "Orders", "forwarders", forward="Audit")
        time.sleep(2)
        sent = _send(scene, "Orders", 8)
        _wait_done("what was forwarded", [auditors], 8)
        _end(forwarder)
        both_topics = _send(scene, "Orders", 4, also="Audit")
        _wait_done("what was sent to both", [auditors], 12)
        _end(auditors)
    scene.tell(sent, both_topics, auditors, forwarder)


def consumer_killed(scene: Scene) -> None:
    """127.0.0.1@killed of killed_group is killed in the middle of a batch of four messages.

    It has sixteen messages of KilledTopic in its memory and has ended one batch at most in each of
    the two queues. 127.0.0.1@heir gets all that no offset commit covers.
    """
    scene.cluster.make_topic("KilledTopic", queues=2)
    with scene.capture():
        sent = _send(scene, "KilledTopic", 16)
        killed = _consumer(scene, "killed", "KilledTopic", "killed_group", at_once=4, work_ms=500)
        _wait_done("a batch is done", [killed], 4)
        time.sleep(0.7)
        scene.kill(killed)
        heir = _consumer(scene, "heir", "KilledTopic", "killed_group", at_once=4)
        _wait_done("the heir has the rest", [heir], 8)
        time.sleep(6)  # all that nobody committed comes, within the offset commits' 5 s
        _end(heir)
    scene.tell(sent, killed, heir)


def scaling(scene: Scene) -> None:
    """One consumer of scaling_group becomes three and one again while sends to ScalingTopic go on.

    127.0.0.1@one stays; -two and -three join after 4 s and leave after 8 s in order.
    """
    scene.cluster.make_topic("ScalingTopic", queues=6)
    names = ("ScalingTopic", "scaling_group")
    with scene.capture():
        one = _consumer(scene, "one", *names)
        sender = _sender(scene, names[0], 60, pause_ms=250)
        sender.wait_for("SEND_OK")
        time.sleep(3)
        others = [_consumer(scene, name, *names) for name in ("two", "three")]
        time.sleep(5)
        _end(*others)
        sent = sender.finish(120.0)
        _wait_done("all are consumed", [one, *others], 60)
        _end(one)
    scene.tell(sent, one, *others)


def lock_hand_over(scene: Scene) -> None:
    """The locks of the four queues of HandTopic go from one orderly consumer to another one.

    127.0.0.1@first of hand_group gives two to 127.0.0.1@second that joins, and all when it ends in
    order. Messages of a queue are consumed in its order all the time.
    """
    scene.cluster.make_topic("HandTopic")
    names = ("HandTopic", "hand_group")
    with scene.capture():
        first = _consumer(scene, "first", *names, orderly=True)
        sender = _sender(scene, names[0], 50, pause_ms=400)
        sender.wait_for("SEND_OK")
        time.sleep(3)
        second = _consumer(scene, "second", *names, orderly=True)
        _wait_done("the second one has a lock", [second], 4)
        _end(first)
        sent = sender.finish(150.0)
        _wait_done("all are consumed", [first, second], 50, 120.0)
        _end(second)
    scene.tell(sent, first, second)


def dead_letters(scene: Scene) -> None:
    """127.0.0.1@refusing of dead_group fails three messages of DeadTopic twice each.

    The second return makes them dead letters; 127.0.0.1@undertaker of undertaker_group consumes
    them from %DLQ%dead_group.
    """
    scene.cluster.make_topic("DeadTopic", queues=2)
    options = {"fail": 99, "max_reconsume": 1, "poll_ms": 2000}
    with scene.capture():
        sent = _send(scene, "DeadTopic", 3)
        refusing = _consumer(scene, "refusing", "DeadTopic", "dead_group", **options)
        _wait_done("all failed twice", [refusing], 6)
        _end(refusing)
        undertaker = _consumer(scene, "undertaker", "%DLQ%dead_group", "undertaker_group")
        _wait_done("the dead are consumed", [undertaker], 3)
        _end(undertaker)
    scene.tell(sent, refusing, undertaker)


def pop_missed(scene: Scene) -> None:
    """A POP consumer of missed_group is killed: what it popped and did not acknowledge comes again.

    127.0.0.1@killed pops six messages of MissedTopic for ten seconds and acknowledges two or three;
    127.0.0.1@heir pops the others after that time.
    """
    scene.cluster.make_topic("MissedTopic", queues=1)
    where = f"-b {scene.broker.text} -t MissedTopic -g missed_group"
    run_mqadmin(
        f"setConsumeMode {where} -m POP -q 0".split(), scene.cluster.namesrv_text, scene.client
    )
    names = ("MissedTopic", "missed_group")
    options = {"pop": True, "invisible_ms": 10_000}
    with scene.capture():
        sent = _send(scene, "MissedTopic", 6)
        killed = _consumer(scene, "killed", *names, work_ms=700, **options)
        _wait_done("two are consumed", [killed], 2)
        time.sleep(0.3)
        scene.kill(killed)
        heir = _consumer(scene, "heir", *names, **options)
        missed = 6 - killed.output.count('{"kind":"done"')
        _wait_done("the heir has the rest", [heir], missed)
        time.sleep(1)
        _end(heir)
    scene.tell(sent, killed, heir)


def delayed(scene: Scene) -> None:
    """Messages to LaterTopic that are due after 1, 5 and 10 s, consumed when they are.

    With 5.x also four timed ones, of which the last is recalled before it is due.
    """
    scene.cluster.make_topic("LaterTopic", queues=2)
    with scene.capture():
        consumer = _consumer(scene, "consumer", "LaterTopic", "later_group")
        told = [_send(scene, "LaterTopic", 3, kind="delay")]
        if scene.client == NEWEST_5:
            told.append(_send(scene, "LaterTopic", 4, kind="timer", instance="timer"))
        _wait_done("all that is due is consumed", [consumer], 3 * len(told))
        time.sleep(2)
        _end(consumer)
    scene.tell(*told, consumer)


def transactions(scene: Scene) -> None:
    """Four transactions of deal_group to DealTopic, of which 127.0.0.1@consumer gets two.

    One is committed, one rolled back, one committed at the first check-back, one rolled back at the
    second.
    """
    scene.cluster.make_topic("DealTopic", queues=2)
    with scene.capture():
        consumer = _consumer(scene, "consumer", "DealTopic", "deal_consumers")
        sent = scene.run(
            "TransactionSend",
            topic="DealTopic",
            instance="producer",
            group="deal_group",
            told=True,
            wait_ms=120_000,
            timeout=200.0,
        )
        _wait_done("what is committed is consumed", [consumer], 2)
        time.sleep(2)
        _end(consumer)
    scene.tell(sent, consumer)


def sent_twice(scene: Scene) -> None:
    """broker-a hangs for 3 s while a producer sends to AgainTopic with 500 ms an attempt.

    What timed out there is sent again to broker-b and stored by broker-a anyway when it goes
    on; 127.0.0.1@consumer of again_group gets it twice.
    """
    broker = scene.cluster.broker("broker-a")
    with faults.Proxy((PROXY_HOST, broker.port), broker.address):
        scene.cluster.make_topic("AgainTopic", queues=2)
        with scene.capture(SEEN_BY_CLIENTS):
            consumer = _consumer(scene, "consumer", "AgainTopic", "again_group")
            time.sleep(2)
            sender = _sender(
                scene,
                "AgainTopic",
                16,
                pause_ms=300,
                timeout_ms=3000,
                per_request_ms=500,
                may_fail=True,
            )
            sender.wait_for("SEND_OK")
            time.sleep(1)
            with faults.frozen(broker):
                time.sleep(3)
            sent = sender.finish()
            time.sleep(4)
            _end(consumer)
    scene.tell(sent, consumer)


def slave_lives(scene: Scene) -> None:
    """Eight messages of BehindTopic; the master of broker-a is killed when early_group has them.

    127.0.0.1@late of behind_group gets those of broker-a from its slave, 127.77.0.12.
    """
    scene.cluster.make_topic("BehindTopic", queues=2)
    master = scene.cluster.broker("broker-a")
    with scene.capture():
        sent = _send(scene, "BehindTopic", 8)
        time.sleep(slave_fetch_seconds(scene) + 20)  # it is asked a second time, to be sure
        early = _consumer(scene, "early", "BehindTopic", "early_group", poll_ms=1500)
        _wait_done("the early group has all", [early], 8)
        faults.kill(master)
        time.sleep(1)
        late = _consumer(scene, "late", "BehindTopic", "behind_group", poll_ms=1500)
        _wait_done("the late group has all", [late], 8)
        time.sleep(1)
        _end(early, late)
    scene.tell(sent, early, late)
    faults.restart(scene.cluster, master)


def go_lives(scene: Scene) -> None:
    """The Go client sends six messages to GoLifeTopic and consumes them.

    192.0.2.10@go-consumer of go_consumer_group gives those with even keys back once.
    """
    scene.cluster.make_topic("GoLifeTopic", queues=2)
    with scene.capture():
        printed = start_go([scene.cluster.namesrv_text, "GoLifeTopic", "6", "told"]).finish(200.0)
    scene.tell(printed)


LIVES: tuple[Scenario, ...] = (
    *both(
        "two-groups",
        two_groups,
        "Two groups consume one topic",
        "each message is delivered once to each group",
    ),
    Scenario(
        "forwarded-5x",
        single_5x,
        forwarded,
        "A consumer forwards messages to another topic; one object is sent to two topics",
        "two messages have one UNIQ_KEY: they differ in their topic, and none is a retry",
    ),
    *both(
        "consumer-killed",
        consumer_killed,
        "A consumer is killed in the middle of a batch; another one continues",
        "delivered but uncommitted messages are delivered again",
    ),
    *both(
        "scaling",
        scaling,
        "A group of one consumer grows to three and shrinks to one while messages are sent",
        "queues move four times; 40 tells the members, 38 asks who they are",
    ),
    *both(
        "lock-hand-over",
        lock_hand_over,
        "An orderly consumer hands half of its queues, then all, to another one",
        "42 releases the locks, and 41 of the other consumer acquires them",
    ),
    *both(
        "dead-letters",
        dead_letters,
        "Three messages fail twice, become dead letters, and are consumed as such",
        "the response to the last 36 does not tell; the origin is a property of the dead letter",
    ),
    Scenario(
        "pop-missed-5x",
        single_5x,
        pop_missed,
        "A POP consumer is killed before it acknowledges; another one pops the rest later",
        "they come from the POP retry topic, with the original topic's name",
    ),
    *both(
        "delayed",
        delayed,
        "Messages that are due later, and when they are consumed",
        "the response to a send of them has an offset of another queue",
    ),
    *both(
        "transactions",
        transactions,
        "Commit, rollback, and what is decided at check-backs, with a consumer",
        "the committed message is another record of the log with the same UNIQ_KEY",
    ),
    Scenario(
        "sent-twice-5x",
        masters_5x,
        sent_twice,
        "A broker hangs for 3 s: attempts that timed out are stored by both brokers",
        "the consumer gets the same UNIQ_KEY twice, at two offsets",
    ),
    *both(
        "slave-lives",
        slave_lives,
        "A master is killed; a new group reads from the slave",
        "the store host of these messages is the master that was killed",
        clusters=(pair_5x, pair_4x),
    ),
    Scenario(
        "go-lives-5x",
        single_5x,
        go_lives,
        "The Go client sends six messages and consumes them, three at the second try",
        "the client's id names its address",
    ),
)

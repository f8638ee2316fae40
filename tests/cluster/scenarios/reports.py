"""Incidents of the kinds that public bug reports tell of: consumers, proxies, and lost settings.

Those are consumers that receive nothing, too little, or too much while every response says SUCCESS,
proxies that clients cannot use, and settings without effect. Each scenario's text says what was
provoked: which server, which client, for how long.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.cluster.clients.clients import (
    GO_GRPC_SOURCES,
    PYTHON_STUCK_LOCK,
    run_java,
    run_mqadmin,
    start_go,
    start_java,
    start_python,
)
from tests.cluster.servers import faults, probe
from tests.cluster.servers.artifacts import GRPC_5, NEWEST_4, NEWEST_5
from tests.cluster.servers.cluster import BrokerSpec, Cluster, Node
from tests.cluster.servers.proxy import grpc_text, proxied

from .failing.faulty import PROXY_HOST
from .proxies import grpc
from .scene import EVERYTHING, NETWORK, Scenario, Scene, on_both, single_4x, single_5x
from .servers import hasty

MAPPED_PORT = 17881
"""at which clients reach a proxy whose route names another port"""
REFUSED = "reject with tcp reset"
"""what a closed port does"""


def traceless_5x() -> Cluster:
    """A broker without a trace topic, which makes no topics itself."""
    spec = BrokerSpec(settings={"autoCreateTopicEnable": "false"})
    return Cluster([spec], version=NEWEST_5, network=NETWORK)


hasty_5x = on_both(hasty)[0]


def _towards(proxy: Node, port: int) -> str:
    """A filter for what clients and a port of a proxy send each other."""
    return f"{EVERYTHING} and host {proxy.host} and port {port}"


def _to(host: str, port: int) -> str:
    """An expression of nftables for what is sent to an address."""
    return f"ip daddr {host} tcp dport {port}"


def old_client(scene: Scene) -> None:
    """A producer of 4.3.2 takes a proxy of 5.x for its NameServer and sends three messages.

    The proxy answers each attempt 1: the request has no field bname, which clients send since
    4.9.4.
    """
    scene.cluster.make_topic("OldClientTopic", queues=2)
    with proxied(scene.cluster) as proxy, scene.capture(_towards(proxy, proxy.port)):
        sender = start_java(
            "FaultSend",
            proxy.text,
            version=scene.client,
            topic="OldClientTopic",
            instance="producer",
            pause_ms=500,
            retries=0,
        )
        time.sleep(4.0)
        sender.end_input()
        sender.finish(expect=None)


def mapped_port(scene: Scene) -> None:
    """A Go client reaches the proxy at port 17881; the route names the proxy's own port.

    That port is closed to the client, as that of a container whose port is mapped.
    """
    grpc.make_topics(scene)
    with (
        proxied(scene.cluster) as proxy,
        faults.Proxy((PROXY_HOST, MAPPED_PORT), (proxy.host, proxy.port + 1)),
    ):
        grpc.run(proxy, topic="GrpcNormal", count=1)  # the first one is slow
        with (
            faults.lost(_to(PROXY_HOST, proxy.port + 1), verdict=REFUSED),
            scene.capture(f"host {PROXY_HOST} and not host {probe.SOURCE}"),
        ):
            client = start_go([f"{PROXY_HOST}:{MAPPED_PORT}", "GrpcNormal", "2"], GO_GRPC_SOURCES)
            client.finish(90.0, expect=None)


def python_push(scene: Scene) -> None:
    """A push consumer of the Python client hangs in its start for 25 s; two messages wait."""
    grpc.make_topics(scene)
    with proxied(scene.cluster) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=2)
        with scene.capture(_towards(proxy, proxy.port + 1)):
            arguments = [grpc_text(proxy), "GrpcNormal", "2", "push"]
            client = start_python(arguments, PYTHON_STUCK_LOCK)
            time.sleep(28.0)
            client.kill()


def flush_late(scene: Scene) -> None:
    """A gRPC producer sends to a broker that reports late flushes (FLUSH_DISK_TIMEOUT)."""
    grpc.make_topics(scene)
    with proxied(scene.cluster) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)
        with scene.capture():
            printed = grpc.run(proxy, topic="GrpcNormal", count=4, may_fail=True)
        grpc.tell(scene, printed)


def offsets_lost(scene: Scene) -> None:
    """broker-a loses consumerOffset.json while it is down; the group consumes everything again.

    lost_offsets consumed the eight messages of KeptTopic before, and stored offset 4 in each queue.
    """
    scene.cluster.make_topic("KeptTopic", queues=2)
    options = {"topic": "KeptTopic", "group": "lost_offsets", "instance": "consumer", "count": 8}
    with scene.capture():
        scene.run("Send", topic="KeptTopic", instance="producer", count=8)
        scene.run("PushConsume", **options)
        scene.broker.stop()
        for path in (scene.broker.folder / "store" / "config").glob("consumerOffset.json*"):
            path.unlink()
        faults.restart(scene.cluster, scene.broker)
        scene.run("PushConsume", **options)


def suspended(scene: Scene) -> None:
    """A consumer pulls for 6 s, then is suspended for 50 s; its heartbeats and commits go on.

    Eight messages are stored in its two queues meanwhile.
    """
    scene.cluster.make_topic("PausedTopic", queues=2)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="PausedTopic",
            group="paused_group",
            instance="consumer",
            suspend_after_ms=6000,
            until_end=True,
        )
        consumer.wait_for("started")
        scene.run("Send", topic="PausedTopic", instance="before", count=2)
        time.sleep(22.0)
        scene.run("Send", topic="PausedTopic", instance="after", count=8)
        time.sleep(28.0)
        consumer.kill()


def frame_limit(scene: Scene) -> None:
    """A consumer whose frame limit is 4096 bytes pulls a message of 5,000 bytes.

    It closes its connection each time the response arrives, and pulls the same offset again.
    """
    scene.cluster.make_topic("LongTopic", queues=1)
    scene.run(
        "Send", topic="LongTopic", instance="filler", count=1, body=5000, compress_over=1_000_000
    )
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="LongTopic",
            group="short_frames",
            instance="consumer",
            heartbeat_ms=4000,
            until_end=True,
            properties=["com.rocketmq.remoting.frameMaxLength=4096"],
        )
        consumer.wait_for("started")
        time.sleep(14.0)
        consumer.kill()


def broadcast_gap(scene: Scene) -> None:
    """A broadcasting consumer restarts under its id without its file of offsets.

    So does a container without a volume. Six messages were sent while it was down.
    """
    scene.cluster.make_topic("NewsTopic", queues=2)
    options = {"topic": "NewsTopic", "group": "news_group", "instance": "member"}
    with scene.capture():
        first = scene.start(
            "PushConsume", broadcast=True, from_last=True, until_end=True, **options
        )
        first.wait_for("started")
        time.sleep(1.0)
        scene.run("Send", topic="NewsTopic", instance="before", count=4)
        time.sleep(2.0)
        first.end_input()
        first.finish()
        scene.run("Send", topic="NewsTopic", instance="between", count=6)
        second = scene.start(
            "PushConsume", broadcast=True, from_last=True, until_end=True, **options
        )
        second.wait_for("started")
        time.sleep(1.0)
        scene.run("Send", topic="NewsTopic", instance="after", count=2)
        time.sleep(2.0)
        second.end_input()
        second.finish()


def history_consumed(scene: Scene) -> None:
    """A new group asks for CONSUME_FROM_LAST_OFFSET and gets the ten messages of two queues."""
    scene.cluster.make_topic("HistoryTopic", queues=2)
    scene.run("Send", topic="HistoryTopic", instance="filler", count=10)
    with scene.capture():
        scene.run(
            "PushConsume",
            topic="HistoryTopic",
            group="late_comers",
            instance="consumer",
            from_last=True,
            count=10,
            linger_ms=6000,
        )


def two_strategies(scene: Scene) -> None:
    """Two members of mixed_group share out four queues, one averagely, one by circle, for 50 s.

    Both pull one queue, and nobody pulls another one; of eight messages two wait.
    """
    scene.cluster.make_topic("MixedTopic", queues=4)
    options = {"topic": "MixedTopic", "group": "mixed_group", "count": 99, "wait_ms": 600_000}
    with scene.capture():
        members = [
            scene.start("PushConsume", instance="averagely", **options),
            scene.start("PushConsume", instance="by-circle", circle=True, **options),
        ]
        for one in members:
            one.wait_for("started")
        time.sleep(24.0)
        scene.run("Send", topic="MixedTopic", instance="producer", count=8)
        time.sleep(28.0)
        for one in members:
            one.kill()


def left_out(scene: Scene) -> None:
    """A consumer's strategy names the first two queues of GrownTopic, which has four, for 55 s.

    Of eight messages four are consumed.
    """
    scene.cluster.make_topic("GrownTopic", queues=4)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="GrownTopic",
            group="grown_group",
            instance="consumer",
            only=2,
            until_end=True,
        )
        consumer.wait_for("started")
        scene.run("Send", topic="GrownTopic", instance="producer", count=8)
        time.sleep(55.0)
        consumer.kill()


def check_elsewhere(scene: Scene) -> None:
    """Two programs share shared_producers; one's half messages are checked with the other.

    127.0.0.1@orders leaves four half messages undecided; 127.0.0.1@bills does not know them and
    rolls back those that the broker checks with it.
    """
    scene.cluster.make_topic("SharedTopic", queues=2)
    options = {"topic": "SharedTopic", "group": "shared_producers", "heartbeat_ms": 2000}
    with scene.capture():
        bills = scene.start(
            "TransactionSend",
            instance="bills",
            unknown_rolls_back=True,
            count=0,
            checks=3,
            wait_ms=120_000,
            **options,
        )
        orders = scene.start(
            "TransactionSend",
            instance="orders",
            undecided=True,
            count=4,
            checks=999,
            wait_ms=600_000,
            **options,
        )
        bills.finish(150.0)
        time.sleep(1.0)
        orders.kill()


def ends_contradict(scene: Scene) -> None:
    """A local transaction takes 14 s; its producer answers the check meanwhile with a rollback.

    Then it commits, and the broker delivers the message.
    """
    scene.cluster.make_topic("SlowDealTopic", queues=2)
    with scene.capture():
        scene.run(
            "TransactionSend",
            topic="SlowDealTopic",
            instance="producer",
            group="slow_deals",
            unknown_rolls_back=True,
            work_ms=14_000,
            count=1,
            checks=1,
            linger_ms=2000,
        )
        scene.run(
            "PushConsume",
            topic="SlowDealTopic",
            group="deal_readers",
            instance="reader",
            count=1,
        )


def clock_behind(scene: Scene) -> None:
    """A POP consumer whose clock is 70 s behind gets none of four messages for 3 s."""
    scene.cluster.make_topic("ClockTopic", queues=2)
    where = f"-b {scene.broker.text} -t ClockTopic -g behind_clock"
    mode = f"setConsumeMode {where} -m POP -q 0"
    run_mqadmin(mode.split(), scene.cluster.namesrv_text, scene.client)
    scene.run("Send", topic="ClockTopic", instance="filler", count=4)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="ClockTopic",
            group="behind_clock",
            instance="consumer",
            pop=True,
            until_end=True,
            clock="-70s",
        )
        consumer.wait_for("started")
        time.sleep(3.0)
        consumer.kill()


def delay_ignored(scene: Scene) -> None:
    """A producer of 5.x sends three timed messages to a broker of 4.9.7, which knows no timers."""
    scene.cluster.make_topic("SoonTopic", queues=1)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="SoonTopic",
            group="soon_group",
            instance="consumer",
            count=3,
        )
        consumer.wait_for("started")
        scene.run("Send", topic="SoonTopic", instance="producer", kind="timer", count=3)
        consumer.finish()


def trace_lost(scene: Scene) -> None:
    """A producer with the message trace on sends six messages where no broker has a trace topic."""
    scene.cluster.make_topic("UntracedTopic", queues=1)
    with scene.capture():
        scene.run(
            "Send",
            topic="UntracedTopic",
            instance="producer",
            trace=True,
            count=6,
            pause_ms=400,
            linger_ms=4000,
        )


def forgotten(scene: Scene) -> None:
    """A load balancer forgets a connection to broker-a after a minute, and says so to nobody.

    Its packets are lost from then on; new connections work. The producer sends every 65 s.
    """
    scene.cluster.make_topic("QuietTopic", queues=2)
    with scene.capture():
        sender = scene.start(
            "Send",
            topic="QuietTopic",
            instance="producer",
            count=2,
            pause_ms=65_000,
            heartbeat_ms=600_000,
            timeout_ms=9000,
            per_request_ms=3000,
            may_fail=True,
        )
        sender.wait_for("SEND_OK")
        time.sleep(60.0)
        with faults.forgotten(scene.broker):
            sender.finish(200.0)


def stuck_message(scene: Scene) -> None:
    """One message of StuckTopic never ends in its listener; 20 others of its queue are consumed.

    The stored offset stays in front of it for 70 s.
    """
    scene.cluster.make_topic("StuckTopic", queues=1)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="StuckTopic",
            group="stuck_group",
            instance="consumer",
            hang="key-2",
            until_end=True,
        )
        consumer.wait_for("started")
        scene.run("Send", topic="StuckTopic", instance="producer", count=21, pause_ms=100)
        time.sleep(72.0)
        consumer.kill()


def orderly_stuck(scene: Scene) -> None:
    """An orderly listener suspends its queue at the first message again and again for 70 s."""
    scene.cluster.make_topic("OrderTopic", queues=1)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="OrderTopic",
            group="order_group",
            instance="consumer",
            orderly=True,
            fail=100_000,
            until_end=True,
        )
        consumer.wait_for("started")
        scene.run("Send", topic="OrderTopic", instance="producer", count=5)
        time.sleep(72.0)
        consumer.kill()


def unsubscribed(scene: Scene) -> None:
    """One of two members of a group unsubscribes SecondTopic after 6 s; the other keeps it."""
    for topic in ("FirstTopic", "SecondTopic"):
        scene.cluster.make_topic(topic, queues=2)
    options = {"topic": "FirstTopic", "group": "leaving_group", "heartbeat_ms": 2500}
    with scene.capture():
        members = [
            scene.start(
                "PushConsume",
                instance="leaving",
                unsubscribe="SecondTopic",
                unsubscribe_after_ms=6000,
                until_end=True,
                **options,
            ),
            scene.start(
                "PushConsume",
                instance="staying",
                unsubscribe="SecondTopic",
                unsubscribe_after_ms=600_000,
                until_end=True,
                **options,
            ),
        ]
        for one in members:
            one.wait_for("started")
        time.sleep(24.0)
        for one in members:
            one.kill()


def grpc_subscriptions(scene: Scene) -> None:
    """Two gRPC push consumers of split_push subscribe GrpcNormal, one with TagA, one with TagB."""
    grpc.make_topics(scene)
    with proxied(scene.cluster) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)  # the first one is slow
        with scene.capture(_towards(proxy, proxy.port + 1)):
            options = {"kind": "push", "topic": "GrpcNormal", "group": "split_push"}
            members = [
                grpc.start(proxy, expression=expression, **options)
                for expression in ("TagA", "TagB")
            ]
            for one in members:
                one.wait_for("ready")
            time.sleep(6.0)
            for one in members:
                one.kill()


def remoting_mapped(scene: Scene) -> None:
    """A producer reaches a proxy's remoting port through a mapped port; the route names its own.

    That port is closed to the producer.
    """
    scene.cluster.make_topic("MappedTopic", queues=2)
    named = {"remotingAccessAddr": PROXY_HOST}
    with (
        proxied(scene.cluster, settings=named) as proxy,
        faults.Proxy((PROXY_HOST, MAPPED_PORT), proxy.address),
        faults.lost(_to(PROXY_HOST, proxy.port), verdict=REFUSED),
        scene.capture(f"host {PROXY_HOST} and not host {probe.SOURCE}"),
    ):
        run_java(
            "Send",
            f"{PROXY_HOST}:{MAPPED_PORT}",
            version=scene.client,
            topic="MappedTopic",
            instance="producer",
            count=2,
            may_fail=True,
        )


def heartbeats_v2(scene: Scene) -> None:
    """A broker is killed and comes back under a consumer that sends heartbeats of version 2."""
    scene.cluster.make_topic("BriefTopic", queues=2)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="BriefTopic",
            group="brief_group",
            instance="consumer",
            heartbeat_ms=3000,
            until_end=True,
            properties=["com.rocketmq.heartbeat.v2=true"],
        )
        consumer.wait_for("started")
        scene.run("Send", topic="BriefTopic", instance="before", count=2)
        time.sleep(7.0)
        faults.kill(scene.broker)
        faults.restart(scene.cluster, scene.broker)
        time.sleep(2.0)
        scene.run("Send", topic="BriefTopic", instance="after", count=4)
        time.sleep(20.0)
        consumer.kill()


def _reported(
    name: str,
    cluster: Callable[[], Cluster],
    run: Callable[[Scene], None],
    what: str,
    odd: str,
    *shows: str,
    client: str = NEWEST_5,
) -> Scenario:
    return Scenario(name, cluster, run, what, odd, client, shows=shows, packed=True)


REPORTS: tuple[Scenario, ...] = (
    _reported(
        "old-client-proxy-5x",
        single_5x,
        old_client,
        "A producer of 4.3.2 sends through a proxy of 5.x",
        "the proxy misses the field bname in each request",
        "refused-otherwise",
        client="4.3.2",
    ),
    _reported(
        "grpc-mapped-port-5x",
        single_5x,
        mapped_port,
        "A Go client reaches a proxy through a mapped port",
        "QueryRoute names the proxy's own port, where every connect is refused",
        "wrong-proxy-address",
    ),
    _reported(
        "grpc-push-stuck-5x",
        single_5x,
        python_push,
        "A push consumer of the Python client never starts to receive",
        "after its settings it makes no call",
        "grpc-consumer-stuck",
        client="python 5.1.0",
    ),
    _reported(
        "grpc-flush-late-5x",
        hasty_5x,
        flush_late,
        "A gRPC producer sends to a broker whose disk is too slow",
        "the proxy reports what the broker stored without being sure",
        "stored-not-durable",
        client=GRPC_5,
    ),
    _reported(
        "offsets-lost-5x",
        single_5x,
        offsets_lost,
        "A broker restarts without the offsets of its groups",
        "14 is answered with a lower offset than the group stored",
        "offsets-lost",
    ),
    _reported(
        "suspended-4x",
        single_4x,
        suspended,
        "A suspended consumer stops pulling",
        "heartbeats and commits go on without pulls",
        "consumer-not-pulling",
        client=NEWEST_4,
    ),
    _reported(
        "frame-limit-5x",
        single_5x,
        frame_limit,
        "A consumer cannot read a response longer than its frame limit",
        "it closes its connection after each complete response",
        "response-unreadable",
    ),
    _reported(
        "broadcast-gap-4x",
        single_4x,
        broadcast_gap,
        "A broadcasting consumer restarts without its offset file",
        "it begins at the end of the queue (30)",
        "broadcast-gap",
        client=NEWEST_4,
    ),
    _reported(
        "history-consumed-5x",
        single_5x,
        history_consumed,
        "A new group with CONSUME_FROM_LAST_OFFSET consumes old messages",
        "14 is answered with 0 before anything was stored",
        "history-consumed",
    ),
    _reported(
        "two-strategies-5x",
        single_5x,
        two_strategies,
        "Two members of a group allocate queues by different strategies",
        "one queue is pulled twice, another one by nobody",
        "queue-shared",
    ),
    _reported(
        "queues-left-out-4x",
        single_4x,
        left_out,
        "A consumer whose strategy names two of four queues",
        "nobody pulls the other two",
        "queue-orphaned",
        client=NEWEST_4,
    ),
    _reported(
        "check-elsewhere-4x",
        single_4x,
        check_elsewhere,
        "Two programs share a producer group; one rolls back the other's half messages",
        "39 goes to a client that did not send the half message",
        "check-at-other-producer",
        client=NEWEST_4,
    ),
    _reported(
        "ends-contradict-5x",
        single_5x,
        ends_contradict,
        "A producer rolls back in answer to a check, and commits later",
        "two ends (37) of one half message, which differ",
        "transaction-ends-contradict",
    ),
    _reported(
        "clock-behind-5x",
        single_5x,
        clock_behind,
        "A POP consumer whose clock is behind",
        "each pop is answered 210 at once",
        "pop-clock-skew",
    ),
    _reported(
        "delay-ignored-5x-client-4x-server",
        single_4x,
        delay_ignored,
        "Timed messages for a 4.x broker",
        "they are delivered at once",
        "delay-ignored",
    ),
    _reported(
        "trace-lost-5x",
        traceless_5x,
        trace_lost,
        "A producer with message trace where no broker has the trace topic",
        "105 for the trace topic gets response 17",
        "trace-lost",
    ),
    _reported(
        "idle-silent-5x",
        single_5x,
        forgotten,
        "A load balancer drops the packets of an idle connection",
        "the first send after a pause is retransmitted and never acknowledged",
        "idle-close",
    ),
    _reported(
        "stuck-message-5x",
        single_5x,
        stuck_message,
        "A listener never returns from one message",
        "the stored offset stays in front of it",
        "consumer-lag",
    ),
    _reported(
        "orderly-stuck-4x",
        single_4x,
        orderly_stuck,
        "An orderly listener suspends its queue at one message",
        "the stored offset stays in front of it",
        "consumer-lag",
        client=NEWEST_4,
    ),
    _reported(
        "unsubscribed-5x",
        single_5x,
        unsubscribed,
        "One member of a group unsubscribes a topic at run time",
        "heartbeats of the two members differ from then on",
        "inconsistent-subscription",
    ),
    _reported(
        "grpc-subscriptions-5x",
        single_5x,
        grpc_subscriptions,
        "Two gRPC push consumers of a group subscribe different tags",
        "the settings that they send by Telemetry differ",
        "inconsistent-subscription",
        client=GRPC_5,
    ),
    _reported(
        "heartbeat-v2-restart-5x",
        single_5x,
        heartbeats_v2,
        "A broker restarts under a consumer with heartbeats of version 2",
        "its short heartbeats are answered 0, and its pulls 24",
        "heartbeat-incomplete",
    ),
    _reported(
        "mapped-port-5x",
        single_5x,
        remoting_mapped,
        "A producer reaches a proxy's remoting port through a mapped port",
        "105 names the proxy's own port, where every connect is refused",
        "wrong-broker-address",
    ),
)

"""Incidents of the kinds that public bug reports tell of, each provoked with real software.

Each scenario's text says what was provoked: which server, which client, for how long.
"""

from __future__ import annotations

import time

from tests.cluster.clients.clients import start_java
from tests.cluster.servers import faults, probe
from tests.cluster.servers.artifacts import GRPC_5, NEWEST_5
from tests.cluster.servers.cluster import BrokerSpec, Cluster
from tests.cluster.servers.processes import wait_until
from tests.cluster.servers.proxy import proxied

from .failing.faulty import KEPT_OPEN, PROXY_HOST, SEEN_BY_CLIENTS
from .failing.losses import pair
from .proxies import grpc
from .scene import NETWORK, Scenario, Scene, both, on_both, single_5x

NOBODY = f"{NETWORK}.9:9876"
"""where no NameServer listens"""
NOT_FOUND = b'"code":19'
"""PULL_NOT_FOUND: the response to a long poll that ended without a message"""


def behind_5x() -> Cluster:
    """A broker behind a proxy of ours, at which clients come to it."""
    return Cluster([BrokerSpec(advertised=PROXY_HOST)], version=NEWEST_5, network=NETWORK)


def renewing_5x() -> Cluster:
    """A broker that registers every ten seconds, for a recording with a second one of its name."""
    spec = BrokerSpec(settings={"registerNameServerPeriod": 10_000})
    return Cluster([spec], version=NEWEST_5, network=NETWORK)


def timer_late(scene: Scene) -> None:
    """broker-a is shut down for 12 s while four timed messages of LateTopic become due."""
    scene.cluster.make_topic("LateTopic", queues=1)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="LateTopic",
            group="late_group",
            instance="consumer",
            count=4,
            wait_ms=60_000,
        )
        consumer.wait_for("started")
        scene.run("Send", topic="LateTopic", kind="timer-late", count=4, late_ms=8000)
        scene.broker.stop()
        time.sleep(12.0)
        faults.restart(scene.cluster, scene.broker)
        consumer.finish()


def long_poll_lost(scene: Scene) -> None:
    """One response to a pull of lost_group is swallowed on its way; the client gives up at 30 s."""
    with faults.Proxy((PROXY_HOST, scene.broker.port), scene.broker.address) as proxy:
        scene.cluster.make_topic("PollTopic", queues=2)
        with scene.capture(SEEN_BY_CLIENTS):
            consumer = scene.start(
                "PushConsume",
                topic="PollTopic",
                group="lost_group",
                instance="consumer",
                heartbeat_ms=3000,
                until_end=True,
            )
            consumer.wait_for("started")
            time.sleep(2.0)
            proxy.swallows = NOT_FOUND
            time.sleep(38.0)
            consumer.end_input()
            consumer.finish()


def forgotten(scene: Scene) -> None:
    """A load balancer gives up connections to broker-a after 8 s without a packet.

    A producer sends every 12 s: its request meets a connection that is gone.
    """
    with faults.Proxy((PROXY_HOST, scene.broker.port), scene.broker.address) as proxy:
        scene.cluster.make_topic("IdleTopic", queues=2)
        proxy.forgets_after = 8.0
        with scene.capture(SEEN_BY_CLIENTS):
            scene.run(
                "Send",
                topic="IdleTopic",
                instance="producer",
                count=5,
                pause_ms=12_000,
                heartbeat_ms=60_000,
                may_fail=True,
            )


def ack_late(scene: Scene) -> None:
    """A simple consumer works 13 s on messages that are invisible for 10 s."""
    grpc.make_topics(scene)
    with proxied(scene.cluster) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=3)
        with scene.capture():
            options = {"invisible_ms": 10_000, "work_ms": 13_000, "batch": 1}
            printed = grpc.run(
                proxy,
                kind="simple",
                topic="GrpcNormal",
                group="slow_simple",
                count=3,
                may_fail=True,
                **options,
            )
        grpc.tell(scene, printed)


def never_acknowledged(scene: Scene) -> None:
    """A simple consumer acknowledges all messages but one, which comes again every 10 s."""
    grpc.make_topics(scene)
    with proxied(scene.cluster) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=5)
        with scene.capture():
            printed = grpc.run(
                proxy,
                kind="simple",
                topic="GrpcNormal",
                group="forgetful_simple",
                forget_key="key-1",
                invisible_ms=10_000,
                batch=1,
                count=18,
            )
        grpc.tell(scene, printed)


def calls_lost(scene: Scene) -> None:
    """For six seconds every packet to the proxy's gRPC port is lost; the proxy is well."""
    _calls_lost(scene, "daddr {} tcp dport {}")


def answers_lost(scene: Scene) -> None:
    """For six seconds every packet from the proxy's gRPC port is lost; the proxy is well."""
    _calls_lost(scene, "saddr {} tcp sport {}")


def _calls_lost(scene: Scene, which: str) -> None:
    grpc.make_topics(scene)
    with proxied(scene.cluster) as proxy:
        grpc.run(proxy, topic="GrpcNormal", count=1)
        with scene.capture():
            options = {"count": 14, "pause_ms": 400, "timeout_ms": 2000, "may_fail": True}
            client = grpc.start(proxy, topic="GrpcNormal", **options)
            client.wait_for(" sent ", 30.0)
            time.sleep(1.5)
            with faults.lost("ip " + which.format(proxy.host, proxy.port + 1)):
                time.sleep(6.0)
            printed = client.finish(90.0)
        grpc.tell(scene, printed)


def pull_starved(scene: Scene) -> None:
    """A pull consumer waits 8 s at the end of each of three queues; messages come into one."""
    scene.cluster.make_topic("StarvedTopic", queues=3)
    with scene.capture():
        consumer = scene.start(
            "PullConsume",
            kind="serial",
            topic="StarvedTopic",
            group="starved_group",
            instance="consumer",
            suspend_ms=8000,
            wait_ms=60_000,
        )
        consumer.wait_for("NO_")
        scene.run(
            "Send",
            kind="one-queue",
            queue=1,
            topic="StarvedTopic",
            instance="producer",
            count=40,
            pause_ms=1000,
        )
        consumer.finish(120.0)


def made_on_one(scene: Scene) -> None:
    """A producer sends every 5 s to a topic that its first send makes, with two brokers there."""
    with scene.capture():
        scene.run(
            "Send",
            topic=f"NewTopic{scene.client[0]}",
            instance="producer",
            count=5,
            pause_ms=5000,
            poll_ms=3000,
        )


def request_timeout(scene: Scene) -> None:
    """Two requests with a TTL of 1.5 s; the replier takes 4 s for each."""
    scene.cluster.make_topic("AskTopic", queues=1)
    with scene.capture():
        replies = scene.start(
            "RequestReply",
            role="replies",
            topic="AskTopic",
            instance="replier",
            group="ask_group",
            delay_ms=4000,
            retries=0,
        )
        replies.wait_for("started")
        scene.run(
            "RequestReply",
            topic="AskTopic",
            instance="asker",
            group="asker_group",
            count=2,
            ttl_ms=1500,
            linger_ms=6000,
        )
        replies.end_input()
        replies.finish()


def nobody_listens(scene: Scene) -> None:
    """A producer whose namesrvAddr names a host where nothing listens, started four times."""
    with scene.capture(f"not host {probe.SOURCE} and net {NETWORK}.0/24"):
        for _ in range(4):
            client = start_java(
                "Send", NOBODY, version=scene.client, topic="NowhereTopic", instance="producer"
            )
            client.finish(expect=1)


def namesrv_hung(scene: Scene) -> None:
    """The NameServer stands still for five seconds while a producer asks for routes."""
    scene.cluster.make_topic("HungTopic", queues=2)
    with scene.capture():
        sender = scene.start(
            "FaultSend", topic="HungTopic", instance="producer", pause_ms=500, poll_ms=1000
        )
        sender.wait_for('"kind":"send"')
        time.sleep(4.0)
        with faults.frozen(scene.cluster.namesrvs[0]):
            time.sleep(5.0)
        time.sleep(3.0)
        sender.end_input()
        sender.finish()


def queues_reduced(scene: Scene) -> None:
    """FewerTopic is changed from four queues to two while it is used."""
    scene.cluster.make_topic("FewerTopic", queues=4)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="FewerTopic",
            group="fewer_group",
            instance="consumer",
            poll_ms=3000,
            until_end=True,
        )
        consumer.wait_for("started")
        sender = scene.start(
            "FaultSend", topic="FewerTopic", instance="producer", pause_ms=1500, poll_ms=3000
        )
        sender.wait_for('"kind":"send"')
        time.sleep(4.0)
        scene.cluster.make_topic("FewerTopic", queues=2)
        time.sleep(10.0)
        for client in (sender, consumer):
            client.end_input()
            client.finish()


def client_hung(scene: Scene) -> None:
    """A consumer process is stopped for 14 s, as in a long garbage collection."""
    scene.cluster.make_topic("StillTopic", queues=2)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="StillTopic",
            group="still_group",
            instance="consumer",
            until_end=True,
        )
        consumer.wait_for("started")
        sender = scene.start("FaultSend", topic="StillTopic", instance="producer", pause_ms=3000)
        sender.wait_for('"kind":"send"')
        time.sleep(22.0)
        with consumer.frozen():
            time.sleep(14.0)
        time.sleep(12.0)
        for client in (sender, consumer):
            client.end_input()
            client.finish()


def returned_again(scene: Scene) -> None:
    """A listener gives each of two messages back four times."""
    scene.cluster.make_topic("AgainTopic", queues=1)
    with scene.capture():
        consumer = scene.start(
            "PushConsume",
            topic="AgainTopic",
            group="again_group",
            instance="consumer",
            fail=9,
            until_end=True,
        )
        consumer.wait_for("started")
        scene.run("Send", topic="AgainTopic", instance="producer", count=2)
        wait_until("four returns", lambda: consumer.output.count("AgainTopic") >= 10, 60.0)
        consumer.end_input()
        consumer.finish()


def traced(scene: Scene) -> None:
    """A producer with the message trace on sends 40 small messages."""
    scene.cluster.make_topic("TracedTopic", queues=2)
    with scene.capture():
        scene.run(
            "Send",
            topic="TracedTopic",
            instance="producer",
            trace=True,
            count=40,
            pause_ms=100,
            linger_ms=6000,
        )


def stored_again(scene: Scene) -> None:
    """broker-a takes 1.5 s for a send, and the producer tries elsewhere after one second.

    Its connections stay open, so that the late responses come.
    """
    scene.cluster.make_topic("AgainStoredTopic", queues=2)
    with faults.slow_sends(scene.broker, 1500), scene.capture():
        scene.run(
            "Send",
            topic="AgainStoredTopic",
            instance="producer",
            count=4,
            timeout_ms=5000,
            per_request_ms=1000,
            linger_ms=2000,
            may_fail=True,
            properties=[KEPT_OPEN],
        )


def budget_spent(scene: Scene) -> None:
    """broker-a stands still for five seconds; sends have the default timeout of three."""
    scene.cluster.make_topic("BudgetTopic", queues=2)
    with scene.capture():
        client = scene.start(
            "FaultSend", topic="BudgetTopic", instance="producer", timeout_ms=3000, pause_ms=200
        )
        client.wait_for('"kind":"send"')
        time.sleep(2.0)
        with faults.frozen(scene.broker):
            time.sleep(5.0)
        time.sleep(3.0)
        client.end_input()
        client.finish()


def name_twice(scene: Scene) -> None:
    """A second broker-a registers at the NameServer, with id 0 as the first one, for 25 s."""
    cluster = scene.cluster
    cluster.make_topic("TwiceTopic", queues=2)
    spec = BrokerSpec("broker-a", settings={"registerNameServerPeriod": 10_000})
    broker = cluster.spare_broker(spec)
    with scene.capture():
        sender = scene.start(
            "FaultSend", topic="TwiceTopic", instance="producer", pause_ms=900, poll_ms=3000
        )
        sender.wait_for('"kind":"send"')
        broker.start()
        try:
            time.sleep(28.0)
            sender.end_input()
            sender.finish()
        finally:
            broker.kill()


def broker_throws(scene: Scene) -> None:
    """Four requests with which broker-a fails: a heartbeat (34) without a body.

    A client sends none such, so the requests are our own.
    """
    with scene.capture():
        for _ in range(4):
            probe.ask(scene.broker.address, 34, source="127.0.0.1")


INCIDENTS: tuple[Scenario, ...] = (
    Scenario(
        "timer-late-5x",
        single_5x,
        timer_late,
        "A broker is shut down while timed messages become due",
        "they are delivered when it is back, with the times in their properties",
        shows=("delivered-late", "broker-gone"),
    ),
    Scenario(
        "long-poll-lost-5x",
        behind_5x,
        long_poll_lost,
        "The response to one long poll is lost between broker and consumer",
        "other responses come on the same connection; the client pulls again after 30 s",
        shows=("long-poll-lost",),
        packed=True,
    ),
    Scenario(
        "idle-forgotten-5x",
        behind_5x,
        forgotten,
        "A load balancer drops connections that are idle for 8 s",
        "the first send after a pause is answered with RST and sent again",
        shows=("idle-close",),
    ),
    Scenario(
        "grpc-ack-late-5x",
        single_5x,
        ack_late,
        "A simple consumer acknowledges each message 3 s after its invisible time",
        "the proxy answers 40013, and delivers the message again",
        GRPC_5,
        shows=("pop-ack-late",),
    ),
    Scenario(
        "grpc-never-acknowledged-5x",
        single_5x,
        never_acknowledged,
        "A simple consumer acknowledges four of five messages, and one never",
        "the proxy delivers that message again each time its invisible time has ended",
        GRPC_5,
        packed=True,
        shows=("pop-ack-late",),
    ),
    Scenario(
        "grpc-calls-lost-5x",
        single_5x,
        calls_lost,
        "Packets to a proxy are lost for six seconds under sends by gRPC",
        "the calls are cancelled at their deadline; the proxy never saw them",
        GRPC_5,
        shows=("packets-unacknowledged", "call-given-up"),
    ),
    Scenario(
        "grpc-responses-lost-5x",
        single_5x,
        answers_lost,
        "Packets from a proxy are lost for six seconds under sends by gRPC",
        "the proxy stores the messages; the client never learns it",
        GRPC_5,
        shows=("packets-unacknowledged",),
    ),
    *both(
        "pull-starved",
        pull_starved,
        "A pull consumer long-polls empty queues while another queue has messages",
        "its long polls run one after another",
        shows=("pull-starved",),
    ),
    *both(
        "topic-on-one-broker",
        made_on_one,
        "The first send to a new topic creates it on one of two brokers",
        "all later sends go to that broker",
        clusters=on_both(pair),
        shows=("topic-on-some-brokers",),
    ),
    Scenario(
        "request-timeout-5x",
        single_5x,
        request_timeout,
        "Requests whose reply comes after their TTL",
        "the requester has timed out; the broker still pushes the reply",
        shows=("request-timeout",),
    ),
    Scenario(
        "nobody-listens-5x",
        single_5x,
        nobody_listens,
        "A producer with a wrong namesrvAddr is started again and again",
        "every connect is refused, and the program ends",
        shows=("nobody-listens",),
    ),
    Scenario(
        "namesrv-hung-5x",
        single_5x,
        namesrv_hung,
        "A NameServer hangs for 5 s",
        "route requests get late responses or none; sends continue",
        shows=("namesrv-hung",),
    ),
    Scenario(
        "queues-reduced-5x",
        single_5x,
        queues_reduced,
        "A topic shrinks from four queues to two while in use",
        "messages in the other two queues are never consumed",
        shows=("queues-reduced",),
    ),
    Scenario(
        "client-hung-5x",
        single_5x,
        client_hung,
        "A consumer process is stopped for 14 s",
        "its kernel acknowledges packets; afterwards, the client runs its overdue timers",
        packed=True,
        shows=("client-hung",),
    ),
    Scenario(
        "returned-again-5x",
        single_5x,
        returned_again,
        "A listener returns the same messages repeatedly",
        "each return (36) has a higher delay level",
        shows=("reconsume-growth",),
    ),
    Scenario(
        "trace-heavy-5x",
        single_5x,
        traced,
        "A producer with message trace sends small messages",
        "traces are a large share of all bytes sent",
        shows=("trace-overhead",),
        packed=True,
    ),
    Scenario(
        "stored-by-retry-5x",
        on_both(pair)[0],
        stored_again,
        "A slow broker stores messages that were already retried elsewhere",
        "two responses to one message, with different offset message ids",
        shows=("duplicate-by-retry", "late-response"),
    ),
    Scenario(
        "budget-spent-5x",
        on_both(pair)[0],
        budget_spent,
        "A broker hangs for 5 s; sendMsgTimeout is 3 s",
        "the first attempt uses the whole timeout, so there is no retry",
        shows=("first-attempt-ate-the-budget",),
    ),
    Scenario(
        "broker-name-twice-5x",
        renewing_5x,
        name_twice,
        "Two masters with one name and id",
        "the route names the one that registered last",
        shows=("broker-name-twice",),
    ),
    *both(
        "broker-throws",
        broker_throws,
        "Requests with which a broker fails",
        "the remark is a Java exception",
        shows=("broker-failed",),
    ),
)

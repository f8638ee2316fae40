"""Upkeep: accounts without a right that they need, restarts in order, rolling updates.

Public bug reports tell of each. Each scenario's text says what was provoked.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time

from dissectors.remoting.codes import RequestCode
from replay.acl import Credentials
from tests.cluster.clients.clients import start_go
from tests.cluster.servers import faults, probe
from tests.cluster.servers.artifacts import NEWEST_4
from tests.cluster.servers.cluster import Cluster
from tests.cluster.servers.proxy import proxied

from .failing.faulty import PROXY_HOST
from .scene import EVERYTHING, Scenario, Scene, single_4x, single_5x
from .security import ACCESS, SECRET, acl_5x

RIGHTS = "org.apache.rocketmq.auth.authorization.provider"
USER = "traceuser"


def with_rights() -> Cluster:
    """A broker that authenticates and authorizes every request."""
    return acl_5x(
        traceTopicEnable="true",
        authorizationEnabled="true",
        authorizationProvider=f"{RIGHTS}.DefaultAuthorizationProvider",
        authorizationMetadataProvider=f"{RIGHTS}.LocalAuthorizationMetadataProvider",
    )


def trace_refused(scene: Scene) -> None:
    """An account may send to TracedTopic but not to RMQ_SYS_TRACE_TOPIC; six messages are stored.

    broker-a refuses each batch of traces, and its retries.
    """
    _ask_as_owner(
        scene,
        RequestCode.AUTH_CREATE_USER,
        {"username": USER},
        {"username": USER, "password": SECRET, "userType": "Normal"},
    )
    right = {"resource": "Topic:TracedTopic", "actions": ["Pub"], "decision": "Allow"}
    policy = {"policyType": "Custom", "entries": [right]}
    subject = f"User:{USER}"
    _ask_as_owner(
        scene,
        RequestCode.AUTH_CREATE_ACL,
        {"subject": subject},
        {"subject": subject, "policies": [policy]},
    )
    with scene.capture():  # the first send makes the topic
        scene.run(
            "Send",
            topic="TracedTopic",
            instance="producer",
            access=USER,
            secret=SECRET,
            trace=True,
            count=6,
            pause_ms=400,
            linger_ms=4000,
        )


def _ask_as_owner(
    scene: Scene, code: RequestCode, fields: dict[str, str], body: dict[str, object]
) -> None:
    """Asks broker-a with the account that it was started with."""
    content = json.dumps(body).encode()
    Credentials(ACCESS, SECRET).sign(fields, content)
    header, _ = probe.ask(scene.broker.address, int(code), fields, content)
    assert header["code"] == 0, header


def proxy_refused(scene: Scene) -> None:
    """A proxy without innerClientAuthenticationCredentials starts in front of a broker with ACL.

    The broker refuses its first requests, and it ends.
    """
    own = f"{EVERYTHING} and not host {PROXY_HOST}"  # what waits for the proxy's port
    with scene.capture(own), contextlib.suppress(RuntimeError), proxied(scene.cluster):
        time.sleep(5.0)


def go_restart(scene: Scene) -> None:
    """broker-a is shut down gracefully under a Go consumer, and is back four seconds later.

    The consumer goes on by itself: it gets the four messages that were sent after the restart.
    """
    scene.cluster.make_topic("GoStayTopic", queues=2)
    with scene.capture():
        arguments = [scene.cluster.namesrv_text, "GoStayTopic", "2", "told", "45"]
        client = start_go(arguments)
        client.wait_for('"kind":"started"')
        time.sleep(5.0)
        scene.broker.stop()
        time.sleep(4.0)
        faults.restart(scene.cluster, scene.broker)
        scene.run("Send", topic="GoStayTopic", instance="producer", count=4)
        client.finish(120.0)


def rolling_update(scene: Scene) -> None:
    """Two consumers of a group are replaced one after the other, as in a rolling update.

    A load balancer probes broker-a by a connect without data each second. Nothing is wrong.
    """
    scene.cluster.make_topic("RollingTopic", queues=2)
    options = {"topic": "RollingTopic", "group": "rolling_group", "until_end": True}
    stopped = threading.Event()

    def probes() -> None:
        while not stopped.wait(1.0):
            socket.create_connection(scene.broker.address, 2.0, ("127.0.0.1", 0)).close()

    prober = threading.Thread(target=probes)
    with scene.capture():
        prober.start()
        sender = scene.start(
            "Send", topic="RollingTopic", instance="producer", count=30, pause_ms=600
        )
        try:
            running = [scene.start("PushConsume", instance=f"old-{n}", **options) for n in (1, 2)]
            for one in running:
                one.wait_for("started")
            time.sleep(4.0)
            for number, old in enumerate(running, 1):
                new = scene.start("PushConsume", instance=f"new-{number}", **options)
                new.wait_for("started")
                old.end_input()
                old.finish(expect=None)
                running[number - 1] = new
                time.sleep(4.0)
            sender.finish()
            time.sleep(3.0)
            for one in running:
                one.end_input()
                one.finish(expect=None)
        finally:
            stopped.set()
            prober.join()


UPKEEP: tuple[Scenario, ...] = (
    Scenario(
        "trace-refused-5x",
        with_rights,
        trace_refused,
        "A producer with message trace whose account has no right to the trace topic",
        "each send of traces is refused with 16, the messages are stored",
        shows=("trace-lost",),
        packed=True,
    ),
    Scenario(
        "proxy-refused-5x",
        acl_5x,
        proxy_refused,
        "A proxy without credentials in front of a broker with ACL",
        "the broker refuses the proxy's own request with 16, and the proxy ends",
        shows=("acl-signature",),
        packed=True,
    ),
    Scenario(
        "go-restart-4x",
        single_4x,
        go_restart,
        "A broker is restarted in order under a consumer of the Go client",
        "the consumer reconnects by itself and goes on at its stored offset",
        client=NEWEST_4,
        shows=("broker-gone",),
        packed=True,
    ),
    Scenario(
        "rolling-update-5x",
        single_5x,
        rolling_update,
        "Consumers are replaced one by one while a load balancer probes the broker",
        "connections without data; rebalances at each change; nothing is wrong",
        packed=True,
    ),
)

"""Signatures, TLS, and what is not RocketMQ at all on a broker's port."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import time
from collections.abc import Callable

from tests.cluster.clients.clients import run_java
from tests.cluster.servers import probe
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_4_SERVER, NEWEST_5
from tests.cluster.servers.cluster import BrokerSpec, Cluster

from .scene import NETWORK, Scenario, Scene, both, single_4x, single_5x

GET_MAX_OFFSET = 30
ROUTE = 105
HEART_BEAT = 34
PULL_MESSAGE = 11
SEND_MESSAGE_V2 = 310
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")
"""what a gRPC client sends first, with empty settings"""
ACCESS = "sampleaccess"
SECRET = "samplesecret12"
"""A dummy that exists for the recording only."""
AUTH = "org.apache.rocketmq.auth.authentication.provider"


def acl_5x(**more: str) -> Cluster:
    """A broker that authenticates every request; `more` settings."""
    settings = {
        "authenticationEnabled": "true",
        "authenticationProvider": f"{AUTH}.DefaultAuthenticationProvider",
        "authenticationMetadataProvider": f"{AUTH}.LocalAuthenticationMetadataProvider",
        "initAuthenticationUser": json.dumps({"username": ACCESS, "password": SECRET}),
        "innerClientAuthenticationCredentials": json.dumps(
            {"accessKey": ACCESS, "secretKey": SECRET}
        ),
        **more,
    }
    return Cluster([BrokerSpec(settings=settings)], version=NEWEST_5, network=NETWORK)


def acl_4x() -> Cluster:
    """A 4.x broker with plain ACL."""
    account = f"- accessKey: {ACCESS}\n  secretKey: {SECRET}\n  admin: true\n"
    return Cluster(
        [BrokerSpec(settings={"aclEnable": "true"})],
        version=NEWEST_4_SERVER,
        network=NETWORK,
        home_files={"conf/plain_acl.yml": f"accounts:\n{account}"},
    )


def tls_5x() -> Cluster:
    """A broker and a NameServer that speak TLS with a certificate made at their start."""
    properties = ["tls.server.mode=permissive", "tls.test.mode.enable=true"]
    return Cluster([BrokerSpec()], version=NEWEST_5, network=NETWORK, properties=properties)


def acl(scene: Scene) -> None:
    # The signed send comes first: it makes the topic that the others are refused for.
    with scene.capture():
        options = {"topic": "SignedTopic", "count": 2, "may_fail": True, "group": "acl_group"}
        scene.run("Send", instance="signed", access=ACCESS, secret=SECRET, **options)
        scene.run("Send", instance="forged", access=ACCESS, secret="another-dummy", **options)
        scene.run("Send", instance="stranger", access="nobody", secret="another-dummy", **options)
        scene.run("Send", instance="unsigned", **options)


def tls(scene: Scene) -> None:
    scene.cluster.make_topic("TlsTopic")
    with scene.capture():
        scene.run("Send", topic="TlsTopic", instance="tls", tls=True, count=3)
        scene.run("Send", topic="TlsTopic", instance="plain", count=3)


def tls_required(scene: Scene) -> None:
    """A producer in the clear comes to NameServer 127.77.0.2, which takes TLS only: it hangs up.

    Its send to TlsTopic fails, as the client gets no route.
    """
    with (
        scene.cluster.unknown_namesrv("tls.server.mode=enforcing", "tls.test.mode.enable=true") as (
            namesrv
        ),
        scene.capture(),
    ):
        run_java(
            "Send",
            namesrv.text,
            version=scene.client,
            topic="TlsTopic",
            instance="producer",
            count=1,
            expect=None,
        )


def foreign(scene: Scene) -> None:
    host, port = scene.broker.address
    openings: tuple[bytes, ...] = (
        f"GET /metrics HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: */*\r\n\r\n".encode(),
        HTTP2,
        bytes.fromhex("030000130ee000000000000100080000000000"),
        b"PROXY TCP4 127.0.0.1 127.0.0.1 40000 10911\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        bytes.fromhex("0000001000000010") + b'{"code":, broken',
        bytes.fromhex("7fffffff") + b"too long a frame",
    )
    with scene.capture():
        for opening in openings:
            with socket.create_connection((host, port), 2.0) as connection:
                connection.settimeout(0.3)
                connection.sendall(opening)
                try:
                    connection.recv(4096)
                except OSError:
                    continue
        fields = {"topic": "TBW102", "queueId": "0"}
        probe.ask((host, port), GET_MAX_OFFSET, fields, source="127.0.0.1")


def grpc_wrong_port(scene: Scene) -> None:
    """A client opens HTTP/2, as gRPC does, at the NameServer and at broker-a: in TLS, then plain.

    Both take TLS and choose no protocol (ALPN), and close the connection at the first bytes.
    """
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    trusting.set_alpn_protocols(["h2"])
    scene.cluster.make_topic("PortTopic")
    with scene.capture():
        for host, port in (scene.cluster.namesrvs[0].address, scene.broker.address):
            fields = {"topic": "PortTopic", "queueId": "0"}
            code = GET_MAX_OFFSET if (host, port) == scene.broker.address else ROUTE
            probe.ask((host, port), code, fields, source="127.0.0.1")
            for secret in (True, False, True):
                with socket.create_connection((host, port), 5.0) as plain:
                    connection = trusting.wrap_socket(plain) if secret else plain
                    connection.settimeout(2.0)
                    with contextlib.suppress(OSError):
                        connection.sendall(HTTP2)
                        connection.recv(4096)
                    connection.close()


def heartbeat_respelled(scene: Scene) -> None:
    """A client writes ClientID, ConsumerDataSet, GroupName in its heartbeats, then pulls.

    A broker of 5.5 skips these members and refuses its pulls: 24, SUBSCRIPTION_NOT_EXIST. One of
    4.9 reads them.
    """
    scene.cluster.make_topic("BeatTopic", queues=1)
    subscription = {
        "topic": "BeatTopic",
        "subString": "*",
        "expressionType": "TAG",
        "subVersion": 1,
        "tagsSet": [],
        "codeSet": [],
        "classFilterMode": False,
    }
    beat = {
        "ClientID": "127.0.0.1@respelled",
        "ProducerDataSet": [],
        "ConsumerDataSet": [
            {
                "GroupName": "beat_group",
                "ConsumeType": "CONSUME_PASSIVELY",
                "MessageModel": "CLUSTERING",
                "ConsumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                "SubscriptionDataSet": [subscription],
                "UnitMode": False,
            }
        ],
    }
    pull = {
        "consumerGroup": "beat_group",
        "topic": "BeatTopic",
        "queueId": "0",
        "queueOffset": "0",
        "maxMsgNums": "32",
        "sysFlag": "0",
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subVersion": "1",
    }
    with (
        scene.capture(),
        socket.create_connection(scene.broker.address, 10.0, ("127.0.0.1", 0)) as connection,
    ):
        for _ in range(3):
            probe.ask_on(connection, HEART_BEAT, body=json.dumps(beat).encode())
            probe.ask_on(connection, PULL_MESSAGE, pull)
            time.sleep(0.5)


def field_missing(scene: Scene) -> None:
    """A client leaves out queueId in two pulls, and b (the topic) in three sends.

    broker-a answers 1 with a NullPointerException; to sends of 4.9: The specified topic is blank.
    """
    scene.cluster.make_topic("FieldTopic", queues=1)
    fields = {"consumerGroup": "field_group", "topic": "FieldTopic", "queueOffset": "0"}
    with (
        scene.capture(),
        socket.create_connection(scene.broker.address, 10.0, ("127.0.0.1", 0)) as connection,
    ):
        for _ in range(2):
            probe.ask_on(connection, PULL_MESSAGE, fields)
        for _ in range(3):
            probe.ask_on(connection, SEND_MESSAGE_V2, {"a": "field_group"}, b"body")


def _security(
    name: str,
    cluster: Callable[[], Cluster],
    run: Callable[[Scene], None],
    what: str,
    odd: str,
    client: str,
) -> Scenario:
    keeps = frozenset({ACCESS, SECRET})
    return Scenario(name, cluster, run, what, odd, client=client, keeps=keeps)


ACL_WHAT = "Signed sends, then a wrong secret, an unknown user and no signature, all refused"

SECURITY: tuple[Scenario, ...] = (
    _security("acl-5x", acl_5x, acl, ACL_WHAT, "ext fields AccessKey and Signature", NEWEST_5),
    _security(
        "acl-4x", acl_4x, acl, ACL_WHAT, "the NameServer does not check, the broker does", NEWEST_4
    ),
    Scenario(
        "tls-5x",
        tls_5x,
        tls,
        "A TLS producer, then a plaintext one on the same ports",
        "the server offers both; the first client's conversations cannot be decoded",
    ),
    *both(
        "tls-required",
        tls_required,
        "A plaintext client connects to a server that requires TLS",
        "the server ends the connection without a response",
        shows=("tls-mismatch",),
    ),
    Scenario(
        "grpc-wrong-port-5x",
        tls_5x,
        grpc_wrong_port,
        "A client opens HTTP/2, as gRPC does, at the ports of the NameServer and the broker",
        "in TLS it offers h2 (ALPN), and the server chooses no protocol",
        shows=("grpc-on-remoting-port",),
    ),
    *both(
        "heartbeat-respelled",
        heartbeat_respelled,
        "A client with its own spelling of ClientID and other fields sends heartbeats and pulls",
        "5.5 ignores such members and refuses the pulls; 4.9 accepts them",
        shows=("heartbeat-ignored",),
    ),
    *both(
        "field-missing",
        field_missing,
        "A client omits the queue id in pulls and the topic in sends",
        "response 1 with NullPointerException; for sends, 4.9 reports a blank topic",
        shows=("required-field-missing",),
    ),
    Scenario(
        "foreign-5x",
        single_5x,
        foreign,
        "HTTP, HTTP/2, RDP, PROXY, Redis, a broken header and an impossible length on "
        "the broker's port",
        "the first four bytes are taken as a length; only the last conversation is RocketMQ",
    ),
    Scenario(
        "foreign-4x",
        single_4x,
        foreign,
        "As foreign-5x on a 4.x broker",
        client=NEWEST_4,
    ),
)

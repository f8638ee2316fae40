"""Signatures, TLS, and what is not RocketMQ at all on a broker's port."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

from tests.cluster.clients.clients import run_java
from tests.cluster.servers import probe
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_4_SERVER, NEWEST_5
from tests.cluster.servers.cluster import BrokerSpec, Cluster

from .scene import NETWORK, Scenario, Scene, both, single_4x, single_5x

GET_MAX_OFFSET = 30
ACCESS = "sampleaccess"
SECRET = "samplesecret12"
"""A dummy that exists for the recording only."""
AUTH = "org.apache.rocketmq.auth.authentication.provider"


def acl_5x() -> Cluster:
    """A broker that authenticates every request."""
    settings = {
        "authenticationEnabled": "true",
        "authenticationProvider": f"{AUTH}.DefaultAuthenticationProvider",
        "authenticationMetadataProvider": f"{AUTH}.LocalAuthenticationMetadataProvider",
        "initAuthenticationUser": json.dumps({"username": ACCESS, "password": SECRET}),
        "innerClientAuthenticationCredentials": json.dumps(
            {"accessKey": ACCESS, "secretKey": SECRET}
        ),
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
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000"),
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
        "A producer over TLS, then one in the clear on the same ports",
        "the server offers both; the first client's conversations cannot be decoded",
    ),
    *both(
        "tls-required",
        tls_required,
        "A client in the clear comes to a server that takes TLS only",
        "the server ends the connection without an answer",
        shows=("tls-mismatch",),
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

"""TLS with its secrets: captures that bring the key log of one end, and handshakes that fail.

Rules: the certificates are made for a recording and thrown away with it; the secrets in a capture
open that capture and nothing else. A Java client writes them by an agent, OpenSSL by itself.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dissectors.tcp.formats import reader_of
from dissectors.tcp.pcapng_writer import PcapngWriter
from replay.config import ProducerConfig, TlsSettings
from replay.message import Message
from replay.producer import Producer
from tests.cluster.clients.clients import run_java
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_4_SERVER, NEWEST_5, TLS_AGENT, fetch
from tests.cluster.servers.cluster import BrokerSpec, Cluster

from .scene import NETWORK, Scenario, Scene

if TYPE_CHECKING:
    from tests.cluster.servers.authority import Authority

TOPIC = "TlsTopic"
JSSE = "io.netty.handler.ssl.noOpenSsl=true"
"""the agent reads Java's own TLS, not that of a native library"""
ONLY_1_2 = "jdk.tls.client.protocols=TLSv1.2"


def _cluster(version: str, *properties: str) -> Cluster:
    own = ["tls.server.mode=permissive", "tls.test.mode.enable=true", JSSE]
    return Cluster([BrokerSpec()], version=version, network=NETWORK, properties=[*own, *properties])


def tls_5x() -> Cluster:
    """Servers of 5.x with a certificate made at their start, by Java's own TLS."""
    return _cluster(NEWEST_5)


def tls_4x() -> Cluster:
    """The same of 4.x."""
    return _cluster(NEWEST_4_SERVER)


@contextlib.contextmanager
def captured_with_secrets(scene: Scene, log: Path) -> Iterator[None]:
    """A capture as pcapng that brings the secrets that are in `log` at its end."""
    with scene.capture() as capture:
        yield
    scene.made.remove(capture.path)
    data = capture.path.read_bytes()
    reader = reader_of(0, data)
    assert reader is not None
    packets = [*reader.receive(b""), *reader.finish()]
    path = scene.folder / f"{scene.name}.pcapng"
    with path.open("wb") as file:
        writer = PcapngWriter(file, packets[0].linktype)
        writer.write_secrets(log.read_bytes())
        for one in packets:
            writer.write(one.ts, one.data[one.start : one.end], one.length)
    scene.made.append(path)


def agent_option(log: Path) -> str:
    (jar,) = fetch(TLS_AGENT).glob("*.jar")
    return f"{jar}={log}"


def _java(*properties: str) -> Callable[[Scene], None]:
    def run(scene: Scene) -> None:
        """A producer and a consumer over TLS, whose secrets an agent in both writes."""
        scene.cluster.make_topic(TOPIC)
        log = scene.folder / "keys.log"
        options = {"properties": [JSSE, *properties], "agent": agent_option(log), "tls": True}
        with captured_with_secrets(scene, log):
            scene.run("Send", topic=TOPIC, instance="producer", count=5, **options)
            scene.run("PushConsume", topic=TOPIC, instance="consumer", count=5, **options)

    return run


def _own_producer(scene: Scene) -> None:
    """The project's own producer over TLS; OpenSSL writes the secrets."""
    scene.cluster.make_topic(TOPIC)
    log = scene.folder / "keys.log"
    settings = TlsSettings(verify=False)
    os.environ["SSLKEYLOGFILE"] = str(log)
    try:
        config = ProducerConfig("own_group", scene.cluster.namesrv_text, tls=settings)
        with captured_with_secrets(scene, log), Producer(config) as producer:
            for number in range(5):
                producer.send(Message(TOPIC, b"body %d" % number))
    finally:
        del os.environ["SSLKEYLOGFILE"]


def _authority(folder: Path, name: str) -> Authority:
    from tests.cluster.servers.authority import (
        Authority,
    )

    return Authority(folder, name)


def _refused(scene: Scene, server: Sequence[str], client: Sequence[str], *, keys: bool) -> None:
    """A producer comes to NameServer 127.77.0.2 and does not get along with it."""
    log = scene.folder / "keys.log"
    with scene.cluster.unknown_namesrv(*server, port=9876) as namesrv:
        captured = captured_with_secrets(scene, log) if keys else scene.capture()
        with captured:
            run_java(
                "Send",
                namesrv.text,
                version=scene.client,
                topic=TOPIC,
                instance="producer",
                count=1,
                expect=None,
                tls=True,
                properties=[JSSE, "tls.test.mode.enable=false", *client],
                agent=agent_option(log) if keys else "",
            )


def _trusts(authority: Authority) -> list[str]:
    return ["tls.client.authServer=true", f"tls.client.trustCertPath={authority.file}"]


def _expired(*properties: str, keys: bool) -> Callable[[Scene], None]:
    def run(scene: Scene) -> None:
        """A producer comes to NameServer 127.77.0.2, whose certificate expired a year ago.

        It trusts the authority that signed it, and ends the handshake by an alert.
        """
        authority = _authority(scene.folder, "own CA")
        server, client = authority.server(-800, -365), _trusts(authority)
        _refused(scene, server, [*client, *properties], keys=keys)

    return run


def _stranger(scene: Scene) -> None:
    """A producer comes to NameServer 127.77.0.2, whose certificate an authority signed that it
    does not trust.
    """
    own = _authority(scene.folder, "own CA")
    server = _authority(scene.folder, "other CA").server(-10, 365)
    _refused(scene, server, [*_trusts(own), ONLY_1_2], keys=False)


def _no_version(scene: Scene) -> None:
    """A producer that offers TLS 1.3 only comes to NameServer 127.77.0.2, which takes 1.2 only."""
    authority = _authority(scene.folder, "own CA")
    security = scene.folder / "java.security"
    security.write_text("jdk.tls.disabledAlgorithms=TLSv1.3, TLSv1.1, TLSv1, SSLv3\n")
    server = [*authority.server(-10, 365), f"java.security.properties={security}"]
    client = [*_trusts(authority), "jdk.tls.client.protocols=TLSv1.3"]
    _refused(scene, server, client, keys=False)


ENCRYPTED: tuple[Scenario, ...] = (
    Scenario(
        "tls13-keys-5x",
        tls_5x,
        _java(),
        "A producer and a consumer over TLS 1.3, with the secrets in the file",
        "decoded as in the clear; the server's certificate is encrypted, and known",
    ),
    Scenario(
        "tls12-keys-5x",
        tls_5x,
        _java(ONLY_1_2),
        "The same over TLS 1.2",
        "the server's certificate is in the clear",
    ),
    Scenario(
        "tls12-keys-4x",
        tls_4x,
        _java(ONLY_1_2),
        "The same with 4.x",
        client=NEWEST_4,
    ),
    Scenario(
        "tls13-keys-4x",
        tls_4x,
        _java(),
        "The same with 4.x",
        client=NEWEST_4,
    ),
    Scenario(
        "tls13-keys-own-5x",
        tls_5x,
        _own_producer,
        "The project's own producer over TLS, with the secrets in the file",
        "OpenSSL on one side, Java on the other",
    ),
    *(
        Scenario(
            f"{name}-{generation}",
            tls_5x,
            run,
            what,
            odd,
            client,
            shows=("tls-mismatch",),
        )
        for generation, client in (("5x", NEWEST_5), ("4x", NEWEST_4))
        for name, run, what, odd in (
            (
                "tls-expired",
                _expired(ONLY_1_2, keys=False),
                "A producer that verifies certificates connects to a server with an expired one",
                "TLS 1.2: certificate and alert are not encrypted",
            ),
            (
                "tls-expired-keys",
                _expired(keys=True),
                "The same over TLS 1.3, with the secrets in the file",
                "certificate and alert are encrypted",
            ),
            (
                "tls-stranger",
                _stranger,
                "A producer connects to a server whose CA it does not trust",
                "the alert follows the certificate",
            ),
            (
                "tls-no-version",
                _no_version,
                "A producer that requires TLS 1.3 connects to a server with TLS 1.2 only",
                "the server answers the ClientHello with an alert",
            ),
        )
    ),
)

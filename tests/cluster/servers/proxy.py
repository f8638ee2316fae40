"""A proxy of RocketMQ 5.x in front of a cluster: clients speak remoting with it, it with brokers.

RocketMQ: ProxyStartup, RemotingProtocolServer.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator, Mapping

from . import probe
from .artifacts import PROXY_5, class_path
from .authority import Authority
from .class_archive import PROXY
from .cluster import CLUSTER_NAME, START_SECONDS, Broker, Cluster, Node
from .processes import java_command, port_is_free, wait_until

FIRST_PORT = 18080
"""Not the default, 8080, which other tools take for HTTP."""


@contextlib.contextmanager
def proxied(
    cluster: Cluster,
    *,
    version: str = PROXY_5,
    settings: Mapping[str, object] | None = None,
) -> Iterator[Node]:
    """A proxy, in cluster mode; its remoting port is what clients take for their NameServer.

    Clients of gRPC take the port above that one, see `grpc_text`.
    """
    assert cluster.folder is not None
    with _running(cluster, f"{cluster.network}.71", version, "cluster", settings or {}) as node:
        yield node


@contextlib.contextmanager
def with_broker(cluster: Cluster, *, version: str = PROXY_5) -> Iterator[Node]:
    """A proxy in local mode: one process that is proxy and, in its place, the first broker.

    The broker's own process is killed; its address, settings and store are the proxy's then.
    """
    broker = cluster.brokers[0]
    broker.kill()
    settings = {"brokerConfigPath": str(broker.folder / "broker.properties")}
    with _running(cluster, broker.host, version, "local", settings) as node:
        wait_until("it is listed", lambda: _is_listed(cluster, broker), START_SECONDS)
        yield node


@contextlib.contextmanager
def _running(
    cluster: Cluster, host: str, version: str, mode: str, settings: Mapping[str, object]
) -> Iterator[Node]:
    assert cluster.folder is not None
    # It takes the port on all addresses, and late: each network begins at one of its own.
    first = FIRST_PORT + 20 * int(cluster.network.rpartition(".")[2])
    port = next(port for port in range(first, first + 900, 2) if port_is_free(host, port))
    folder = cluster.folder / "proxy"
    (folder / "conf").mkdir(parents=True, exist_ok=True)
    certificate, key = Authority(folder, "authority").files(-1, 365)
    lines = {
        "proxyMode": mode.upper(),
        "rocketMQClusterName": CLUSTER_NAME,
        "namesrvAddr": cluster.namesrv_text,
        "localServeAddr": host,
        "remotingAccessAddr": host,
        "remotingListenPort": port,
        "grpcServerPort": port + 1,
        "metricsExporterType": "DISABLE",
        # To make a certificate of its own takes as long as the rest of its start.
        "tlsTestModeEnable": False,
        "tlsCertPath": str(certificate),
        "tlsKeyPath": str(key),
        **settings,
    }
    config = folder / "conf" / "rmq-proxy.json"
    config.write_text(json.dumps(lines))
    command = java_command(
        class_path(version),
        PROXY,
        ["-pc", str(config), "-n", cluster.namesrv_text, "-pm", mode],
        folder,
        properties=[f"rocketmq.home.dir={folder}", f"user.home={folder}"],
    )
    node = Node("proxy", host, port, folder, command)
    node.start()
    try:
        wait_until(f"proxy (logs in {folder})", lambda: _listens(node), START_SECONDS)
        yield node
        if node.alive():
            node.running().keep_classes()
    finally:
        node.kill()


def grpc_text(proxy: Node) -> str:
    """`host:port` at which a proxy speaks gRPC."""
    return f"{proxy.host}:{proxy.port + 1}"


def _is_listed(cluster: Cluster, broker: Broker) -> bool:
    return all(probe.is_registered(node.address, broker.registered_as) for node in cluster.namesrvs)


def _listens(node: Node) -> bool:
    node.running()
    with contextlib.suppress(OSError), socket.create_connection(node.address, 1.0):
        return True
    return False

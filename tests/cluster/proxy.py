"""A proxy of RocketMQ 5.x in front of a cluster: clients speak remoting with it, it with brokers.

RocketMQ: ProxyStartup, RemotingProtocolServer.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator

from .artifacts import PROXY_5, class_path
from .cluster import CLUSTER_NAME, START_SECONDS, Cluster, Node
from .processes import java_command, port_is_free, wait_until

MAIN = "org.apache.rocketmq.proxy.ProxyStartup"
FIRST_PORT = 18080
"""Not the default, 8080, which other tools take for HTTP."""


@contextlib.contextmanager
def proxied(cluster: Cluster) -> Iterator[Node]:
    """A proxy in cluster mode; its remoting port is what clients take for their NameServer."""
    assert cluster.folder is not None
    host = f"{cluster.network}.71"
    port = next(port for port in range(FIRST_PORT, FIRST_PORT + 900, 2) if port_is_free(host, port))
    folder = cluster.folder / "proxy"
    (folder / "conf").mkdir(parents=True)
    settings = {
        "proxyMode": "CLUSTER",
        "rocketMQClusterName": CLUSTER_NAME,
        "namesrvAddr": cluster.namesrv_text,
        "localServeAddr": host,
        "remotingAccessAddr": host,
        "remotingListenPort": port,
        "grpcServerPort": port + 1,
        "metricsExporterType": "DISABLE",
    }
    config = folder / "conf" / "rmq-proxy.json"
    config.write_text(json.dumps(settings))
    command = java_command(
        class_path(PROXY_5),
        MAIN,
        ["-pc", str(config), "-n", cluster.namesrv_text, "-pm", "cluster"],
        folder,
        properties=[f"rocketmq.home.dir={folder}", f"user.home={folder}"],
    )
    node = Node("proxy", host, port, folder, command)
    node.start()
    try:
        wait_until(f"proxy (logs in {folder})", lambda: _listens(node), START_SECONDS)
        yield node
    finally:
        node.kill()


def _listens(node: Node) -> bool:
    node.running()
    with contextlib.suppress(OSError), socket.create_connection(node.address, 1.0):
        return True
    return False

"""Default ports of RocketMQ programs.

RocketMQ: NettyServerConfig, BrokerController, MessageStoreConfig, ControllerConfig, ProxyConfig.
"""

from __future__ import annotations

from typing import Final

NAMESRV: Final = 9876
BROKER: Final = 10911
"""listenPort"""
VIP_BELOW: Final = 2
"""a broker's VIP channel listens this many ports below its own"""
VIP: Final = BROKER - VIP_BELOW
"""second broker port, for requests that must not wait behind pulls"""
REPLICATION: Final = BROKER + 1
"""haListenPort"""
CONTAINER: Final = 10811
"""a process of several brokers"""
CONTROLLER: Final = 19876
PROXY: Final = 8080
"""remotingListenPort"""
PROXY_GRPC: Final = 8081
"""grpcServerPort"""

"""Rules about connections, addresses, and other protocols."""

from typing import Final

MODULES: Final[tuple[str, ...]] = (
    "broker_gone",
    "broker_hung",
    "broker_slow",
    "broker_slow_vs_network",
    "packets_unacknowledged",
    "connection_cut",
    "idle_close",
    "go_away",
    "namesrv_gone",
    "vip_port_unreachable",
    "wrong_broker_address",
    "wrong_proxy_address",
    "proxy_cannot_reach_broker",
    "tls_mismatch",
    "encrypted",
    "foreign_protocol",
    "grpc_on_remoting_port",
    "frame_too_long",
    "capture_quality",
    "fault_injected",
)
"""modules with a `RULE`, in the order of the document"""

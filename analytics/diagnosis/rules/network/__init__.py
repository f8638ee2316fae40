"""Rules about connections, addresses and other protocols."""

from typing import Final

MODULES: Final[tuple[str, ...]] = (
    "broker_gone",
    "namesrv_gone",
    "connection_cut",
    "broker_hung",
    "broker_slow",
)
"""modules with a `RULE`, in the order of the document"""

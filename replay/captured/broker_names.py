"""What the brokers at captured addresses are called, by the routes that the capture has.

Rules: a request of an older client names no broker, but the route that it was chosen by came before
it. An address that several brokers are said to have, as a proxy's is, has none of their names.
RocketMQ: TopicRouteData, MixAll.brokerVIPChannel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.foreign import natural_of
from dissectors.remoting.broker_addresses import SEPARATOR

MAX_NAMES: Final = 65_536
"""addresses of which the name is remembered; others are called by their address"""
_SEVERAL: Final = ""


class BrokerNames:
    """Names of brokers by address; told by routes, asked for by sends."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def note(self, brokers: Iterable[str]) -> None:
        """Remember addresses as the column `brokers` has them."""
        for told in brokers:
            name, _, address = told.rpartition(SEPARATOR)
            known = self._names.get(address)
            if known is None and len(self._names) < MAX_NAMES:
                self._names[address] = name
            elif known != name and known is not None:
                self._names[address] = _SEVERAL

    def of(self, address: str) -> str:
        """Return the name of the broker at an address, or at the VIP channel below it."""
        return self._names.get(address) or self._names.get(_above_vip(address)) or address


def _above_vip(address: str) -> str:
    host, _, port = address.rpartition(":")
    number = natural_of(port)
    return f"{host}:{number + 2}" if number is not None and len(port) < 6 else address

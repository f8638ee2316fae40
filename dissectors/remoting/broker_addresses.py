"""The addresses of brokers that an answer of a NameServer names, without reading its whole body.

A row needs only names and addresses, and routes come often, so they are searched for and the JSON
is not taken apart; one pass, whatever the bytes are.
RocketMQ: TopicRouteData, ClusterInfo, BrokerData.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

MAX_BROKERS: Final = 256
"""addresses of one answer that are named; the largest clusters have some dozens"""
SEPARATOR: Final = "="
"""between a broker's name and one of its addresses; an address has none"""

ROUTES_REMEMBERED: Final = 64
"""routes of which it is remembered what they say: clients ask for the same ones all the time"""
MOST_REMEMBERED: Final = 16_384
"""bytes of such a route"""
_MARK: Final = b'"brokerAddrs"'
_BROKER: Final = re.compile(rb'\{([^{}]*)"brokerAddrs"[ \t\r\n]*:[ \t\r\n]*\{([^{}]*)\}([^{}]*)\}')
_NAME: Final = re.compile(rb'"brokerName"[ \t\r\n]*:[ \t\r\n]*"([!#-\[\]-~]{1,127})"')
_ADDRESS: Final = re.compile(rb'"?\d{1,19}"?[ \t\r\n]*:[ \t\r\n]*"([0-9A-Za-z.:\[\]_-]{3,127})"')


def broker_addresses_of(body: bytes) -> list[str]:
    """Return each broker address of a route or of a cluster's description as ``name=address``.

    Masters and slaves of a broker share its name. Empty where the body names none.
    """
    if body.find(_MARK) < 0:
        return []
    if len(body) <= MOST_REMEMBERED:
        return list(_addresses_remembered(body))
    return _addresses_in(body)


@lru_cache(ROUTES_REMEMBERED)
def _addresses_remembered(body: bytes) -> tuple[str, ...]:
    return tuple(_addresses_in(body))


def _addresses_in(body: bytes) -> list[str]:
    found: dict[str, None] = {}
    for broker in _BROKER.finditer(body):
        name = _NAME.search(broker[1]) or _NAME.search(broker[3])
        if name is None:
            continue
        for address in _ADDRESS.finditer(broker[2]):
            found[named_address(name[1].decode(), address[1].decode())] = None
            if len(found) == MAX_BROKERS:
                return sorted(found)
    return sorted(found)


def named_address(name: str, address: str) -> str:
    """Return the form of a broker's name and address in the column `brokers`."""
    return f"{name}{SEPARATOR}{address}"


def address_of(named: str) -> str:
    """Return the address in a value of the column `brokers`."""
    return named.rpartition(SEPARATOR)[2]

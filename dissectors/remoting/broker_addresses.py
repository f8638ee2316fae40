"""Find broker addresses in NameServer responses without decoding their bodies.

A row needs only names and addresses, and routes are frequent, so one linear pass over the bytes
searches for them. RocketMQ: TopicRouteData, ClusterInfo, BrokerData.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Final

from .code_names import OPERATIONS

MAX_BROKERS: Final = 256
"""maximum addresses of a response; the largest clusters have some dozens"""
SEPARATOR: Final = "="
"""separates a broker name from an address, which never contains it"""

ROUTES_REMEMBERED: Final = 64
"""cached routes: clients request the same ones all the time"""
MOST_REMEMBERED: Final = 16_384
"""maximum bytes of a cached route"""
_MARK: Final = b'"brokerAddrs"'
_BROKER: Final = re.compile(rb'\{([^{}]*)"brokerAddrs"[ \t\r\n]*:[ \t\r\n]*\{([^{}]*)\}([^{}]*)\}')
_NAME: Final = re.compile(rb'"brokerName"[ \t\r\n]*:[ \t\r\n]*"([!#-\[\]-~]{1,127})"')
# fastjson writes broker ids without quotes; clients since 4.9.4 are sent standard JSON.
_ADDRESS: Final = re.compile(rb'"?\d{1,19}"?[ \t\r\n]*:[ \t\r\n]*"([0-9A-Za-z.:\[\]_-]{3,127})"')
_TABLE: Final = re.compile(rb'("brokerAddrs"[ \t\r\n]*:[ \t\r\n]*\{)([^{}]*)(?=\})')
_IN_TABLE: Final = re.compile(rb'(:[ \t\r\n]*")([0-9A-Za-z.:\[\]_-]{3,255})(?=")')
_ONE: Final = re.compile(rb'("brokerAddr"[ \t\r\n]*:[ \t\r\n]*")([0-9A-Za-z.:\[\]_-]{3,255})(?=")')
_MEMBERS: Final = ("brokerAddrs", "brokerAddr")
"""body members with broker addresses for clients"""


def _has_addresses(name: str, asked: frozenset[str] = frozenset()) -> bool:
    """Return whether a body class has such a member, directly or nested."""
    from .bodies.classes import CLASSES, ShortMember  # loads all tables; rows need only the names

    members = CLASSES.get(name)
    if members is None or name in asked:
        return False
    types = [item.java_type if isinstance(item, ShortMember) else item for item in members.values()]
    return any(member in members for member in _MEMBERS) or any(
        _has_addresses(inner, asked | {name})
        for text in types
        for inner in re.findall(r"[A-Za-z.]+", text)
    )


@cache
def answered_with_addresses() -> frozenset[int]:
    """Return request codes whose responses name brokers: routes, clusters, member groups."""
    return frozenset(
        code
        for code, operation in OPERATIONS.items()
        if operation.response_body is not None and _has_addresses(operation.response_body)
    )


def with_broker_addresses(body: bytes, front_of: Callable[[str, str], str]) -> bytes:
    """Replace the broker addresses in a response body; everything else stays.

    `front_of` maps broker name (empty if absent) and address to the new address. Both JSON dialects
    of NameServers are supported.
    """
    names = {address_of(one): one.rpartition(SEPARATOR)[0] for one in broker_addresses_of(body)}

    def one(match: re.Match[bytes]) -> bytes:
        address = match[2].decode()
        return match[1] + front_of(names.get(address, ""), address).encode()

    def table(match: re.Match[bytes]) -> bytes:
        return match[1] + _IN_TABLE.sub(one, match[2])

    return _ONE.sub(one, _TABLE.sub(table, body))


def broker_addresses_of(body: bytes) -> list[str]:
    """Return the broker addresses of a route or a cluster description as ``name=address``.

    Masters and slaves of a broker share its name. Empty if the body has none.
    """
    if body.find(_MARK) < 0:  # most bodies: faster than the pattern
        return []
    if len(body) <= MOST_REMEMBERED:
        return list(_addresses_remembered(body))
    return _addresses_in(body)


@lru_cache(ROUTES_REMEMBERED)
def _addresses_remembered(body: bytes) -> tuple[str, ...]:
    return tuple(_addresses_in(body))


def _addresses_in(body: bytes) -> list[str]:
    addresses: dict[str, None] = {}
    for broker in _BROKER.finditer(body):
        # fastjson 1 sorts members; other writers may put the name before or behind the addresses.
        name = _NAME.search(broker[1]) or _NAME.search(broker[3])
        if name is None:
            continue
        for address in _ADDRESS.finditer(broker[2]):
            addresses[named_address(name[1].decode(), address[1].decode())] = None
            if len(addresses) == MAX_BROKERS:
                return sorted(addresses)
    return sorted(addresses)


def named_address(name: str, address: str) -> str:
    """Return name and address of a broker in the form of the column `brokers`."""
    return f"{name}{SEPARATOR}{address}"


def address_of(named: str) -> str:
    """Return the address in a value of the column `brokers`."""
    return named.rpartition(SEPARATOR)[2]

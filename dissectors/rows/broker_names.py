"""Broker names by address, resolved from all rows: one rule for every view.

A route, a cluster query, or a registration names the broker at an address. An address without one
gets the broker name in sends and fetches to it. The state is bounded, mergeable, and independent of
the order of rows.
RocketMQ: TopicRouteData, ClusterInfo, MixAll.brokerVIPChannel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ..foreign import natural_of
from ..ports import VIP_BELOW
from ..remoting.broker_addresses import SEPARATOR
from ..remoting.code_names import request_name
from ..remoting.code_sets import FETCHES, SENDS
from ..remoting.codes import ResponseCode
from .record import ExchangeRecord

MAX_ADDRESSES: Final = 65_536
"""addresses with a name; others are shown as addresses"""
MAX_NAMES: Final = 64
"""different names per address; further names of a proxy change nothing"""
NAMING_CODES: Final = SENDS | FETCHES
"""codes of the requests that name their broker"""
NAMING_REQUESTS: Final = frozenset(map(request_name, NAMING_CODES))
"""names of these requests"""
_LAST_PORT: Final = 65_535
_SUCCESS: Final = int(ResponseCode.SUCCESS)
_AGREEMENT: Final = 0.8
"""share of the requests to an address that must agree if several names are at home there"""
_AT_HOME: Final = 0.7
"""a name is at home where its share is at least this fraction of its largest share"""

Counts = dict[str, dict[str, int]]
"""address -> name -> how often"""


@dataclass(slots=True)
class BrokerNames:
    """Broker names by address, from routes and requests."""

    routed: Counts = field(default_factory=dict)
    """from routes, cluster queries, and registrations"""
    served: Counts = field(default_factory=dict)
    """from sends and fetches that succeeded"""
    asked: Counts = field(default_factory=dict)
    """from other requests, for addresses without a success"""
    _resolved: dict[str, str] | None = field(default=None, init=False, compare=False, repr=False)
    """the resolved names; None: not yet resolved"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Add the names in an exchange, which may be pending."""
        if row.request_code in NAMING_CODES and row.broker_name:
            served = row.response_code == _SUCCESS
            self.add_requested(row.server_address, row.broker_name, served=served)
        if row.brokers:
            self.add_routed(row.brokers)

    def add_routed(self, brokers: Iterable[str], count: int = 1) -> None:
        """Add a value of the column `brokers`: ``name=address`` each."""
        for entry in brokers:
            name, _, address = entry.rpartition(SEPARATOR)
            self._add(self.routed, address, name, count)

    def add_requested(self, address: str, name: str, count: int = 1, served: bool = True) -> None:
        """Add sends or fetches to `address` that name a broker; `served`: they succeeded.

        A refused retry may carry the name of another broker.
        """
        self._add(self.served if served else self.asked, address, name, count)

    def merge(self, other: BrokerNames) -> None:
        """Merge the names from other rows."""
        for counts, other_counts in (
            (self.routed, other.routed), (self.served, other.served), (self.asked, other.asked),
        ):  # fmt: skip
            for address, names in other_counts.items():
                for name, count in names.items():
                    self._add(counts, address, name, count)

    def names(self) -> Mapping[str, str]:
        """Return address -> name for all named addresses, without VIP channels."""
        if self._resolved is None:
            resolved = {address: _only_name(names) for address, names in self.routed.items()}
            # `asked` counts only at addresses where no request succeeded.
            for address, name in _at_home(self.asked | self.served).items():
                resolved.setdefault(address, name)
            self._resolved = {address: name for address, name in resolved.items() if name}
        return self._resolved

    def names_with_vip(self) -> dict[str, str]:
        """Return `names`, extended to the brokers' VIP channels."""
        names = dict(self.names())
        for address, name in self.names().items():
            if (vip := _moved(address, -VIP_BELOW)) is not None:
                # Another broker may listen there itself; its own name stays.
                names.setdefault(vip, name)
        return names

    def own_address(self, address: str) -> str:
        """Return the named address: this one, or the one whose VIP channel it is."""
        names = self.names()
        if address not in names:
            own = _moved(address, VIP_BELOW)
            if own is not None and own in names:
                return own
        return address

    def of(self, address: str) -> str:
        """Return the broker name for an address or VIP channel, or else the address."""
        return self.names().get(self.own_address(address), address)

    def _add(self, counts: Counts, address: str, name: str, count: int) -> None:
        names = counts.get(address)
        if names is None:
            if not name or len(counts) >= MAX_ADDRESSES:
                return
            names = counts[address] = {}
        known = names.get(name)
        if known is None:
            if not name or len(names) >= MAX_NAMES:
                return
            known = 0
        # Counting the only name of a route again, the usual case, changes no name.
        if known == 0 or len(names) > 1 or counts is not self.routed:
            self._resolved = None
        names[name] = known + count


def _only_name(names: Mapping[str, int]) -> str:
    """Return the only name of an address, or "" for several, as at a proxy."""
    return next(iter(names)) if len(names) == 1 else ""


def _at_home(requests: Counts) -> dict[str, str]:
    """Return address -> name from the shares of the requests."""
    # Requests carry the broker that was intended, and an asynchronous retry keeps the old name
    # (https://github.com/apache/rocketmq/issues/1497). So a name is at home where its share of the
    # requests is largest, and an address with several such names needs a clear majority.
    totals = {address: sum(names.values()) for address, names in requests.items()}
    best: dict[str, float] = {}
    for address, names in requests.items():
        for name, count in names.items():
            best[name] = max(best.get(name, 0.0), count / totals[address])
    resolved = {}
    for address, names in requests.items():
        home = [
            (count, name)
            for name, count in names.items()
            if count / totals[address] >= best[name] * _AT_HOME
        ]
        if home:
            count, name = max(home)
            if len(home) == 1 or count / totals[address] >= _AGREEMENT:
                resolved[address] = name
    return resolved


def _moved(address: str, by: int) -> str | None:
    """Return an address with its port shifted, or None if there is no such port."""
    host, _, port = address.rpartition(":")
    number = natural_of(port) if len(port) < 6 else None
    if not host or number is None or not 0 < number + by <= _LAST_PORT:
        return None
    return f"{host}:{number + by}"

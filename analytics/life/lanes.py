"""The parties of a message trace: producers, proxies, brokers, consumers, one name each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from dissectors.rows.message_record import CHECKED, DELIVERED, VIEWED, MessageRecord
from dissectors.rows.outcome import is_call

PRODUCER: Final = "producer"
PROXY: Final = "proxy"
"""server of gRPC clients; in local mode it is also the broker"""
BROKER: Final = "broker"
CONSUMER: Final = "consumer"
SLAVE: Final = "slave"
KINDS: Final = (PRODUCER, PROXY, BROKER, SLAVE, CONSUMER)
"""kinds in display order"""


class Lane(NamedTuple):
    """One party."""

    kind: str
    """one of KINDS"""
    name: str
    """client id or broker name, or the address if unknown"""


REPLICATED: Final = "replicated"
"""a step without a table row: replication of the message to a slave"""
CONNECT_FAILED: Final = "connect failed"
"""a step without a table row: an attempt to send that ended before its request"""


def is_of_consumer(row: MessageRecord) -> bool:
    """Return whether the client of a row is a consumer, not a tool that queries messages."""
    return row.consumer_group is not None or row.event in (DELIVERED, VIEWED)


class Parties:
    """Names of all clients and brokers in the rows of a message."""

    def __init__(
        self,
        rows: Iterable[MessageRecord],
        client_ids: Mapping[tuple[int, str], str],
        relays: Collection[str] = (),
    ) -> None:
        """Take `client_ids`: conversation and address → client id, wherever it appeared.

        `relays`: addresses of proxies that speak remoting.
        """
        self._clients = client_ids
        self._relays = relays
        names: dict[str, str] = {}
        hosts: dict[str, set[str]] = {}
        for row in rows:
            if row.broker_name is not None and not self._is_to_proxy(row):
                names.setdefault(row.server_address, row.broker_name)
                hosts.setdefault(row.broker_name, set()).add(row.server_address.rpartition(":")[0])
        # master and slave have one name, and so need their addresses
        self._brokers = {
            address: name if len(hosts[name]) == 1 else f"{name} {address}"
            for address, name in names.items()
        }

    def client(self, row: MessageRecord, outer: MessageRecord | None = None) -> Lane:
        """Return the client of a row; for an inner hop this is the proxy."""
        if outer is not None:
            return Lane(PROXY, outer.server_address)
        key = row.conversation, row.client_address
        name = row.client_id or self._clients.get(key) or row.client_address
        return Lane(CONSUMER if is_of_consumer(row) else PRODUCER, name)

    def broker(self, row: MessageRecord) -> Lane:
        """Return the broker of a row, or the proxy."""
        if self._is_to_proxy(row):
            return Lane(PROXY, row.server_address)
        return Lane(BROKER, self._brokers.get(row.server_address, row.server_address))

    def ends(self, row: MessageRecord, outer: MessageRecord | None = None) -> tuple[Lane, Lane]:
        """Return sender and receiver of the message in a row.

        `outer`: the row that caused this one through a relay.
        """
        if row.event == REPLICATED:
            return self.broker(row), Lane(SLAVE, row.client_address)
        client, broker = self.client(row, outer), self.broker(row)
        return (broker, client) if row.event in (DELIVERED, VIEWED, CHECKED) else (client, broker)

    def _is_to_proxy(self, row: MessageRecord) -> bool:
        return is_call(row.request_name) or row.server_address in self._relays

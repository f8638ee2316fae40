"""The summary of a run: requests, outcomes, clients, and capture quality.

Rules: memory is bounded, whatever the capture holds: each table has a limit (`MAX_KEYS`), beyond
which things are counted together, and percentiles come from histograms that are at most 0.8 % off.
Latencies are those of answered exchanges; requests that wait on purpose are not among the slowest.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from dissectors.endpoint import host_of
from dissectors.findings import Finding, FindingKind
from dissectors.histogram import Histogram
from dissectors.rows.outcome import EXPECTED, FAILED, LONG_POLLS, is_failure
from dissectors.rows.record import ONEWAY, ORPHAN, UNANSWERED, ExchangeRecord
from dissectors.rows.relays import Relays

MAX_KEYS = 500
"""Most rows of a table; a hostile capture could have millions."""
MAX_PEERS = 2000
"""Most rows of clients and conversations, which are small."""
MAX_NAMES = 20
"""Names of requests that are kept for a response code."""
MAX_PAIRS = 100_000
"""Pairs of client and conversation that are remembered to count a client's connections."""
SLOWEST = 5
"""Number of slowest exchanges that are shown."""
OTHERS = "(others)"

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(slots=True)
class Outcomes:
    """Outcomes of exchanges."""

    count: int = 0
    """exchanges"""
    failed: int = 0
    """answered with a failure"""
    unanswered: int = 0
    """not answered within the capture"""
    bytes: int = 0
    """of both frames"""


@dataclass(slots=True)
class OperationCount(Outcomes):
    """Outcomes of the requests of one kind."""

    oneway: int = 0
    """for which no response is expected"""
    latency: Histogram = field(default_factory=Histogram)
    """microseconds of the answered ones"""


@dataclass(slots=True)
class ResponseCount:
    """How often a response came, and an example."""

    count: int = 0
    failed: int = 0
    requests: dict[str, int] = field(default_factory=dict)
    """requests by name"""
    example: ExchangeRecord | None = None


@dataclass(slots=True)
class Peer(Outcomes):
    """A client: an address with a language and a version, or a conversation."""

    first: ExchangeRecord | None = None
    reversed: int = 0
    """exchanges requested by the other end"""
    conversations: set[int] = field(default_factory=set)
    """numbers of its conversations, as many as are remembered"""


class ClientKey(NamedTuple):
    """The key of a client's row."""

    address: str
    """without the port"""
    language: str
    """language that it reports; empty: none"""
    version: str
    """MQVersion name"""


class Bounded(Generic[Key, Value]):
    """A table of at most `limit` rows, and one row for the rest."""

    def __init__(self, make: Callable[[], Value], others: Key, limit: int = MAX_KEYS) -> None:
        """`make` creates a row; `others` is the key of the row for everything beyond the limit."""
        self._make = make
        self._limit = limit
        self._others = others
        self.rows: dict[Key, Value] = {}
        """the table"""

    def row(self, key: Key) -> Value:
        """Return the row of `key`."""
        row = self.rows.get(key)
        if row is None:
            if len(self.rows) >= self._limit:
                key = self._others
            row = self.rows.setdefault(key, self._make())
        return row


class Summary:
    """Counts exchanges and findings."""

    def __init__(self) -> None:
        self.statuses: dict[str, int] = {}
        """status -> exchanges"""
        self.operations: Bounded[str, OperationCount] = Bounded(OperationCount, OTHERS)
        """by request name"""
        self.responses: Bounded[tuple[int, str], ResponseCount] = Bounded(
            ResponseCount, (-1, OTHERS)
        )
        """by response code and name"""
        self.servers: Bounded[str, OperationCount] = Bounded(OperationCount, OTHERS)
        """by server address and port, without requests that wait on purpose"""
        self.clients: Bounded[ClientKey, Peer] = Bounded(Peer, ClientKey(OTHERS, "", ""), MAX_PEERS)
        """by address, language and version"""
        self.conversations: Bounded[int, Peer] = Bounded(Peer, -1, MAX_PEERS)
        """by number"""
        self.relays = Relays()
        """sends through proxies beside what these asked brokers"""
        self.slowest: list[tuple[int, int, ExchangeRecord]] = []
        """(latency, less its number, exchange), not in order"""
        self.findings: dict[FindingKind, Finding] = {}
        """the first finding of each kind"""
        self.exchanges = 0
        """exchanges counted"""
        self.first_time: int | None = None
        """time of the earliest command counted"""
        self.last_time: int | None = None
        """time of the latest command counted"""
        self._pairs = 0

    def add(self, records: Sequence[ExchangeRecord]) -> None:
        """Count exchanges."""
        for record in records:
            self.exchanges += 1
            self.statuses[record.status] = self.statuses.get(record.status, 0) + 1
            failed = record.outcome_class == FAILED
            if record.status != ORPHAN:  # a response has neither request nor client
                self._add_operations(record, failed)
            self._add_response(record)
            self._add_peers(record, failed)
            self.relays.add(record)
            self._note_times(record)

    def add_findings(self, findings: Iterable[Finding]) -> None:
        """Keep the first finding of each kind as the example."""
        for info in findings:
            self.findings.setdefault(info.kind, info)

    def _add_operations(self, record: ExchangeRecord, failed: bool) -> None:
        waits = record.request_name in LONG_POLLS
        _count(self.operations.row(record.request_name or "?"), record, failed)
        if not waits and record.status != ONEWAY:
            _count(self.servers.row(record.server_address), record, failed)
        if record.latency_us is not None and not waits:
            self._note_slow(record.latency_us, record)

    def _note_slow(self, latency: int, record: ExchangeRecord) -> None:
        # The number decides between equal latencies, because records have no order.
        entry = (latency, -self.exchanges, record)
        if len(self.slowest) < SLOWEST:
            heapq.heappush(self.slowest, entry)
        elif latency > self.slowest[0][0]:
            heapq.heapreplace(self.slowest, entry)

    def _add_response(self, record: ExchangeRecord) -> None:
        code = record.response_code
        if code is None:
            return
        response = self.responses.row((code, record.response_name or "?"))
        if response.example is None:
            response.example = record
        if record.outcome_class != EXPECTED:
            response.failed += is_failure(record.response_name)  # orphans, too
        response.count += 1
        name = record.request_name or "?"
        if name in response.requests or len(response.requests) < MAX_NAMES:
            response.requests[name] = response.requests.get(name, 0) + 1

    def _add_peers(self, record: ExchangeRecord, failed: bool) -> None:
        peers = [self.conversations.row(record.conversation)]
        if record.status != ORPHAN:
            host, language = host_of(record.client_address), record.language or ""
            client = self.clients.row(ClientKey(host, language, record.version_name or ""))
            peers.append(client)
            # The sets of all clients together are bounded, not each of them.
            if record.conversation not in client.conversations and self._pairs < MAX_PAIRS:
                client.conversations.add(record.conversation)
                self._pairs += 1
        for peer in peers:
            peer.count += 1
            peer.failed += failed
            peer.unanswered += record.status == UNANSWERED
            peer.bytes += (record.request_bytes or 0) + (record.response_bytes or 0)
            if peer.first is None:
                peer.first = record
            elif peer.first.client_address == record.server_address:  # brokers send requests, too
                peer.reversed += 1

    def _note_times(self, record: ExchangeRecord) -> None:
        first = record.request_time if record.request_time is not None else record.response_time
        last = record.response_time if record.response_time is not None else record.request_time
        if first is not None and (self.first_time is None or first < self.first_time):
            self.first_time = first
        if last is not None and (self.last_time is None or last > self.last_time):
            self.last_time = last


def _count(operation: OperationCount, record: ExchangeRecord, failed: bool) -> None:
    operation.count += 1
    operation.failed += failed
    operation.unanswered += record.status == UNANSWERED
    operation.oneway += record.status == ONEWAY
    operation.bytes += (record.request_bytes or 0) + (record.response_bytes or 0)
    if record.latency_us is not None:
        operation.latency.add(record.latency_us)

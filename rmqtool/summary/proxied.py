"""Sends through a proxy that speaks gRPC: how long clients waited, and how much was the broker's.

Rules: a call and what the proxy asks the broker for it have one message id, and the one is within
the time of the other. Nothing is kept before the first call of a capture, and little afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from dissectors.histogram import Histogram
from dissectors.remoting.code_sets import SENDS
from dissectors.rows.outcome import is_call, is_send
from dissectors.rows.record import ExchangeRecord

MAX_WAITING: Final = 10_000
"""sends of one side whose other side was not seen yet"""
MAX_ROWS: Final = 200


@dataclass(slots=True)
class ProxiedSends:
    """Sends through one proxy to one broker, in microseconds."""

    client: Histogram = field(default_factory=Histogram)
    """what clients waited"""
    broker: Histogram = field(default_factory=Histogram)
    """of that what the proxy waited for the broker"""
    proxy: Histogram = field(default_factory=Histogram)
    """the rest"""


class Proxied:
    """Pairs calls with what is behind them."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], ProxiedSends] = {}
        """by the address of the proxy and that of the broker"""
        self._has_calls = False
        self._calls: dict[str, ExchangeRecord] = {}
        self._sends: dict[str, ExchangeRecord] = {}

    def add(self, record: ExchangeRecord) -> None:
        """Take an exchange."""
        if record.request_code is None:
            if is_call(record.request_name):
                self._has_calls = True
                if is_send(record.request_name):
                    self._pair(record, self._sends, self._calls, is_outer=True)
        elif self._has_calls and record.request_code in SENDS:
            self._pair(record, self._calls, self._sends, is_outer=False)

    def _pair(
        self,
        record: ExchangeRecord,
        others: dict[str, ExchangeRecord],
        own: dict[str, ExchangeRecord],
        *,
        is_outer: bool,
    ) -> None:
        key = record.unique_key
        if key is None or record.latency_us is None:
            return
        other = others.get(key)
        if other is not None:
            call, behind = (record, other) if is_outer else (other, record)
            if _is_behind(behind, call):
                del others[key]
                self._count(call, behind)
                return
        own[key] = record
        if len(own) > MAX_WAITING:
            del own[next(iter(own))]

    def _count(self, call: ExchangeRecord, behind: ExchangeRecord) -> None:
        key = call.responder, behind.responder
        row = self.rows.get(key)
        if row is None:
            if len(self.rows) >= MAX_ROWS:
                return
            row = self.rows[key] = ProxiedSends()
        waited, asked = call.latency_us or 0, behind.latency_us or 0
        row.client.add(waited)
        row.broker.add(asked)
        row.proxy.add(waited - asked)


def _is_behind(behind: ExchangeRecord, call: ExchangeRecord) -> bool:
    """Return whether a request is within the time of a call."""
    begin, end = call.request_time or 0, call.response_time or 0
    return (
        call.responder != behind.responder
        and begin <= (behind.request_time or 0)
        and (behind.response_time or 0) <= end
    )

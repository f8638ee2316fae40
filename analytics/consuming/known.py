"""What all rows together say to these folds: names, groups, filters, how long a window is.

Rules: bounded; what parts of the rows say can be merged. Names come from the diagnosis' `Context`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from dissectors.remoting.row_facts.heartbeats import consumers_in, subscriptions_in
from dissectors.remoting.row_facts.names import CLIENT, fact_in
from dissectors.rows.record import ExchangeRecord

from ..diagnosis.context import HEARTBEAT, Context
from ..diagnosis.keys import joined_key
from ..diagnosis.rules.consumers.inconsistent_subscription import OR, TAG

KNOWN_BY: Final = (
    *("capture", "conversation", "requester", "responder", "status", "request_time"),
    *("response_time", "request_code", "request_name", "response_code", "topic", "broker_name"),
    *("brokers", "facts"),
)
"""columns of exchanges that `Known` is made of"""
CONNECTIONS_KNOWN_BY: Final = (
    *("capture", "conversation", "start", "gaps", "commands", "protocol", "directions"),
)
"""columns of connections that its context is made of"""
MAX_KNOWN: Final = 20_000
"""clients, and subscriptions"""
BROADCASTING: Final = "BROADCASTING"
ALL: Final = "*"
MAX_FORMS: Final = 16
"""subscriptions of one group to one topic, one after the other"""


@dataclass(slots=True)
class Known:
    """What is known besides the rows of one key."""

    context: Context = field(default_factory=Context)
    """names of brokers and clients, routes"""
    broadcasting: set[str] = field(default_factory=set)
    """groups of which each member gets every message"""
    groups: dict[str, set[str]] = field(default_factory=dict)
    """client id -> its consumer groups"""
    filters: dict[str, set[str]] = field(default_factory=dict)
    """group and topic (`joined_key`) -> `TYPE EXPRESSION` of its subscriptions"""
    with_connections: bool = False
    """the input has TCP connections"""
    window_us: int = 1_000_000
    """length of a window over time"""

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        """Take rows."""
        for row in rows:
            self.context.add_exchange(row)
            if row.request_code == HEARTBEAT:
                self._take_heartbeat(row)
        self.context.add_span(rows)

    def merge(self, other: Known) -> None:
        """Take what other rows say."""
        self.context.merge(other.context)
        self.broadcasting |= other.broadcasting
        for mine, theirs in ((self.groups, other.groups), (self.filters, other.filters)):
            for name, values in theirs.items():
                if name in mine or len(mine) < MAX_KNOWN:
                    mine.setdefault(name, set()).update(values)

    def is_wanted(self, group: str, topic: str, tags: str | None) -> bool | None:
        """Return whether a group subscribes a message; None: the rows do not say."""
        forms = self.filters.get(joined_key(group, topic))
        if not forms:
            return None
        wanted: bool | None = False
        for form in forms:
            kind, _, expression = form.partition(" ")
            if expression == ALL:
                return True
            if kind != TAG:
                wanted = None
            elif tags in {tag.strip() for tag in expression.split(OR)}:
                return True
        return wanted

    def broker(self, name: str | None, address: str) -> str:
        """Return what a broker is called."""
        known = self.context.broker(address)
        return known if known != address else name or address

    def _take_heartbeat(self, row: ExchangeRecord) -> None:
        client = fact_in(row.facts, CLIENT)
        for group in consumers_in(row.facts):
            if group.model == BROADCASTING and len(self.broadcasting) < MAX_KNOWN:
                self.broadcasting.add(group.name)
            if client is not None and (client in self.groups or len(self.groups) < MAX_KNOWN):
                self.groups.setdefault(client, set()).add(group.name)
        for one in subscriptions_in(row.facts):
            key = joined_key(one.group, one.topic)
            if key not in self.filters and len(self.filters) >= MAX_KNOWN:
                continue
            forms = self.filters.setdefault(key, set())
            if len(forms) < MAX_FORMS:
                forms.add(f"{one.type} {one.expression}")

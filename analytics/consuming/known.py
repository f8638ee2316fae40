"""Facts from all rows that the folds share: names, groups, filters, and window length.

Rules: bounded and mergeable. Names come from the `Context` of the diagnosis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from dissectors.remoting.row_facts.heartbeats import consumers_in, subscriptions_in
from dissectors.rows.record import ExchangeRecord
from dissectors.times import Bounds

from ..diagnosis.context import Context
from ..diagnosis.keys import HEARTBEAT, has_room, joined_key, keep, state_in
from ..diagnosis.rules.consumers.inconsistent_subscription import OR, TAG
from ..report import column_names

KNOWN_BY: Final = column_names(
    "capture conversation client_address server_address status request_time response_time"
    " request_code request_name response_code topic broker_name brokers facts client_id"
)
"""columns of exchanges that `Known` reads"""
CONNECTIONS_KNOWN_BY: Final = column_names(
    "capture conversation start gaps commands protocol directions"
)
"""columns of connections that its context reads"""
MAX_KNOWN: Final = 20_000
"""most clients, and most subscriptions"""
ALL: Final = "*"
MAX_FORMS: Final = 16
"""most subscriptions of one group to one topic"""


@dataclass(slots=True)
class Known:
    """Facts from rows outside one key."""

    context: Context = field(default_factory=Context)
    """names of brokers and clients, routes"""
    groups: dict[str, set[str]] = field(default_factory=dict)
    """client id -> its consumer groups"""
    filters: dict[str, set[str]] = field(default_factory=dict)
    """group and topic (`joined_key`) -> `TYPE EXPRESSION` of its subscriptions"""
    with_connections: bool = False
    """the input has TCP connections"""
    window_us: int = 1_000_000
    """window length of time series"""
    asked: Bounds | None = None
    """requested time range; None: unrestricted"""

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        """Add rows of exchanges."""
        for row in rows:
            self.context.add_exchange(row)
            if row.request_code == HEARTBEAT:
                self._take_heartbeat(row)
        self.context.add_span(rows)

    def merge(self, other: Known) -> None:
        """Merge the facts of other rows."""
        self.context.merge(other.context)
        for client, groups in other.groups.items():
            if has_room(self.groups, client, MAX_KNOWN):
                self.groups.setdefault(client, set()).update(groups)
        for key, forms in other.filters.items():
            if has_room(self.filters, key, MAX_KNOWN):
                held = self.filters.setdefault(key, set())
                held.update(sorted(forms - held)[: MAX_FORMS - len(held)])

    def is_wanted(self, group: str, topic: str, tags: str | None) -> bool | None:
        """Return whether a group subscribes to a message, or None if unknown."""
        forms = self.filters.get(joined_key(group, topic))
        if not forms:
            return None
        wanted: bool | None = False
        for form in forms:
            kind, _, expression = form.partition(" ")
            # Members may differ in their subscriptions: the broker keeps the latest, so any may
            # apply.
            if expression == ALL:
                return True
            if kind != TAG:  # SQL92: it would need the properties of the message
                wanted = None
            elif tags in {tag.strip() for tag in expression.split(OR)}:
                return True
        return wanted

    def broker(self, name: str | None, address: str) -> str:
        """Return the name of a broker, or its address if unknown."""
        known = self.context.broker(address)
        return known if known != address else name or address

    def _take_heartbeat(self, row: ExchangeRecord) -> None:
        client = row.client_id
        for group in consumers_in(row.facts):
            if client is not None and has_room(self.groups, client, MAX_KNOWN):
                self.groups.setdefault(client, set()).add(group.name)
        for subscription in subscriptions_in(row.facts):
            key = joined_key(subscription.group, subscription.topic)
            forms = state_in(self.filters, key, set[str], MAX_KNOWN)
            if forms is not None:
                keep(forms, f"{subscription.type} {subscription.expression}", MAX_FORMS)

"""Endpoints of connections by number, because evidence of a problem has only numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from analytics.diagnosis.problem import Problem
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

MOST_CONNECTIONS: Final = 50_000
"""connections that are remembered; the oldest are dropped first"""


class KnownConnections:
    """The ends of the latest connections."""

    def __init__(self) -> None:
        self._ends: dict[int, tuple[str, str]] = {}

    def note(self, rows: Sequence[ExchangeRecord], ended: Sequence[ConversationRecord]) -> None:
        """Add decoded rows."""
        ends = self._ends
        for row in rows:
            if row.conversation not in ends:
                ends[row.conversation] = row.client_address, row.server_address
        for connection in ended:
            ends.setdefault(
                connection.conversation, (connection.client_address, connection.server_address)
            )
        if len(ends) > MOST_CONNECTIONS:
            # Half of them at once, so that not each further row copies the list.
            for number in list(ends)[: MOST_CONNECTIONS // 2]:
                del ends[number]

    def forget(self) -> None:
        """Drop all connections, because numbering restarts."""
        self._ends.clear()

    def of(self, problem: Problem) -> list[tuple[str, str]]:
        """Return client and server of the connections that prove a problem."""
        numbers = dict.fromkeys(evidence.conversation for evidence in problem.evidence)
        return [self._ends[number] for number in numbers if number in self._ends]

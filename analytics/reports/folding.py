"""The contract of a keyed fold: rows to items, items sorted by key to sums, sums to tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from ..consuming.items import Item
from ..consuming.known import Known

if TYPE_CHECKING:
    from dissectors.rows.conversation_record import ConversationRecord
    from dissectors.rows.message_record import MessageRecord
    from dissectors.rows.record import ExchangeRecord

T = TypeVar("T")
SHARE: Final = "known"
"""name of what reports share (`Report.shares`)"""


@dataclass(frozen=True)
class Folding(Generic[T]):
    """How rows become tables; all of it functions of modules, which tasks can be given."""

    exchanges: Callable[[list[ExchangeRecord], Known], Iterable[Item]]
    requests: frozenset[int]
    """codes of the exchanges that are taken"""
    fold: Callable[[Iterable[Item], Known], T]
    """items sorted by key, at, then, text -> sums"""
    sums: type[T]
    merge: Callable[[T, T], None]
    tables: Callable[[T, Known], Mapping[str, list[dict[str, object]]]]
    messages: Callable[[list[MessageRecord], Known], Iterable[Item]] | None = None
    connections: Callable[[list[ConversationRecord], Known], Iterable[Item]] | None = None

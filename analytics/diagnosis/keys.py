"""State keys shared by several rules, the flow that determines most of them, and bounded states."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.topic_names import (
    REPLY_SUFFIX,
    TRACER_PREFIX,
    is_group_topic,
    is_internal_topic,
    is_trace_topic,
)
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

K = TypeVar("K")
V = TypeVar("V")


class _Ordered(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


Value = TypeVar("Value", bound=_Ordered)

# as plain numbers, which compare faster than members of an enumeration
ROUTE: Final = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
HEARTBEAT: Final = int(RequestCode.HEART_BEAT)
COMMIT: Final = int(RequestCode.UPDATE_CONSUMER_OFFSET)
SUCCESS: Final = int(ResponseCode.SUCCESS)
WHOLE: Final = "*"
"""the only key of a rule with one state per capture"""


class Flow(NamedTuple):
    """Attributes that many exchanges share, named as in `ExchangeRecord`."""

    request_code: int | None
    response_code: int | None
    status: str
    plain: bool
    """exchanges without brokers, facts, and client id"""
    client_address: str
    server_address: str
    topic: str | None
    group: str | None


Add = Callable[[Sequence[ExchangeRecord]], None]
"""function that adds exchanges of one flow"""


def flow_of(row: ExchangeRecord) -> Flow:
    """Return the flow of an exchange."""
    return Flow(
        row.request_code,
        row.response_code,
        row.status,
        not (row.facts or row.brokers or row.client_id),
        row.client_address,
        row.server_address,
        row.topic,
        row.group,
    )


# Written out: attribute access takes a third of the time of an `attrgetter`.
_READERS: Final[dict[str, Callable[[Sequence[ExchangeRecord]], list[Any]]]] = {
    "latency_us": lambda rows: [row.latency_us for row in rows],
    "request_time": lambda rows: [row.request_time for row in rows],
    "response_time": lambda rows: [row.response_time for row in rows],
    "key_time": lambda rows: [row.key_time for row in rows],
    "unique_key": lambda rows: [row.unique_key for row in rows],
}


class FlowRows(list[ExchangeRecord]):
    """Exchanges of one flow, with columns cached for several rules."""

    __slots__ = ("_columns",)

    def __init__(self) -> None:
        super().__init__()
        self._columns: dict[str, list[Any]] = {}

    def column(self, name: str) -> list[Any]:
        """Return the values of a column, cached: no exchange may be added afterwards."""
        values = self._columns.get(name)
        if values is None:
            values = self._columns[name] = _READERS[name](self)
        return values


def _column(rows: Sequence[ExchangeRecord], name: str) -> list[Any]:
    if isinstance(rows, FlowRows):
        return rows.column(name)
    return _READERS[name](rows)


def request_times(rows: Sequence[ExchangeRecord]) -> list[int | None]:
    """Return the request times of exchanges."""
    return _column(rows, "request_time")


def response_times(rows: Sequence[ExchangeRecord]) -> list[int | None]:
    """Return the response times of exchanges."""
    return _column(rows, "response_time")


def latencies_of(rows: Sequence[ExchangeRecord]) -> list[int | None]:
    """Return the latencies of exchanges, in µs."""
    return _column(rows, "latency_us")


def key_times(rows: Sequence[ExchangeRecord]) -> list[int | None]:
    """Return the creation times of the messages of exchanges."""
    return _column(rows, "key_time")


def message_keys(rows: Sequence[ExchangeRecord]) -> list[str | None]:
    """Return the UNIQ_KEYs of the messages of exchanges."""
    return _column(rows, "unique_key")


def slowest_of(rows: Sequence[ExchangeRecord]) -> int | None:
    """Return the highest latency in µs, or None if a response is missing or there are no rows."""
    latencies = [latency for latency in latencies_of(rows) if latency is not None]
    return max(latencies) if latencies and len(latencies) == len(rows) else None


_SEPARATOR: Final = "\x00"


def joined_key(*parts: str | None) -> str:
    """Join names into one key, which `parts_of` can split whatever the names contain."""
    # A name from a capture may have any character, also the separator.
    return _SEPARATOR.join((part or "").replace(_SEPARATOR, "\ufffd") for part in parts)


def parts_of(key: str) -> list[str]:
    """Split a key into its names."""
    return key.split(_SEPARATOR)


def by_server(row: ExchangeRecord) -> str:
    """Return the server address."""
    return row.server_address


def by_topic(row: ExchangeRecord) -> str:
    """Return the topic, or an empty string if the request has none."""
    return row.topic or ""


def by_group(row: ExchangeRecord) -> str:
    """Return the group, or an empty string if the request has none."""
    return row.group or ""


def named_group(row: ExchangeRecord) -> str | None:
    """Return the group, or None if the request has none."""
    return row.group


def with_commands(row: ConversationRecord) -> str | None:
    """Return the only key for connections with commands."""
    return WHOLE if row.commands else None


def user_topic(row: ExchangeRecord) -> str | None:
    """Return the topic, or None if the request has none or it is a system topic."""
    return None if is_own_topic(row.topic) else row.topic


def whole(row: ExchangeRecord) -> str:  # noqa: ARG001
    """Return the only key of a rule with one state per capture."""
    return WHOLE


def says(row: ExchangeRecord, *parts: str) -> bool:
    """Return whether the remark of a response contains one of the parts."""
    remark = row.remark
    return remark is not None and any(part in remark for part in parts)


def with_remark(
    *parts: str, key: Callable[[ExchangeRecord], str | None]
) -> Callable[[ExchangeRecord], str | None]:
    """Return a key function for responses whose remark contains one of the parts."""

    def key_of(row: ExchangeRecord) -> str | None:
        return key(row) if says(row, *parts) else None

    return key_of


@lru_cache(4096)
def is_own_topic(topic: str | None) -> bool:
    """Return whether a topic is a system topic (including retry topics) or empty."""
    return (
        not topic
        or is_group_topic(topic)
        or topic.endswith(REPLY_SUFFIX)
        or is_internal_topic(topic)
    )


# What a capture contains must not fill the memory, so containers grow only up to a limit.
def state_in(states: dict[K, V], key: K, make: Callable[[], V], most: int) -> V | None:
    """Return the state of a key, which is made at first; None if there are `most` other keys."""
    state = states.get(key)
    if state is None and len(states) < most:
        state = states[key] = make()
    return state


def keep(kept: set[K], item: K, most: int) -> None:
    """Add an item to a set, unless the set is full."""
    if len(kept) < most:
        kept.add(item)


def has_room(kept: Collection[K], key: K, most: int) -> bool:
    """Return whether a container has a key, or fewer than `most` others."""
    return key in kept or len(kept) < most


def keep_least(kept: dict[K, Value], key: K, value: Value, most: int) -> None:
    """Keep the smallest value of a key, unless the dict is full of others."""
    before = kept.get(key)
    if (value < before) if before is not None else len(kept) < most:
        kept[key] = value


def keep_most(kept: dict[K, Value], key: K, value: Value, most: int) -> None:
    """Keep the largest value of a key, unless the dict is full of others."""
    before = kept.get(key)
    if (before < value) if before is not None else len(kept) < most:
        kept[key] = value


def ignore(rows: Sequence[ExchangeRecord]) -> None:
    """Ignore exchanges: an `Add` for a flow that a state does not take."""


def is_traced(row: ExchangeRecord | Flow) -> bool:
    """Return whether a send carries the trace of other messages."""
    topic = row.topic
    if topic is not None and is_trace_topic(topic):
        return True
    group = row.group
    return group is not None and group.startswith(TRACER_PREFIX)

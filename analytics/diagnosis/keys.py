"""Keys of states that several rules share, and the flow that most of them depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from dissectors.rows.record import ExchangeRecord

WHOLE: Final = "*"
"""the one key of a rule whose state is of the whole capture"""


class Flow(NamedTuple):
    """What many exchanges have in common; names are those of `ExchangeRecord`."""

    request_code: int | None
    response_code: int | None
    status: str
    plain: bool
    """they name no brokers and have no facts"""
    requester: str
    responder: str
    topic: str | None
    group: str | None


Add = Callable[[Sequence[ExchangeRecord]], None]
"""takes exchanges of one flow"""


def flow_of(row: ExchangeRecord) -> Flow:
    """Return the flow of an exchange."""
    return Flow(
        row.request_code,
        row.response_code,
        row.status,
        not (row.facts or row.brokers),
        row.requester,
        row.responder,
        row.topic,
        row.group,
    )


# Each is written out: so an attribute is read in a third of the time of an `attrgetter`.
_READERS: Final[dict[str, Callable[[Sequence[ExchangeRecord]], list[Any]]]] = {
    "latency_us": lambda rows: [row.latency_us for row in rows],
    "request_time": lambda rows: [row.request_time for row in rows],
    "response_time": lambda rows: [row.response_time for row in rows],
    "unique_key": lambda rows: [row.unique_key for row in rows],
}


class FlowRows(list[ExchangeRecord]):
    """Exchanges of one flow, of which several rules ask for the same columns."""

    __slots__ = ("_columns",)

    def __init__(self) -> None:
        super().__init__()
        self._columns: dict[str, list[Any]] = {}

    def column(self, name: str) -> list[Any]:
        """Return the values of a column, read once: no exchange is added afterwards."""
        values = self._columns.get(name)
        if values is None:
            values = self._columns[name] = _READERS[name](self)
        return values


def _column(rows: Sequence[ExchangeRecord], name: str) -> list[Any]:
    if isinstance(rows, FlowRows):
        return rows.column(name)
    return _READERS[name](rows)


def ask_times(rows: Sequence[ExchangeRecord]) -> list[int | None]:
    """Return the times of the requests of exchanges."""
    return _column(rows, "request_time")


def answer_times(rows: Sequence[ExchangeRecord]) -> list[int | None]:
    """Return the times of their answers."""
    return _column(rows, "response_time")


def latencies_of(rows: Sequence[ExchangeRecord]) -> list[int | None]:
    """Return what they took, in µs."""
    return _column(rows, "latency_us")


def message_keys(rows: Sequence[ExchangeRecord]) -> list[str | None]:
    """Return the UNIQ_KEYs of their messages."""
    return _column(rows, "unique_key")


def slowest_of(rows: Sequence[ExchangeRecord]) -> int | None:
    """Return the most µs that one of them took; None where one has no answer, or there is none."""
    latencies = [one for one in latencies_of(rows) if one is not None]
    return max(latencies) if latencies and len(latencies) == len(rows) else None


_SEPARATOR: Final = "\x00"


def joined_key(*parts: str | None) -> str:
    """Return one key of several names; `parts_of` gives them back, whatever is in them."""
    return _SEPARATOR.join((part or "").replace(_SEPARATOR, "\ufffd") for part in parts)


def parts_of(key: str) -> list[str]:
    """Return the names in a key, as many as were joined."""
    return key.split(_SEPARATOR)


def by_responder(row: ExchangeRecord) -> str:
    """Return the address that answered."""
    return row.responder


def by_topic(row: ExchangeRecord) -> str:
    """Return the topic; empty where the request names none."""
    return row.topic or ""


def by_group(row: ExchangeRecord) -> str:
    """Return the group; empty where the request names none."""
    return row.group or ""


def named_group(row: ExchangeRecord) -> str | None:
    """Return the group; None where the request names none."""
    return row.group


def whole(row: ExchangeRecord) -> str:  # noqa: ARG001
    """Return the one key of a rule that looks at the whole capture."""
    return WHOLE


def with_remark(
    *parts: str, key: Callable[[ExchangeRecord], str | None]
) -> Callable[[ExchangeRecord], str | None]:
    """Return a key for answers whose remark contains one of the parts; None for others."""

    def key_of(row: ExchangeRecord) -> str | None:
        remark = row.remark
        if remark is None or not any(part in remark for part in parts):
            return None
        return key(row)

    return key_of

"""Isolation as tables: the attempts of a producer in Arrow in, rows of all its tables out.

Rules: the functions that Spark calls take and give Arrow tables and know nothing of Spark. They
give rows of several tables at once, told apart by `kind`, because one look at the attempts gives
them all. A window that was not over when the producer was last seen counts up to then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from dissectors.remoting.versions import ordinal_of
from replay.fault import GENERATIONS, FaultSettings

from ..report import TableColumn
from ..schema import arrow_rows
from ..sends import attempts
from ..sends.attempt_table import process_name_of
from .isolation_input import WHO, gone_of, producer_of, producers_in
from .producer_attempts import ProducerAttempts
from .strategy_replay import ALL_ISOLATED, BROKEN, REASONS, Replay, Window, absence_of, replayed
from .strategy_verdict import Verdict, verdict_of

if TYPE_CHECKING:
    import pyarrow

_WHO: tuple[TableColumn, ...] = (
    TableColumn("client", "string", "", "address of the client, without port"),
    TableColumn("process", "string", "", "process that made the UNIQ_KEYs: process id, loader"),
    TableColumn("group", "string", "", "producer group"),
)
_STRATEGY = TableColumn(
    "strategy",
    "string",
    "",
    "whether the client had the strategy on, by what it did: `on`, `off`, `other generation`,"
    " `none` (a client without one), `unknown`",
)
_GENERATION = TableColumn(
    "generation", "string", "", "generation of the strategy: 4.7, 4.8 or 5.1, by the version"
)
_BROKER = TableColumn("broker", "string", "", "broker name, else address")
_PACKET = (
    TableColumn("unique_key", "string", "", "UNIQ_KEY of the message"),
    TableColumn("capture", "string", "", "capture file"),
    TableColumn("request_packet", "int", "", "packet of the request; absent: only a connect"),
)

PRODUCER_COLUMNS = (
    *_WHO,
    TableColumn("language", "string", "", "language of the client"),
    TableColumn("version_name", "string", "", "version that it says"),
    _GENERATION,
    _STRATEGY,
    TableColumn("reason", "string", "", "what says so"),
    TableColumn("brokers", "int", "", "brokers that it sent to"),
    TableColumn("attempts", "int", "", "attempts to send"),
    TableColumn("failures", "int", "", "attempts that failed for it"),
    TableColumn("windows", "int", "", "times that a broker was, or would have been, isolated"),
    TableColumn("isolated_us", "int", "µs", "length of these together"),
    TableColumn("avoided", "int", "", "attempts elsewhere while a broker was isolated"),
    TableColumn("to_isolated", "int", "", "attempts at a broker while it was isolated"),
    TableColumn("not_followed", "int", "", "of them, those that a strategy that is on never makes"),
    TableColumn("no_better", "int", "", "of them, those for which there was no better broker"),
    TableColumn(
        "connects_failed",
        "int",
        "",
        "connects of its address to its brokers that failed while it was sending; absent: unknown",
    ),
    TableColumn("unreachable", "string", "", "these brokers"),
    TableColumn("first_time", "time", "", "begin of its first attempt"),
    TableColumn("last_time", "time", "", "its last sign"),
)
WINDOW_COLUMNS = (
    *_WHO,
    _BROKER,
    TableColumn("start", "time", "", "when the client knew of the failure, as packets tell it"),
    TableColumn("end", "time", "", "when the time is over, or an answer ended it"),
    TableColumn("length_us", "int", "µs", "from start to end"),
    TableColumn("cause", "string", "", "what isolated the broker"),
    TableColumn("events", "int", "", "failures and slow answers that began or prolonged it"),
    TableColumn("ended_by", "string", "", "`time`, or `answer`: a fast one, before 5.1.4"),
    TableColumn("open", "bool", "", "not over when the producer was last seen"),
    _GENERATION,
    _STRATEGY,
    TableColumn("to_isolated", "int", "", "attempts at the broker meanwhile"),
    *_PACKET,
)
SEND_COLUMNS = (
    *_WHO,
    _BROKER,
    TableColumn("time", "time", "", "begin of the attempt"),
    TableColumn("topic", "string", "", "topic of the message"),
    TableColumn("attempt", "int", "", "number of the attempt"),
    TableColumn("outcome", "string", "", "what became of it"),
    TableColumn(
        "why",
        "string",
        "",
        "`strategy not followed` (off, or the queue was chosen by hand), `no better broker`, `at"
        " the edge` (too near to the begin or end of the window to tell), or `after unseen"
        " attempts` (of which only failed connects were seen: what the client knew is not known)",
    ),
    TableColumn("window_start", "time", "", "begin of the isolation"),
    TableColumn("window_end", "time", "", "its end"),
    _STRATEGY,
    *_PACKET,
)
BROKER_COLUMNS = (
    *_WHO,
    _BROKER,
    TableColumn("attempts", "int", "", "attempts at the broker"),
    TableColumn("attempts_share", "float", "share", "of all attempts of the producer"),
    TableColumn("failures", "int", "", "attempts that failed for the client"),
    TableColumn("windows", "int", "", "times that it was, or would have been, isolated"),
    TableColumn("isolated_us", "int", "µs", "how long, as far as the producer was seen"),
    TableColumn("isolated_share", "float", "share", "of the time in which the producer was seen"),
    TableColumn("to_isolated", "int", "", "attempts at it meanwhile"),
    TableColumn("absent_us", "int", "µs", "since it may be used again and is not; absent: it is"),
    TableColumn("elsewhere", "int", "", "attempts at other brokers since then"),
    TableColumn(
        "given_up",
        "bool",
        "",
        "not used again for more than ten times its isolation; or it left the route",
    ),
    _STRATEGY,
)
SETTING_COLUMNS = (
    *_WHO,
    TableColumn("setting", "string", "", "generation of the strategy, if it were on"),
    TableColumn("used", "bool", "", "the generation of the client's version"),
    TableColumn("windows", "int", "", "times that a broker would have been isolated"),
    TableColumn("isolated_us", "int", "µs", "how long together, as far as the producer was seen"),
    TableColumn("longest_us", "int", "µs", "the longest"),
    TableColumn("attempts_moved", "int", "", "attempts that would have gone to another broker"),
    TableColumn("failures_avoided", "int", "", "of them, those that failed where they went"),
    TableColumn("attempts_kept", "int", "", "attempts at an isolated broker for want of a better"),
)

PRODUCER, WINDOW, SEND, BROKER, SETTING = "producer", "window", "send", "broker", "setting"
COLUMNS_OF: Mapping[str, tuple[TableColumn, ...]] = {
    PRODUCER: PRODUCER_COLUMNS,
    WINDOW: WINDOW_COLUMNS,
    SEND: SEND_COLUMNS,
    BROKER: BROKER_COLUMNS,
    SETTING: SETTING_COLUMNS,
}
KIND = TableColumn("kind", "string", "", "which table the row is of")
ALL_COLUMNS: tuple[TableColumn, ...] = (
    KIND,
    *{column.name: column for table in COLUMNS_OF.values() for column in table}.values(),
)
"""The columns of all tables, each once."""

MOST_SENDS = 1000
"""Attempts of a producer at isolated brokers that are listed; all are counted."""
_NO_FAILURE = frozenset((attempts.STORED, attempts.ONEWAY, attempts.UNKNOWN))

IsolationRow = dict[str, object]


@dataclass(frozen=True, slots=True)
class Assumed:
    """What the user says of the clients; None: by version, or by what they did."""

    generation: str | None = None
    """generation of all clients"""
    latency_max: tuple[int, ...] | None = None
    """latencyMax of all clients"""
    not_available: tuple[int, ...] | None = None
    """notAvailableDuration of all clients"""
    enabled: bool | None = None
    """sendLatencyFaultEnable of all clients"""

    def settings_of(self, version: int | None) -> FaultSettings:
        """Return the settings of a client of that version; ValueError where tables do not fit."""
        own = FaultSettings.of_version(version)
        if self.generation is not None and self.generation != own.generation:
            own = FaultSettings(self.generation)
        return FaultSettings(
            own.generation,
            latency_max=self.latency_max or own.latency_max,
            not_available=self.not_available or own.not_available,
            rules=own.rules,
        )


def isolation_rows(assumed: Assumed) -> Callable[[pyarrow.Table], pyarrow.Table]:
    """Return the function that gives the rows of all tables for the attempts of some producers.

    It is called with all attempts of a producer, in any order; nearly always of one alone.
    """

    def rows(table: pyarrow.Table) -> pyarrow.Table:
        found = [row for one in producers_in(table) for row in _Rows(one, assumed).rows()]
        return arrow_rows(found, ALL_COLUMNS)

    return rows


_ORDER = ("begin", "unique_key", "request_packet")


class _Rows:
    """The rows of one producer."""

    def __init__(self, table: pyarrow.Table, assumed: Assumed) -> None:
        if len(np.unique(table.column("begin").to_numpy())) < table.num_rows:
            # Attempts of one microsecond: the same order, whatever that of the engine's rows is.
            table = table.sort_by([(name, "ascending") for name in _ORDER])
        self._table = table
        self._producer = producer = producer_of(table)
        self._place = np.argsort(table.column("begin").to_numpy(), kind="stable")
        self._who: IsolationRow = {name: self._first(name) for name in WHO}
        digits = self._who["process"]
        self._who["process"] = process_name_of(None if digits is None else str(digits))
        self._version_name = self._first("version_name")
        version = ordinal_of(str(self._version_name)) if self._version_name else None
        self._language = self._first("language")
        settings = assumed.settings_of(version)
        self._replay = replayed(producer, settings)
        self._others = {
            name: self._replay if name == settings.generation else _other(producer, name)
            for name in GENERATIONS
        }
        language = None if self._language is None else str(self._language)
        self._gone = gone_of(table)
        self._unreachable = ", ".join(sorted({one.broker for one in self._gone})) or None
        self._verdict: Verdict = verdict_of(
            self._replay, self._others.items(), language, assumed.enabled, self._unreachable
        )
        self._last = int(max(producer.begin.max(), producer.end.max()))
        self._span = max(self._last - int(producer.begin[0]), 1)
        self._failed = (producer.outcome.codes >= 0) & ~producer.outcome.among(_NO_FAILURE)

    def rows(self) -> Iterator[IsolationRow]:
        """Return the rows of all tables."""
        kinds = (
            (PRODUCER, self._producers()),
            (WINDOW, self._windows()),
            (SEND, self._sends()),
            (BROKER, self._brokers()),
            (SETTING, self._settings()),
        )
        for kind, found in kinds:
            for row in found:
                yield {KIND.name: kind, **self._who, "strategy": self._verdict.state, **row}

    def _first(self, name: str) -> object:
        value: object = self._table.column(name)[0].as_py()
        return value

    def _connects_failed(self) -> int | None:
        known = self._first("gone") is not None
        return sum(one.connects for one in self._gone) if known else None

    def _seen(self, index: int) -> IsolationRow:
        names = ("unique_key", "capture", "request_packet")
        place = int(self._place[index])
        return {name: self._table.column(name)[place].as_py() for name in names}

    def _clipped(self, window: Window) -> int:
        return max(min(window.end, self._last) - window.start, 0)

    def _producers(self) -> Iterator[IsolationRow]:
        replay, producer = self._replay, self._producer
        yield {
            "language": self._language,
            "version_name": self._version_name,
            "generation": replay.settings.generation,
            "reason": self._verdict.reason,
            "brokers": len(producer.broker.names),
            "attempts": len(producer),
            "failures": int(self._failed.sum()),
            "windows": len(replay.windows),
            "isolated_us": sum(map(self._clipped, replay.windows)),
            "avoided": replay.avoided,
            "to_isolated": len(replay.trespasses),
            "not_followed": replay.broken,
            "no_better": len(replay.trespasses.because(ALL_ISOLATED)),
            "connects_failed": self._connects_failed(),
            "unreachable": self._unreachable,
            "first_time": int(producer.begin[0]),
            "last_time": self._last,
        }

    def _windows(self) -> Iterator[IsolationRow]:
        windows = self._replay.windows
        inside = np.bincount(self._replay.trespasses.window, minlength=len(windows))
        for window, count in zip(windows, inside.tolist(), strict=True):
            yield {
                **self._seen(window.attempt),
                "broker": window.broker,
                "start": window.start,
                "end": window.end,
                "length_us": window.end - window.start,
                "cause": window.cause,
                "events": window.events,
                "ended_by": window.ended_by,
                "open": window.end > self._last,
                "generation": self._replay.settings.generation,
                "to_isolated": count,
            }

    def _sends(self) -> Iterator[IsolationRow]:
        found = self._replay.trespasses
        columns = (found.attempt, found.window, found.why)
        listed = zip(*(column[:MOST_SENDS].tolist() for column in columns), strict=True)
        for index, number, why in listed:
            window = self._replay.windows[number]
            yield {
                **self._seen(index),
                "broker": window.broker,
                "time": int(self._producer.begin[index]),
                "topic": self._producer.topic[index],
                "attempt": self._table.column("attempt")[int(self._place[index])].as_py(),
                "outcome": self._producer.outcome[index],
                "why": REASONS[why],
                "window_start": window.start,
                "window_end": window.end,
            }

    def _brokers(self) -> Iterator[IsolationRow]:
        producer = self._producer
        inside = np.bincount(
            producer.broker.codes[self._replay.trespasses.attempt],
            minlength=len(producer.broker.names),
        )
        for code, name in enumerate(producer.broker.names):
            here = producer.broker.codes == code
            windows = [window for window in self._replay.windows if window.broker == name]
            isolated = sum(map(self._clipped, windows))
            yield {
                "broker": name,
                "attempts": int(here.sum()),
                "attempts_share": float(here.sum()) / len(producer),
                "failures": int((here & self._failed).sum()),
                "windows": len(windows),
                "isolated_us": isolated,
                "isolated_share": min(isolated / self._span, 1.0),
                "to_isolated": int(inside[code]),
                **(self._absence(windows[-1]) if windows else {}),
            }

    def _absence(self, window: Window) -> IsolationRow:
        """Return for how long a broker that may be used again was not."""
        found = absence_of(self._producer, window, self._last)
        return {} if found is None else asdict(found)

    def _settings(self) -> Iterator[IsolationRow]:
        for name, replay in self._others.items():
            moved = replay.trespasses.because(BROKEN)
            yield {
                "setting": name,
                "used": replay is self._replay,
                "windows": len(replay.windows),
                "isolated_us": sum(map(self._clipped, replay.windows)),
                "longest_us": max(
                    (window.end - window.start for window in replay.windows), default=0
                ),
                "attempts_moved": len(moved),
                "failures_avoided": int(self._failed[moved].sum()),
                "attempts_kept": len(replay.trespasses) - len(moved),
            }


def _other(producer: ProducerAttempts, generation: str) -> Replay:
    return replayed(producer, FaultSettings(generation))

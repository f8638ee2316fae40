"""Isolation tables: attempts of a producer in, rows of all its tables out, both in Arrow.

Rules: the functions that Spark calls take and return Arrow tables and do not depend on Spark. They
return the rows of several tables at once, distinguished by `kind`, because one pass over the
attempts yields all of them. A window still open when the producer was last seen counts up to then.
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
from ..sql.engine import with_codes
from .isolation_input import WHO, OneProducer, producers_in
from .producer_attempts import ProducerAttempts
from .strategy_replay import (
    ALL_ISOLATED,
    BROKEN,
    NO_STRATEGY,
    NOT_IN_FORCE,
    OFF,
    REASONS,
    Replay,
    Window,
    absence_of,
    replayed,
)
from .strategy_verdict import Verdict, verdict_of

if TYPE_CHECKING:
    import pyarrow

_WHO: tuple[TableColumn, ...] = (
    TableColumn("client", "string", "", "client address without port"),
    TableColumn("process", "string", "", "process in the UNIQ_KEYs: process ID and loader hash"),
    TableColumn("group", "string", "", "producer group"),
)
_STRATEGY = TableColumn(
    "strategy",
    "string",
    "",
    (
        "strategy inferred from behavior: `on`, `off`, `other generation`, `none` (client without "
        "a strategy), or `unknown`"
    ),
)
_GENERATION = TableColumn(
    "generation", "string", "", "strategy generation by client version: 4.7, 4.8, or 5.1"
)
_BROKER = TableColumn("broker", "string", "", "broker name if known, otherwise address")
_PACKET = (
    TableColumn("unique_key", "string", "", "UNIQ_KEY of the message"),
    TableColumn("capture", "string", "", "capture file"),
    TableColumn(
        "request_packet", "int", "", "request packet number; empty for a failed connection attempt"
    ),
)

PRODUCER_COLUMNS = (
    *_WHO,
    TableColumn("language", "string", "", "language of the client"),
    TableColumn("version_name", "string", "", "client version"),
    _GENERATION,
    _STRATEGY,
    TableColumn("reason", "string", "", "reason for the inferred strategy"),
    TableColumn("brokers", "int", "", "number of brokers it sent to"),
    TableColumn("attempts", "int", "", "send attempts"),
    TableColumn("failures", "int", "", "attempts that failed for the client"),
    TableColumn("windows", "int", "", "actual or hypothetical isolation windows"),
    TableColumn("isolated_us", "int", "µs", "total length of the windows"),
    TableColumn(
        "avoided", "int", "", "attempts to send to other brokers while a broker was isolated"
    ),
    TableColumn("to_isolated", "int", "", "attempts to send to an isolated broker"),
    TableColumn("not_followed", "int", "", "attempts that violate an enabled strategy"),
    TableColumn("no_better", "int", "", "attempts without a better broker"),
    TableColumn(
        "connects_failed",
        "int",
        "",
        "failed connection attempts to its brokers while sending; empty: unknown",
    ),
    TableColumn("unreachable", "string", "", "brokers to which connection attempts failed"),
    TableColumn("first_time", "time", "", "start of the first attempt"),
    TableColumn("last_time", "time", "", "last event of the producer"),
)
WINDOW_COLUMNS = (
    *_WHO,
    _BROKER,
    TableColumn(
        "start", "time", "", ("when the client learned of the failure, as far as packets show")
    ),
    TableColumn("end", "time", "", "when the isolation time ended or a response ended it"),
    TableColumn("length_us", "int", "µs", "length of the window"),
    TableColumn("cause", "string", "", "cause of the isolation"),
    TableColumn(
        "events", "int", "", ("failures and slow responses that started or extended the window")
    ),
    TableColumn("ended_by", "string", "", "`time`, or `response` (a fast response, before 5.1.4)"),
    TableColumn("open", "bool", "", "whether the window was open at the producer's last event"),
    _GENERATION,
    _STRATEGY,
    TableColumn("to_isolated", "int", "", "attempts to send to the broker during the window"),
    *_PACKET,
)
SEND_COLUMNS = (
    *_WHO,
    _BROKER,
    TableColumn("time", "time", "", "start of the attempt"),
    TableColumn("topic", "string", "", "topic of the message"),
    TableColumn("attempt", "int", "", "attempt number"),
    TableColumn("outcome", "string", "", "outcome"),
    TableColumn(
        "why",
        "string",
        "",
        (
            "`strategy not followed` (or queue chosen by the application); `no strategy`: "
            "`strategy` is `none` or `off`; `no better broker`; `at the edge`: too close to the "
            "window bounds; `after unseen attempts`: earlier attempts were not captured"
        ),
    ),
    TableColumn("window_start", "time", "", "start of the window"),
    TableColumn("window_end", "time", "", "end of the window"),
    _STRATEGY,
    *_PACKET,
)
BROKER_COLUMNS = (
    *_WHO,
    _BROKER,
    TableColumn("attempts", "int", "", "attempts to send to the broker"),
    TableColumn("attempts_share", "float", "share", "share of the producer's attempts"),
    TableColumn("failures", "int", "", "attempts that failed for the client"),
    TableColumn("windows", "int", "", "actual or hypothetical isolation windows"),
    TableColumn("isolated_us", "int", "µs", "total isolation while the producer was active"),
    TableColumn(
        "isolated_share",
        "float",
        "share",
        "share of the producer's active time; hypothetical unless strategy is `on`",
    ),
    TableColumn("to_isolated", "int", "", "attempts to send to the broker while it was isolated"),
    TableColumn(
        "absent_us",
        "int",
        "µs",
        ("time since the isolation ended without any attempt; empty: in use"),
    ),
    TableColumn(
        "elsewhere", "int", "", "attempts to send to other brokers since the isolation ended"
    ),
    TableColumn(
        "abandoned",
        "bool",
        "",
        "whether the broker stayed unused for ten times its isolation, or left the route",
    ),
    _STRATEGY,
)
SETTING_COLUMNS = (
    *_WHO,
    TableColumn("setting", "string", "", "hypothetical strategy generation"),
    TableColumn("used", "bool", "", "whether this is the client's own generation"),
    TableColumn("windows", "int", "", "hypothetical isolation windows"),
    TableColumn("isolated_us", "int", "µs", "total isolation while the producer was active"),
    TableColumn("longest_us", "int", "µs", "longest window"),
    TableColumn("attempts_moved", "int", "", "attempts that would have gone to another broker"),
    TableColumn("failures_avoided", "int", "", "moved attempts that failed on their actual broker"),
    TableColumn(
        "attempts_kept",
        "int",
        "",
        "attempts to send to an isolated broker because no better one existed",
    ),
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
_KEY = TableColumn("key", "int", "", "number of the message, which its `unique_key` replaces")
FOLDED_COLUMNS: tuple[TableColumn, ...] = (
    KIND,
    _KEY,
    *{
        column.name: column
        for table in COLUMNS_OF.values()
        for column in table
        if column.name != "unique_key"
    }.values(),
)
"""Columns of all tables, each once."""

MOST_SENDS = 1000
"""Most listed attempts of a producer to send to isolated brokers; all are counted."""
_NO_FAILURE = frozenset((attempts.STORED, attempts.ONEWAY, attempts.UNKNOWN))

IsolationRow = dict[str, object]


@dataclass(frozen=True, slots=True)
class Assumed:
    """Client settings given by the user; None: by version, or inferred from behavior."""

    generation: str | None = None
    """strategy generation of all clients"""
    latency_max: tuple[int, ...] | None = None
    """latencyMax of all clients"""
    not_available: tuple[int, ...] | None = None
    """notAvailableDuration of all clients"""
    enabled: bool | None = None
    """sendLatencyFaultEnable of all clients"""

    def settings_of(self, version: int | None) -> FaultSettings:
        """Return the settings of a client version; raise ValueError if tables do not match."""
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
    """Return the function that computes the rows of all tables for some producers' attempts.

    It is called with all attempts of one producer or several, in any order.
    """

    def rows(table: pyarrow.Table) -> pyarrow.Table:
        coded = with_codes(table)
        del table
        of_all = [r for producer in producers_in(coded) for r in _Rows(producer, assumed).rows()]
        return arrow_rows(of_all, FOLDED_COLUMNS)

    return rows


class _Rows:
    """The rows of one producer."""

    def __init__(self, one: OneProducer, assumed: Assumed) -> None:
        self._one = one
        self._producer = producer = one.attempts
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
        self._gone = one.gone
        self._unreachable = ", ".join(sorted({gone.broker for gone in one.gone})) or None
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
        for kind, table_rows in kinds:
            for row in table_rows:
                yield {KIND.name: kind, **self._who, "strategy": self._verdict.state, **row}

    def _first(self, name: str) -> object:
        return self._one.value(name, 0)

    def _connects_failed(self) -> int | None:
        known = self._first("gone") is not None
        return sum(outage.connects for outage in self._gone) if known else None

    def _seen(self, index: int) -> IsolationRow:
        names = (_KEY.name, "capture", "request_packet")
        return {name: self._one.value(name, index) for name in names}

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
            "to_isolated": len(replay.violations),
            "not_followed": replay.broken,
            "no_better": len(replay.violations.because(ALL_ISOLATED)),
            "connects_failed": self._connects_failed(),
            "unreachable": self._unreachable,
            "first_time": int(producer.begin[0]),
            "last_time": self._last,
        }

    def _windows(self) -> Iterator[IsolationRow]:
        windows = self._replay.windows
        inside = np.bincount(self._replay.violations.window, minlength=len(windows))
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
        violations = self._replay.violations
        columns = (violations.attempt, violations.window, violations.why)
        listed = zip(*(column[:MOST_SENDS].tolist() for column in columns), strict=True)
        for index, number, why in listed:
            window = self._replay.windows[number]
            yield {
                **self._seen(index),
                "broker": window.broker,
                "time": int(self._producer.begin[index]),
                "topic": self._producer.topic[index],
                "attempt": self._one.value("attempt", index),
                "outcome": self._producer.outcome[index],
                "why": self._why(REASONS[why]),
                "window_start": window.start,
                "window_end": window.end,
            }

    def _why(self, reason: str) -> str:
        """Return why an attempt went to an isolated broker: a strategy that is off forbids none."""
        is_off = self._verdict.state in (NO_STRATEGY, OFF)
        return NOT_IN_FORCE if is_off and reason == BROKEN else reason

    def _brokers(self) -> Iterator[IsolationRow]:
        producer = self._producer
        inside = np.bincount(
            producer.broker.codes[self._replay.violations.attempt],
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
        """Return how long a broker stayed unused after it was available again."""
        absence = absence_of(self._producer, window, self._last)
        return {} if absence is None else asdict(absence)

    def _settings(self) -> Iterator[IsolationRow]:
        for name, replay in self._others.items():
            moved = replay.violations.because(BROKEN)
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
                "attempts_kept": len(replay.violations) - len(moved),
            }


def _other(producer: ProducerAttempts, generation: str) -> Replay:
    return replayed(producer, FaultSettings(generation))

"""Isolation tables: attempts of a producer in, rows of all its tables out, both in Arrow.

Rules: the functions that Spark calls take and return Arrow tables and do not depend on Spark. They
return the rows of several tables at once, distinguished by `kind`, because one pass over the
attempts yields all of them. A window still open when the producer was last seen counts up to then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from dissectors.remoting.versions import ordinal_of
from replay.fault import GENERATIONS, FaultSettings

from ..report import TableColumn, table_columns
from ..schema import arrow_rows
from ..sends import attempts
from ..sends.attempt_table import process_name_of
from ..sql.engine import OfBatches
from .isolation_input import WHO, OneProducer, Part, producers_of
from .strategy_replay import (
    ALL_ISOLATED,
    BROKEN,
    NO_STRATEGY,
    NOT_IN_FORCE,
    OFF,
    REASONS,
    StrategyReplay,
    Verdict,
    Violations,
    Window,
    absence_of,
    elsewhere_since,
    verdict_of,
)

if TYPE_CHECKING:
    import pyarrow

_WHO: tuple[TableColumn, ...] = table_columns("""
    client string: client address without port
    process string: process in the UNIQ_KEYs: process ID and loader hash
    group string: producer group
""")
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
_PACKET = table_columns("""
    unique_key string: UNIQ_KEY of the message
    capture string: capture file
    request_packet int: request packet number; empty for a failed connection attempt
""")

PRODUCER_COLUMNS = (
    *_WHO,
    *table_columns("""
        language string: language of the client
        version_name string: client version
    """),
    _GENERATION,
    _STRATEGY,
    *table_columns("""
        reason string: reason for the inferred strategy
        brokers int: number of brokers the producer sent to
        attempts int: send attempts
        failures int: attempts that failed for the client
        windows int: actual or hypothetical isolation windows
        isolated_us int µs: total length of the windows
        avoided int: attempts to send to other brokers while a broker was isolated
        to_isolated int: attempts to send to an isolated broker
        not_followed int: attempts that violate an enabled strategy
        no_better int: attempts without a better broker
        connects_failed int: failed connection attempts to its brokers while sending; empty: unknown
        unreachable string: brokers to which connection attempts failed
        first_time time: start of the first attempt
        last_time time: last event of the producer
    """),
)
WINDOW_COLUMNS = (
    *_WHO,
    _BROKER,
    *table_columns("""
        start time: when the client learned of the failure, as far as packets show
        end time: when the isolation time ended or a response ended it
        length_us int µs: length of the window
        cause string: cause of the isolation
        events int: failures and slow responses that started or extended the window
        ended_by string: `time`, or `response` (a fast response, before 5.1.4)
        open bool: whether the window was open at the producer's last event
    """),
    _GENERATION,
    _STRATEGY,
    TableColumn("to_isolated", "int", "", "attempts to send to the broker during the window"),
    *_PACKET,
)
SEND_COLUMNS = (
    *_WHO,
    _BROKER,
    *table_columns("""
        time time: start of the attempt
        topic string: topic of the message
        attempt int: attempt number
        outcome string: outcome
        why string: `strategy not followed` (or queue chosen by the application); `no strategy`:
            `strategy` is `none` or `off`; `no better broker`; `at the edge`: too close to the
            window bounds; `after unseen attempts`: earlier attempts were not captured
        window_start time: start of the window
        window_end time: end of the window
    """),
    _STRATEGY,
    *_PACKET,
)
BROKER_COLUMNS = (
    *_WHO,
    _BROKER,
    *table_columns("""
        attempts int: attempts to send to the broker
        attempts_share float share: share of the producer's attempts
        failures int: attempts that failed for the client
        windows int: actual or hypothetical isolation windows
        isolated_us int µs: total isolation while the producer was active
        isolated_share float share: share of the producer's active time; hypothetical unless
            strategy is `on`
        to_isolated int: attempts to send to the broker while it was isolated
        absent_us int µs: time since the isolation ended without any attempt; empty: in use
        elsewhere int: attempts to send to other brokers since the isolation ended
        abandoned bool: whether the broker stayed unused for ten times its isolation, or left the
            route
    """),
    _STRATEGY,
)
SETTING_COLUMNS = (
    *_WHO,
    *table_columns("""
        setting string: hypothetical strategy generation
        used bool: whether this is the client's own generation
        windows int: hypothetical isolation windows
        isolated_us int µs: total isolation while the producer was active
        longest_us int µs: longest window
        attempts_moved int: attempts that would have gone to another broker
        failures_avoided int: moved attempts that failed on their actual broker
        attempts_kept int: attempts to send to an isolated broker because no better one existed
    """),
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
_ROWS = 20_000
"""Rows of one table of results."""
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


def isolation_rows(assumed: Assumed) -> OfBatches:
    """Return the function that computes the rows of all tables for some producers' attempts.

    It is called with all attempts of one producer or several, in any order.
    """

    def rows(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        of_all = chain.from_iterable(_Rows(one, assumed).rows() for one in producers_of(batches))
        while some := list(islice(of_all, _ROWS)):
            yield from arrow_rows(some, FOLDED_COLUMNS).to_batches()

    return rows


class _Rows:
    """The rows of one producer."""

    def __init__(self, one: OneProducer, assumed: Assumed) -> None:
        self._gone = one.gone
        self._brokers = one.brokers
        parts = iter(one.parts)
        part = next(parts)
        first = {name: part.value(name, 0) for name in (*WHO, "version_name", "language", "gone")}
        self._who: IsolationRow = {name: first[name] for name in WHO}
        digits = self._who["process"]
        self._who["process"] = process_name_of(None if digits is None else str(digits))
        self._version_name = first["version_name"]
        self._language = None if first["language"] is None else str(first["language"])
        self._has_connections = first["gone"] is not None
        version = ordinal_of(str(self._version_name)) if self._version_name else None
        settings = assumed.settings_of(version)
        self._replays = {
            name: StrategyReplay(settings if name == settings.generation else FaultSettings(name))
            for name in GENERATIONS
        }
        self._own = self._replays[settings.generation]
        self._moved_failed: Counter[str] = Counter()
        """failures that a generation would have avoided"""
        self._first = self._last = int(part.attempts.begin[0])
        self._attempts, self._failures, self._to_isolated = (
            np.zeros(len(self._brokers), dtype=np.int64) for _ in range(3)
        )
        """by broker"""
        self._used = np.full(len(self._brokers), -1, dtype=np.int64)
        """begin of the last attempt at each broker"""
        self._elsewhere: dict[str, tuple[Window, int]] = {}
        """broker -> its last window, and the attempts elsewhere after it"""
        self._openings: list[IsolationRow] = []
        """of each window, the attempt that began it"""
        self._inside: list[int] = []
        """of each window, its attempts at the broker"""
        self._listed: list[tuple[IsolationRow, int, str]] = []
        """attempts at isolated brokers, each with the number of its window and the reason"""
        while True:
            self._add(part)
            following = next(parts, None)
            if following is None:
                break
            part = following
        self._replay = self._own.result()
        self._others = {
            name: self._replay if replay is self._own else replay.result()
            for name, replay in self._replays.items()
        }
        self._unreachable = ", ".join(sorted({gone.broker for gone in self._gone})) or None
        others = [(name, self._others[name]) for name in GENERATIONS]
        self._verdict: Verdict = verdict_of(
            self._replay, others, self._language, assumed.enabled, self._unreachable
        )
        self._span = max(self._last - self._first, 1)

    def _add(self, part: Part) -> None:
        """Add a part of the attempts."""
        sent, judged = part.attempts, part.judged
        failed = (sent.outcome.codes >= 0) & ~sent.outcome.among(_NO_FAILURE)
        count = len(self._brokers)
        self._attempts += np.bincount(sent.broker.codes[judged], minlength=count)
        self._failures += np.bincount(sent.broker.codes[judged & failed], minlength=count)
        np.maximum.at(self._used, sent.broker.codes, sent.begin)
        self._last = max(self._last, int(sent.begin.max()), int(sent.end.max()))
        for name, replay in self._replays.items():
            violations = replay.add(sent, part.due, judged)
            self._moved_failed[name] += int(failed[violations.because(BROKEN)].sum())
            # Only the client's own generation has rows; the others are summed up in the table of
            # settings.
            if replay is self._own:
                self._note(part, violations)
        for broker, (window, elsewhere) in self._elsewhere.items():
            more = int((elsewhere_since(sent, window) & judged).sum())
            self._elsewhere[broker] = window, elsewhere + more

    def _note(self, part: Part, violations: Violations) -> None:
        """Note the windows that a part opened, and its attempts at isolated brokers."""
        windows = self._own.windows
        for window in windows[len(self._openings) :]:
            self._openings.append(_seen(part, window.attempt))
            self._inside.append(0)
            self._elsewhere[window.broker] = window, 0
        for number, times in zip(*np.unique(violations.window, return_counts=True), strict=True):
            self._inside[number] += int(times)
        codes = part.attempts.broker.codes[violations.attempt]
        self._to_isolated += np.bincount(codes, minlength=len(self._brokers))
        # The rows keep texts of each attempt; a producer without strategy has one per send.
        most = MOST_SENDS - len(self._listed)
        columns = (violations.attempt, violations.window, violations.why)
        for index, number, why in zip(*(column[:most].tolist() for column in columns), strict=True):
            row = {
                **_seen(part, index),
                "broker": windows[number].broker,
                "time": int(part.attempts.begin[index]),
                "topic": part.attempts.topic[index],
                "attempt": part.value("attempt", index),
                "outcome": part.attempts.outcome[index],
            }
            self._listed.append((row, number, REASONS[why]))

    def rows(self) -> Iterator[IsolationRow]:
        """Return the rows of all tables."""
        kinds = (
            (PRODUCER, self._producers()),
            (WINDOW, self._windows()),
            (SEND, self._sends()),
            (BROKER, self._broker_rows()),
            (SETTING, self._settings()),
        )
        for kind, table_rows in kinds:
            for row in table_rows:
                yield {KIND.name: kind, **self._who, "strategy": self._verdict.state, **row}

    def _clipped(self, window: Window) -> int:
        return max(min(window.end, self._last) - window.start, 0)

    def _producers(self) -> Iterator[IsolationRow]:
        replay = self._replay
        connects = sum(outage.connects for outage in self._gone)
        yield {
            "language": self._language,
            "version_name": self._version_name,
            "generation": replay.settings.generation,
            "reason": self._verdict.reason,
            "brokers": len(self._brokers),
            "attempts": int(self._attempts.sum()),
            "failures": int(self._failures.sum()),
            "windows": len(replay.windows),
            "isolated_us": sum(map(self._clipped, replay.windows)),
            "avoided": replay.avoided,
            "to_isolated": replay.counts.total(),
            "not_followed": replay.broken,
            "no_better": replay.counts[ALL_ISOLATED],
            "connects_failed": connects if self._has_connections else None,
            "unreachable": self._unreachable,
            "first_time": self._first,
            "last_time": self._last,
        }

    def _windows(self) -> Iterator[IsolationRow]:
        each = zip(self._replay.windows, self._openings, self._inside, strict=True)
        for window, opening, count in each:
            yield {
                **opening,
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
        for row, number, why in self._listed:
            window = self._replay.windows[number]
            times = {"window_start": window.start, "window_end": window.end}
            yield {**row, "why": self._why(why), **times}

    def _why(self, reason: str) -> str:
        """Return why an attempt went to an isolated broker: a strategy that is off forbids none."""
        # The verdict is known only after all attempts, so the reason of each is corrected here.
        is_off = self._verdict.state in (NO_STRATEGY, OFF)
        return NOT_IN_FORCE if is_off and reason == BROKEN else reason

    def _broker_rows(self) -> Iterator[IsolationRow]:
        attempts_made = int(self._attempts.sum())
        for code, name in enumerate(self._brokers):
            windows = [window for window in self._replay.windows if window.broker == name]
            isolated = sum(map(self._clipped, windows))
            yield {
                "broker": name,
                "attempts": int(self._attempts[code]),
                "attempts_share": float(self._attempts[code]) / attempts_made,
                "failures": int(self._failures[code]),
                "windows": len(windows),
                "isolated_us": isolated,
                "isolated_share": min(isolated / self._span, 1.0),
                "to_isolated": int(self._to_isolated[code]),
                **(self._absence(name, int(self._used[code])) if windows else {}),
            }

    def _absence(self, broker: str, used: int) -> IsolationRow:
        """Return how long a broker stayed unused after it was available again."""
        window, elsewhere = self._elsewhere[broker]
        absence = absence_of(window, used, self._last, elsewhere)
        return {} if absence is None else asdict(absence)

    def _settings(self) -> Iterator[IsolationRow]:
        for name in GENERATIONS:
            replay = self._others[name]
            yield {
                "setting": name,
                "used": replay is self._replay,
                "windows": len(replay.windows),
                "isolated_us": sum(map(self._clipped, replay.windows)),
                "longest_us": max(
                    (window.end - window.start for window in replay.windows), default=0
                ),
                "attempts_moved": replay.broken,
                "failures_avoided": self._moved_failed[name],
                "attempts_kept": replay.counts.total() - replay.broken,
            }


def _seen(part: Part, index: int) -> IsolationRow:
    return {name: part.value(name, index) for name in (_KEY.name, "capture", "request_packet")}

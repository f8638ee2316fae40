"""Producers and their fault strategy: all sends of a host, and the replayed strategy.

The verdict is that of the isolation report, from the same code: attempts are stitched as in the
retry report, and `isolation.strategy_replay` replays the strategy over them. That needs numpy,
which a core install lacks: then there is no verdict.
RocketMQ: MQFaultStrategy, LatencyFaultToleranceImpl.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from operator import sub
from typing import TYPE_CHECKING, Final

from dissectors.endpoint import host_of
from dissectors.foreign import hex_bytes_of
from dissectors.remoting.code_sets import SENDS, STORED
from dissectors.remoting.ids.message_ids import GRPC_ID, KEY_LENGTHS
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ONEWAY, ExchangeRecord

from ..sends import attempts
from ..sends.attempts import DEFAULT_TIMEOUT_US, ObservedAttempt
from ..sends.unavailable import GAP_US, Gone, gone_by_bucket, gone_near, unseen_in
from .context import Context
from .keys import Add, Flow, key_times, message_keys, request_times, response_times
from .messages import ObservedMessage, failure_of, is_producers, process_of
from .rule import Exchanges, Fold

if TYPE_CHECKING:
    from replay.fault import FaultSettings

    from ..isolation.producer_attempts import ProducerAttempts
    from ..isolation.strategy_replay import Replay, Verdict


_NEAR: Final = DEFAULT_TIMEOUT_US * 1000
"""maximum ns between the creation of a message and its first send"""


@dataclass(slots=True)
class ProducerSends:
    """The sends of one producer, and its identity."""

    maker: str
    """a UNIQ_KEY of the producer"""
    endpoint: str
    """its first `address:port`"""
    group: str | None
    language: str | None
    version: int | None
    kinds: dict[tuple[str, str, str | None], int] = field(default_factory=dict)
    """(outcome, address, topic) -> kind number"""
    marks: array[int] = field(default_factory=lambda: array("q"))
    """per send: the hash of its UNIQ_KEY"""
    begins: array[int] = field(default_factory=lambda: array("q"))
    """per send: µs of the message creation, or of the request if that is not near"""
    ends: array[int] = field(default_factory=lambda: array("q"))
    """per send: µs of the response, or -1"""
    numbers: array[int] = field(default_factory=lambda: array("q"))
    """per send: its kind number"""
    longest: int = 0
    """maximum latency of a send in µs"""

    def add(self, rows: Sequence[ExchangeRecord], kind: tuple[str, str, str | None]) -> None:
        """Add sends of one kind that have a key and a request time."""
        asked = [time or 0 for time in request_times(rows)]
        begins = [
            (time if created is None or not 0 <= time - created <= _NEAR else created) // 1000
            for time, created in zip(asked, key_times(rows), strict=True)
        ]
        times = asked if kind[0] == attempts.ONEWAY else response_times(rows)
        ends = [-1 if time is None else time // 1000 for time in times]
        self.longest = max(self.longest, *map(sub, ends, begins))
        # A hash takes 8 bytes; of millions, hardly two are equal, and then one send is left out.
        self.marks.extend(map(hash, message_keys(rows)))
        self.begins.extend(begins)
        self.ends.extend(ends)
        self.numbers.extend([self.kinds.setdefault(kind, len(self.kinds))] * len(rows))

    def may_isolate(self, settings: FaultSettings) -> bool:
        """Return whether a send was refused, or slow enough for the strategy to avoid a broker."""
        if any(outcome == attempts.REFUSED for outcome, _, _ in self.kinds):
            return True
        return settings.duration_of(self.longest // 1000) > 0

    def attempts(
        self,
        messages: Sequence[ObservedMessage],
        context: Context,
    ) -> ProducerAttempts:
        """Return all attempts by time: those of stitched messages, and the others."""
        import numpy as np

        from ..isolation.producer_attempts import Coded, ProducerAttempts

        marks, begins, ends, numbers = (
            np.array(one, dtype=np.int64)
            for one in (self.marks, self.begins, self.ends, self.numbers)
        )
        places: dict[str | None, int] = {}
        of_kind = [places.setdefault(topic, len(places)) for *_, topic in self.kinds]
        looked_at = [message for message in messages if message.last.send.topic in places]
        their_marks = np.array([hash(message.key) for message in looked_at], dtype=np.int64)
        their_topics = [places[message.last.send.topic] for message in looked_at]
        of_theirs = their_marks * len(places) + np.array(their_topics, dtype=np.int64)
        of_sends = marks * len(places) + np.array(of_kind, dtype=np.int64)[numbers]
        others = np.flatnonzero(~np.isin(of_sends, of_theirs))
        tried = [attempt for message in messages for attempt in message.attempts]
        begin = np.append(
            begins[others], np.array([attempt.begin for attempt in tried], dtype=np.int64)
        )
        end = np.append(
            ends[others],
            np.array(
                [-1 if attempt.end is None else attempt.end for attempt in tried], dtype=np.int64
            ),
        )
        kinds = [
            (topic, context.broker(address), None, outcome, None)
            for outcome, address, topic in self.kinds
        ]
        outcomes = [outcomes for message in messages for outcomes in _outcomes_of(message.attempts)]
        columns: list[Coded] = []
        for of_kinds, of_tried in zip(_columns(kinds), _columns(outcomes), strict=True):
            names = sorted({one for one in (*of_kinds, *of_tried) if one is not None})
            code: dict[str | None, int] = {name: place for place, name in enumerate(names)}
            code[None] = -1
            many = np.array([code[column] for column in of_kinds], dtype=np.int64)[numbers[others]]
            few = np.array([code[column] for column in of_tried], dtype=np.int64)
            columns.append(Coded(tuple(names), np.append(many, few)))
        topic, broker, last_broker, outcome, cause = columns
        order = np.lexsort((topic.codes, broker.codes, end, begin))
        return ProducerAttempts(
            topic=topic.at(order),
            broker=broker.at(order),
            last_broker=last_broker.at(order),
            outcome=outcome.at(order),
            cause=cause.at(order),
            begin=begin[order],
            end=end[order],
        )


_Outcomes = tuple[str | None, str, str | None, str, str | None]
"""topic, broker, previous broker, outcome, and cause as in the strategy's report"""


def _outcomes_of(tried: Sequence[ObservedAttempt]) -> Iterable[_Outcomes]:
    before: str | None = None
    for attempt in tried:
        send = attempt.send
        cause = send.response_name if attempt.outcome == attempts.REFUSED else attempt.outcome
        yield send.topic, send.broker, before, attempt.outcome, cause
        before = send.broker


def _columns(rows: Sequence[_Outcomes]) -> Sequence[Sequence[str | None]]:
    return list(zip(*rows, strict=True)) if rows else [()] * 5


def process_digits(key: str) -> str:
    """Return the process digits of a UNIQ_KEY, or an empty string."""
    return key[-24:-12] if len(key) in KEY_LENGTHS else ""


MAX_SENDS: Final = 200_000
"""maximum sends of one host; later ones are ignored"""
MAX_PRODUCERS: Final = 1024
"""maximum producers of one host"""


@dataclass(frozen=True)
class JudgedProducer:
    """A producer, the strategy's view of its attempts, and whether the strategy was on."""

    host: str
    endpoint: str
    """one `address:port` of the producer"""
    group: str | None
    attempts: ProducerAttempts
    replay: Replay
    verdict: Verdict
    telling: dict[int, ObservedAttempt]
    """start in µs -> the attempts that were analyzed individually"""
    last: int
    """last sign of the producer, µs"""


class ProducerFold(Fold):
    """All sends of one host, its connections, and its relevant messages."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._messages: list[ObservedMessage] = []
        self.sends: dict[tuple[str, str | None, int | None], ProducerSends] = {}
        """process, group, and version: another version is another program"""
        self._count = 0
        self._failures: list[ConversationRecord] = []

    def adder_of(self, flow: Flow) -> Add:
        """Return the function that adds sends of a flow, which have one outcome."""
        if flow.response_code is not None:
            outcome = attempts.STORED if flow.response_code in STORED else attempts.REFUSED
        else:
            outcome = attempts.ONEWAY if flow.status == ONEWAY else attempts.UNKNOWN
        kind = outcome, flow.server_address, flow.topic

        def add(rows: Sequence[ExchangeRecord]) -> None:
            for digits, own in _by_process(rows).items():
                sends = self._sends_of(digits, own[0])
                if sends is not None and self._count < MAX_SENDS:
                    if len(own) > MAX_SENDS - self._count:
                        own = own[: MAX_SENDS - self._count]
                    self._count += len(own)
                    sends.add(own, kind)

        return add

    def _sends_of(self, digits: str, row: ExchangeRecord) -> ProducerSends | None:
        """Return the sends of a producer, or None if the limit is reached."""
        # Digits are of a process, and one process may have several producers.
        identity = digits, row.group, row.version
        sends = self.sends.get(identity)
        if sends is None:
            if len(self.sends) >= MAX_PRODUCERS:
                return None
            sends = self.sends[identity] = ProducerSends(
                row.unique_key or "", row.client_address, row.group, row.language, row.version
            )
        sends.endpoint = min(sends.endpoint, row.client_address)
        return sends

    def add_connection(self, row: ConversationRecord) -> None:
        """Add a connection of the host."""
        if row.end in tcp.NEVER_OPENED and len(self._failures) < MAX_SENDS:
            self._failures.append(row)

    def add_message(self, message: ObservedMessage) -> None:
        """Add a message of the host."""
        self._messages.append(message)

    def forget_messages(self) -> None:
        """Forget the messages."""
        self._messages.clear()

    def producers(self, context: Context) -> list[JudgedProducer]:
        """Return the producers with a failure or slow response; empty without numpy."""
        if find_spec("numpy") is None:
            return []
        by_process: dict[str, list[ObservedMessage]] = {}
        for message in sorted(
            self._messages, key=lambda message: (message.attempts[0].begin, message.key)
        ):
            by_process.setdefault(process_of(message.key, self.key), []).append(message)
        found = []
        for (digits, group, version), sends in sorted(
            self.sends.items(), key=lambda item: str(item[0])
        ):
            if _relayed(sends.maker, self.key, context):
                continue
            process = f"{self.key} {digits}" if digits else self.key
            own = [
                one
                for one in by_process.get(process, ())
                if (one.attempts[0].send.group, one.attempts[0].send.version) == (group, version)
            ]
            judged = self._judged(sends, own, context)
            if judged is not None:
                found.append(judged)
        return found

    def _judged(
        self, sends: ProducerSends, messages: list[ObservedMessage], context: Context
    ) -> JudgedProducer | None:
        """Return the verdict on one producer, or None if nothing could cause isolation."""
        from replay.fault import GENERATIONS, FaultSettings

        settings = FaultSettings.of_version(sends.version)
        if not messages and not sends.may_isolate(settings):
            return None  # checked before numpy is loaded, which takes longer than a small capture
        from ..isolation.strategy_replay import replayed, verdict_of

        telling = {attempt.begin: attempt for message in messages for attempt in message.attempts}
        attempts_of_producer = sends.attempts(messages, context)
        if not len(attempts_of_producer):
            return None
        gone = self._gone(attempts_of_producer, telling.values(), context)
        attempts_of_producer = replace(attempts_of_producer, unseen=unseen_in(gone))
        replay = replayed(attempts_of_producer, settings)
        if not replay.windows:
            return None
        # A generator: other generations are replayed only if the client's own one does not fit.
        others = (
            (
                name,
                replay
                if name == settings.generation
                else replayed(attempts_of_producer, FaultSettings(name)),
            )
            for name in GENERATIONS
        )
        unreachable = ", ".join(sorted({failure.broker for failure in gone})) or None
        verdict = verdict_of(replay, others, sends.language, None, unreachable)
        begin, end = attempts_of_producer.begin, attempts_of_producer.end
        return JudgedProducer(
            self.key,
            sends.endpoint,
            sends.group,
            attempts_of_producer,
            replay,
            verdict,
            telling,
            int(max(begin.max(), end.max())),
        )

    def _gone(
        self, sent: ProducerAttempts, telling: Iterable[ObservedAttempt], context: Context
    ) -> list[Gone]:
        """Return the brokers of a producer that were unreachable at times."""
        failures = [failure_of(row, context.broker(row.server_address)) for row in self._failures]
        tied = {
            (message.send.capture, message.send.conversation)
            for message in telling
            if message.inferred
        }
        by_bucket = gone_by_bucket(failures, tied)
        buckets = {*(sent.begin // GAP_US).tolist()} if by_bucket else ()
        return gone_near((by_bucket.get(bucket, ()) for bucket in buckets), sent.broker.names)


def _by_process(rows: Sequence[ExchangeRecord]) -> dict[str, Sequence[ExchangeRecord]]:
    """Group sends by the process digits of their producer; a relay forwards several."""
    # Almost always, a flow is of one process: then no row is looked at alone.
    if None not in request_times(rows):
        digits = _digits_of_all(message_keys(rows))
        if digits is not None:
            return {digits: rows}
    by_process: dict[str, list[ExchangeRecord]] = {}
    for row in rows:
        key = row.unique_key
        # gRPC clients avoid proxies, not brokers, and by rules of their own.
        if key is not None and row.request_time is not None and not _MADE_BY_GRPC(key):
            digits = process_digits(key)
            own = by_process.get(digits)
            if own is None:
                own = by_process[digits] = []
            own.append(row)
    return {**by_process}


_MADE_BY_GRPC: Final = re.compile(GRPC_ID).fullmatch


def _digits_of_all(keys: Sequence[str | None]) -> str | None:
    """Return the process digits shared by all messages, or None if any differ or are missing."""
    first = keys[0] if keys else None
    if first is None or not (digits := process_digits(first)):
        return None
    length = len(first)
    for key in keys:
        if key is None or len(key) != length or key[-24:-12] != digits:
            return None
    return digits


def _relayed(key: str, host: str, context: Context) -> bool:
    """Return whether a server relays it for a client elsewhere, as its UNIQ_KEY shows."""
    if len(key) != _IPV4_KEY or host not in context.server_hosts():
        return False
    address = hex_bytes_of(key[:8])
    if address is None:
        return False
    maker = ".".join(map(str, address))
    return maker != host and not host.startswith("127.")


_IPV4_KEY: Final = 32
"""length of a UNIQ_KEY with an IPv4 address"""


@lru_cache(4096)
def _host(endpoint: str) -> str:
    return host_of(endpoint)


def _host_of_sender(row: ExchangeRecord) -> str | None:
    return _host(row.client_address) if is_producers(row) else None


def host_of_producer(message: ObservedMessage) -> str | None:
    """Return the sending host of a message; None for gRPC, where the proxy chooses the broker."""
    first = message.attempts[0].send
    return None if first.call else first.host


def host_of_client(row: ConversationRecord) -> str:
    """Return the connecting host."""
    return host_of(row.client_address)


PRODUCER_SENDS: Final = (Exchanges(key=_host_of_sender, requests=SENDS, of_flow=True),)
"""Exchanges that `ProducerFold` takes."""

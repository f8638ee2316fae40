"""Producers and their fault strategy: all sends of a host, and what the strategy makes of them.

Rules: the judgement is that of the isolation report, by the same code: attempts are stitched as in
the retry report, and `isolation.strategy_replay` replays the strategy over them. That needs numpy,
which a core install does not have: nothing is said then. Of sends that were stored at once only
their numbers are kept, so that memory is bounded and small.
RocketMQ: MQFaultStrategy, LatencyFaultToleranceImpl.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from dissectors.endpoint import host_of
from dissectors.foreign import hex_bytes_of, hexadecimal_of
from dissectors.remoting.code_sets import SENDS, STORED
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ONEWAY, ExchangeRecord

from ...sends import attempts
from ...sends.attempts import DEFAULT_TIMEOUT_US, ObservedAttempt
from ..context import Context
from ..keys import Flow, flow_of
from ..messages import ObservedMessage, is_producers, process_of
from ..rule import Add, Exchanges, Fold

if TYPE_CHECKING:
    from replay.fault import FaultSettings

    from ...isolation.producer_attempts import ProducerAttempts
    from ...isolation.strategy_replay import Replay
    from ...isolation.strategy_verdict import Verdict

MAX_SENDS: Final = 200_000
"""sends of one host that are looked at; those after them are not"""
MAX_PRODUCERS: Final = 256
"""producers of one host"""
BURST_US: Final = 200_000
"""a client that cannot connect for a message tries again within such a time"""
GAP_US: Final = 10_000_000
"""failed connects so far apart are of two outages"""


@dataclass(slots=True)
class _Sends:
    """The sends of one producer as numbers, and who it is."""

    maker: str
    """a UNIQ_KEY of it"""
    endpoint: str
    """the first of its `address:port`"""
    group: str | None
    language: str | None
    version: int | None
    kinds: dict[tuple[str, str, str | None], int] = field(default_factory=dict)
    """(outcome, address, topic) -> its number"""
    numbers: array[int] = field(default_factory=lambda: array("q"))
    """of each send: hash of its key, µs of its request, of its answer or -1, number of its kind"""

    def sends(self) -> Iterator[tuple[int, int, int, int]]:
        """Return what is kept of each send."""
        numbers = iter(self.numbers)
        return zip(numbers, numbers, numbers, numbers, strict=True)

    def may_isolate(self, settings: FaultSettings) -> bool:
        """Return whether one was refused, or took so long that the strategy avoids a broker."""
        if any(outcome == attempts.REFUSED for outcome, _, _ in self.kinds):
            return True
        longest = max((end - begin for _, begin, end, _ in self.sends()), default=0)
        return settings.duration_of(longest // 1000) > 0


_LENGTHS: Final = (32, 56)
"""characters of a UNIQ_KEY, with an IPv4 or IPv6 address"""
ZONES_US: Final = 15 * 60 * 1_000_000
"""a UNIQ_KEY has the time of the client's zone; zones are multiples of 15 minutes"""
LEAD_SLACK_US: Final = 1_000_000


@dataclass(frozen=True)
class JudgedProducer:
    """A producer, what the strategy makes of its attempts, and whether it had it on."""

    host: str
    endpoint: str
    """one `address:port` of it"""
    group: str | None
    attempts: ProducerAttempts
    replay: Replay
    verdict: Verdict
    telling: dict[int, ObservedAttempt]
    """begin in µs -> the attempts that were looked at one by one"""
    last: int
    """its last sign, µs"""


class ProducerFold(Fold):
    """All sends of one host, its connections, and those of its messages that may tell something."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._messages: list[ObservedMessage] = []
        self._of: dict[tuple[str, str | None], _Sends] = {}
        self._count = 0
        self._failures: list[ConversationRecord] = []

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Take a send of a producer."""
        self.adder_of(flow_of(row))(row)

    def adder_of(self, flow: Flow) -> Add:
        """Return what takes the sends of a flow: all of one outcome."""
        if flow.response_code is not None:
            outcome = attempts.STORED if flow.response_code in STORED else attempts.REFUSED
        else:
            outcome = attempts.ONEWAY if flow.status == ONEWAY else attempts.UNKNOWN
        oneway = outcome == attempts.ONEWAY
        kind = outcome, flow.responder, flow.topic
        known: dict[str, tuple[array[int], int]] = {}

        def add(row: ExchangeRecord) -> None:
            key = row.unique_key
            time = row.request_time
            if key is None or time is None or self._count >= MAX_SENDS:
                return
            digits = key[-24:-12] if len(key) in _LENGTHS else ""
            found = known.get(digits)
            if found is None:
                sends = self._sends_of(digits, row)
                if sends is None:
                    return
                number = sends.kinds.setdefault(kind, len(sends.kinds))
                found = known[digits] = sends.numbers, number
            self._count += 1
            begin = time // 1000
            answer = row.response_time
            end = begin if oneway else -1 if answer is None else answer // 1000
            found[0].extend((hash(key), _born_of(key, begin), end, found[1]))

        return add

    def _sends_of(self, digits: str, row: ExchangeRecord) -> _Sends | None:
        """Return what is kept of the producer of a send; None where there are too many."""
        who = digits, row.group
        sends = self._of.get(who)
        if sends is None:
            if len(self._of) >= MAX_PRODUCERS:
                return None
            sends = self._of[who] = _Sends(
                row.unique_key or "", row.requester, row.group, row.language, row.version
            )
        sends.endpoint = min(sends.endpoint, row.requester)
        return sends

    def add_connection(self, row: ConversationRecord) -> None:
        """Take a connection of the host."""
        if row.end in (tcp.REFUSED, tcp.NO_ANSWER) and len(self._failures) < MAX_SENDS:
            self._failures.append(row)

    def add_message(self, message: ObservedMessage) -> None:
        """Take a message of the host."""
        self._messages.append(message)

    def forget_messages(self) -> None:
        """Forget the messages."""
        self._messages.clear()

    def producers(self, context: Context) -> list[JudgedProducer]:
        """Return the producers that had a failure or slow answer; none without numpy."""
        if find_spec("numpy") is None:
            return []
        by_process: dict[str, list[ObservedMessage]] = {}
        for message in sorted(self._messages, key=lambda one: (one.attempts[0].begin, one.key)):
            by_process.setdefault(process_of(message.key, self.key), []).append(message)
        found = []
        for (digits, group), sends in sorted(self._of.items(), key=lambda one: str(one[0])):
            if _relayed(sends.maker, self.key, context):
                continue
            process = f"{self.key} {digits}" if digits else self.key
            own = [
                one for one in by_process.get(process, ()) if one.attempts[0].send.group == group
            ]
            judged = self._judged(sends, own, context)
            if judged is not None:
                found.append(judged)
        return found

    def _judged(
        self, sends: _Sends, messages: list[ObservedMessage], context: Context
    ) -> JudgedProducer | None:
        """Return what is thought of one producer; None: nothing happened that could isolate."""
        from replay.fault import GENERATIONS, FaultSettings

        settings = FaultSettings.of_version(sends.version)
        if not messages and not sends.may_isolate(settings):
            return None  # before numpy is loaded, which takes longer than a small capture
        from ...isolation.strategy_replay import replayed
        from ...isolation.strategy_verdict import verdict_of

        attempts_of_producer, telling = self._columns(sends, messages, context)
        if not len(attempts_of_producer):
            return None
        replay = replayed(attempts_of_producer, settings)
        if not replay.windows:
            return None
        others = {
            name: replay
            if name == settings.generation
            else replayed(attempts_of_producer, FaultSettings(name))
            for name in GENERATIONS
        }
        gone = sorted({context.broker(row.server) for row in self._known_failures(context)})
        verdict = verdict_of(replay, others, sends.language, None, ", ".join(gone) or None)
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

    def _columns(
        self, sends: _Sends, messages: list[ObservedMessage], context: Context
    ) -> tuple[ProducerAttempts, dict[int, ObservedAttempt]]:
        """Return all attempts of a producer by time, and those that were stitched."""
        import numpy as np

        from ...isolation.producer_attempts import Coded, ProducerAttempts

        stitched = {hash(message.key) for message in messages}
        kinds = list(sends.kinds)
        rows: list[tuple[int, int, str | None, str, str | None, str, str | None]] = []
        for key, begin, end, number in sends.sends():
            if key not in stitched:
                outcome, address, topic = kinds[number]
                rows.append((begin, end, topic, context.broker(address), None, outcome, None))
        telling: dict[int, ObservedAttempt] = {}
        for message in messages:
            before: str | None = None
            for one in message.attempts:
                telling[one.begin] = one
                end = -1 if one.end is None else one.end
                cause = one.send.response_name if one.outcome == attempts.REFUSED else one.outcome
                broker = one.send.broker
                rows.append((one.begin, end, one.send.topic, broker, before, one.outcome, cause))
                before = one.send.broker
        rows.sort(key=lambda row: (row[0], row[1], row[3], row[2] or ""))
        made = ProducerAttempts(
            topic=Coded.of([row[2] for row in rows]),
            broker=Coded.of([row[3] for row in rows]),
            last_broker=Coded.of([row[4] for row in rows]),
            outcome=Coded.of([row[5] for row in rows]),
            cause=Coded.of([row[6] for row in rows]),
            begin=np.array([row[0] for row in rows], dtype=np.int64),
            end=np.array([row[1] for row in rows], dtype=np.int64),
            unseen=tuple(self._unseen(telling.values(), context)),
        )
        return made, telling

    def _known_failures(self, context: Context) -> list[ConversationRecord]:
        names = context.names_of_ports()
        known = [row for row in self._failures if row.server in names]
        return sorted(known, key=lambda row: (row.server, row.start_time, row.conversation))

    def _unseen(
        self, telling: Iterable[ObservedAttempt], context: Context
    ) -> Iterable[tuple[int, int]]:
        """Return from when to when messages failed of which only connects were seen.

        A client tries again at once, so several connects in a row that no send is tied to are one.
        """
        tied = {one.send.conversation for one in telling if one.inferred}
        before: ConversationRecord | None = None
        spans: list[list[int]] = []
        for row in self._known_failures(context):
            at = row.start_time // 1000
            since = None
            if before is not None and before.server == row.server:
                since = at - before.start_time // 1000
            free = row.conversation not in tied
            burst = (
                since is not None
                and since <= BURST_US
                and free
                and before is not None
                and before.conversation not in tied
            )
            if since is None or since > GAP_US:
                spans.append([])
            if burst and since is not None:
                spans[-1] += [at - since, at]
            before = row
        return [(min(one), max(one)) for one in spans if one]


def _born_of(key: str, begin: int) -> int:
    """Return when a message got its UNIQ_KEY, as far as that is told and near; µs.

    The same as by `lead_of`, of which the key's form is not checked for every send.
    """
    born = hexadecimal_of(key[-12:-4])
    if born is None:
        return begin
    lead = (begin - born * 1000 + LEAD_SLACK_US) % ZONES_US - LEAD_SLACK_US
    return begin - lead if len(key) in _LENGTHS and 0 < lead <= DEFAULT_TIMEOUT_US else begin


def _relayed(key: str, host: str, context: Context) -> bool:
    """Return whether a server sends it on for a client elsewhere: its UNIQ_KEY names that one."""
    if len(key) != _IPV4_KEY or not any(host_of(one) == host for one in context.servers):
        return False
    address = hex_bytes_of(key[:8])
    if address is None:
        return False
    maker = ".".join(map(str, address))
    return maker != host and not host.startswith("127.")


_IPV4_KEY: Final = 32
"""characters of a UNIQ_KEY with an IPv4 address"""


@lru_cache(4096)
def _host(endpoint: str) -> str:
    return host_of(endpoint)


def _host_of_sender(row: ExchangeRecord) -> str | None:
    return _host(row.requester) if is_producers(row) else None


def host_of_producer(message: ObservedMessage) -> str:
    """Return the host that sent a message."""
    return message.attempts[0].send.host


def host_of_client(row: ConversationRecord) -> str:
    """Return the host that connected."""
    return host_of(row.client)


PRODUCER_SENDS: Final = (Exchanges(key=_host_of_sender, requests=SENDS, of_flow=True),)
"""What `ProducerFold` takes of exchanges."""

"""Producers and their fault strategy: all sends of a host, and what the strategy makes of them.

Rules: the judgement is that of the isolation report, by the same code: attempts are stitched as in
the retry report, and `isolation.strategy_replay` replays the strategy over them. That needs numpy,
which a core install does not have: nothing is said then. Of sends that were stored at once only
their numbers are kept, so that memory is bounded and small.
RocketMQ: MQFaultStrategy, LatencyFaultToleranceImpl.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from dissectors.endpoint import host_of
from dissectors.foreign import hex_bytes_of
from dissectors.remoting.code_sets import SENDS, STORED
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ONEWAY, ExchangeRecord

from ...sends import attempts
from ...sends.attempts import ObservedAttempt
from ..context import Context
from ..keys import Add, Flow, ask_times, flow_of, message_keys
from ..messages import ObservedMessage, is_producers, process_of
from ..rule import Exchanges, Fold
from .producer_sends import ProducerSends, process_digits

if TYPE_CHECKING:
    from ...isolation.producer_attempts import ProducerAttempts
    from ...isolation.strategy_replay import Replay
    from ...isolation.strategy_verdict import Verdict

MAX_SENDS: Final = 200_000
"""sends of one host that are looked at; those after them are not"""
MAX_PRODUCERS: Final = 1024
"""producers of one host"""
BURST_US: Final = 200_000
"""a client that cannot connect for a message tries again within such a time"""
GAP_US: Final = 10_000_000
"""failed connects so far apart are of two outages"""


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
        self._of: dict[tuple[str, str | None, int | None], ProducerSends] = {}
        """process, group, and version: another version is another program"""
        self._count = 0
        self._failures: list[ConversationRecord] = []

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Take a send of a producer."""
        self.adder_of(flow_of(row))((row,))

    def adder_of(self, flow: Flow) -> Add:
        """Return what takes the sends of a flow: all of one outcome."""
        if flow.response_code is not None:
            outcome = attempts.STORED if flow.response_code in STORED else attempts.REFUSED
        else:
            outcome = attempts.ONEWAY if flow.status == ONEWAY else attempts.UNKNOWN
        kind = outcome, flow.responder, flow.topic

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
        """Return what is kept of the producer of a send; None where there are too many."""
        who = digits, row.group, row.version
        sends = self._of.get(who)
        if sends is None:
            if len(self._of) >= MAX_PRODUCERS:
                return None
            sends = self._of[who] = ProducerSends(
                row.unique_key or "", row.requester, row.group, row.language, row.version
            )
        sends.endpoint = min(sends.endpoint, row.requester)
        return sends

    def add_connection(self, row: ConversationRecord) -> None:
        """Take a connection of the host."""
        if row.end in tcp.NEVER_OPENED and len(self._failures) < MAX_SENDS:
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
        for (digits, group, version), sends in sorted(
            self._of.items(), key=lambda one: str(one[0])
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
        """Return what is thought of one producer; None: nothing happened that could isolate."""
        from replay.fault import GENERATIONS, FaultSettings

        settings = FaultSettings.of_version(sends.version)
        if not messages and not sends.may_isolate(settings):
            return None  # before numpy is loaded, which takes longer than a small capture
        from ...isolation.strategy_replay import replayed
        from ...isolation.strategy_verdict import verdict_of

        telling = {one.begin: one for message in messages for one in message.attempts}
        unseen = self._unseen(telling.values(), context)
        attempts_of_producer = sends.attempts(messages, unseen, context)
        if not len(attempts_of_producer):
            return None
        replay = replayed(attempts_of_producer, settings)
        if not replay.windows:
            return None
        others = (
            (
                name,
                replay
                if name == settings.generation
                else replayed(attempts_of_producer, FaultSettings(name)),
            )
            for name in GENERATIONS
        )
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


def _by_process(rows: Sequence[ExchangeRecord]) -> dict[str, Sequence[ExchangeRecord]]:
    """Return sends by the digits of the process that made them; a relay sends on those of several.

    Those without a key, or whose request was not seen, are left out.
    """
    if None not in ask_times(rows):
        digits = _digits_of_all(message_keys(rows))
        if digits is not None:
            return {digits: rows}
    found: dict[str, list[ExchangeRecord]] = {}
    for row in rows:
        key = row.unique_key
        if key is not None and row.request_time is not None:
            digits = process_digits(key)
            own = found.get(digits)
            if own is None:
                own = found[digits] = []
            own.append(row)
    return {**found}


def _digits_of_all(keys: Sequence[str | None]) -> str | None:
    """Return the digits of the process that made all messages; None: they are not so simple."""
    first = keys[0] if keys else None
    if first is None or not (digits := process_digits(first)):
        return None
    length = len(first)
    for key in keys:
        if key is None or len(key) != length or key[-24:-12] != digits:
            return None
    return digits


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

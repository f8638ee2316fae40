"""Messages whose attempts are looked at one by one: kept while they may matter, then stitched.

Rules: the stitching is that of the retry report (`analytics.sends.attempts`, `chains`), so that
both say the same of a message. Of all sends only recent ones are kept; one that failed, took long,
was seen twice or followed a failed connect is kept to the end. Numbers are bounded, and what went
over a bound is counted.
RocketMQ: DefaultMQProducerImpl.sendDefaultImpl.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Final, cast

from dissectors.endpoint import host_of
from dissectors.remoting.code_sets import SENDS, STORED
from dissectors.remoting.ids.message_ids import KEY_LENGTHS
from dissectors.remoting.topic_names import DLQ_PREFIX, RETRY_PREFIX
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import left_at
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import (
    ONEWAY,
    ORPHAN,
    ExchangeRecord,
    MessageIdentity,
    identity_of,
)
from dissectors.rows.relays import hop_of, inner_hops, proven_relays

from ..sends.attempts import (
    DEFAULT_TIMEOUT_US,
    SOON_US,
    ConnectFailure,
    ObservedAttempt,
    Send,
    attempts_of,
)
from ..sends.births import lead_to
from ..sends.chains import Chain, Limits, chain_of
from ..sends.timeouts import timeout_learnt
from .keys import Add, Flow, ask_times, flow_of, message_keys, slowest_of

MAX_RECENT: Final = 20_000
"""messages that were stored at once and may still be sent again"""
MAX_SENDS: Final = 64
"""sends of one message"""
MAX_TELLING: Final = 20_000
"""messages whose attempts are looked at"""
MAX_CONNECTIONS: Final = 50_000
"""connections that sends may have been on"""
MAX_FAILURES: Final = 20_000
"""connects that failed"""
LONG_US: Final = DEFAULT_TIMEOUT_US * 9 // 10
"""time of a send from which on it may have been given up"""
RETRIES: Final = 2
"""retryTimesWhenSendFailed unless it is set"""
Placed = tuple[str, ExchangeRecord]
"""a send and the input it was seen in"""
_Connection = tuple[str, int, str, str]
"""input, number of the conversation in it, both ends; a fold does not know the input"""
_SOON: Final = SOON_US * 1000


@dataclass(frozen=True, slots=True)
class ObservedMessage:
    """A message of a producer with its attempts."""

    key: str
    """UNIQ_KEY"""
    attempts: list[ObservedAttempt]
    chain: Chain
    timeout_us: int
    """sendMsgTimeout that was assumed"""
    timeout_known: bool
    """learnt from what the client did"""
    rows: list[ExchangeRecord]
    """the exchanges, by time"""

    @property
    def last(self) -> ObservedAttempt:
        """The last attempt."""
        return self.attempts[-1]


def span_of_message(message: ObservedMessage) -> tuple[int, int]:
    """Return when a message was first sent, and when its last attempt began; ns."""
    return message.attempts[0].begin * 1000, message.attempts[-1].begin * 1000


class AttemptStore:
    """Sends by message, as far as they may matter."""

    def __init__(self) -> None:
        self._source = ""
        self._recent: dict[MessageIdentity, ExchangeRecord | Placed] = {}
        self._telling: dict[MessageIdentity, list[Placed]] = {}
        self._connections: OrderedDict[_Connection, ConversationRecord] = OrderedDict()
        self._failures: list[ConversationRecord] = []
        self._failed: dict[str, list[int]] = {}
        """host of a client -> when its connects failed, ns, by time"""
        self.left_out = 0
        """messages that would have been looked at, over MAX_TELLING"""

    @property
    def source(self) -> str:
        """Input that the rows come from: a number of a conversation is unique in it."""
        return self._source

    @source.setter
    def source(self, name: str) -> None:
        for key, one in self._recent.items():
            self._recent[key] = self._placed(one)
        self._source = name

    def add(self, row: ExchangeRecord) -> None:
        """Take an exchange; anything but a send is passed over."""
        add = self.adder_of(flow_of(row))
        if add is not None:
            add([row])

    def adder_of(self, flow: Flow) -> Add | None:
        """Return what takes the exchanges of a flow; None: they are not sends of a client."""
        if flow.request_code not in SENDS or flow.status == ORPHAN:
            return None
        oneway = flow.status == ONEWAY
        stored = flow.response_code in STORED
        telling, recent, topic = self._telling, self._recent, flow.topic

        def add(rows: Sequence[ExchangeRecord]) -> None:
            if not stored or not self._took_quick(rows, topic):
                add_each(rows)
            if len(recent) > MAX_RECENT:
                self._forget()

        def add_each(rows: Sequence[ExchangeRecord]) -> None:
            for row in rows:
                key = identity_of(row)
                if key is None or row.request_time is None:
                    continue
                if key in telling:
                    self._add_again(key, row)
                elif oneway or (
                    stored and (latency := row.latency_us) is not None and latency <= LONG_US
                ):
                    if recent.setdefault(key, row) is not row:
                        self._add_again(key, row)
                elif key in recent:
                    self._add_again(key, row)
                elif is_producers(row):
                    self.keep(key, [(self.source, row)])

        return add

    def _took_quick(self, rows: Sequence[ExchangeRecord], topic: str | None) -> bool:
        """Take sends that were stored at once and are the first of their messages; False, and none
        is taken, where one is not.
        """
        keys, recent, slowest = message_keys(rows), self._recent, slowest_of(rows)
        if slowest is None or slowest > LONG_US or None in keys or None in ask_times(rows):
            return False
        messages = list(zip(cast("list[str]", keys), repeat(topic)))
        if not (recent.keys().isdisjoint(messages) and self._telling.keys().isdisjoint(messages)):
            return False
        before = len(recent)
        recent.update(zip(messages, rows, strict=True))
        if len(recent) == before + len(rows):
            return True
        for key in messages:  # one was sent twice
            recent.pop(key, None)
        return False

    def _add_again(self, key: MessageIdentity, row: ExchangeRecord) -> None:
        """Take a send of a message that another one was seen of."""
        rows = self._telling.get(key)
        if rows is not None:
            if len(rows) < MAX_SENDS:
                rows.append((self.source, row))
            return
        before = self._recent.pop(key)
        if is_producers(row):
            self.keep(key, [self._placed(before), (self.source, row)])

    def add_connection(self, row: ConversationRecord) -> None:
        """Take a TCP connection that has ended."""
        if row.end in tcp.NEVER_OPENED:
            if len(self._failures) < MAX_FAILURES:
                self._failures.append(row)
                insort(self._failed.setdefault(host_of(row.client), []), row.end_time)
            return
        if row.commands:
            self._connections[self.source, row.conversation, row.client, row.server] = row
            if len(self._connections) > MAX_CONNECTIONS:
                self._connections.popitem(last=False)

    def _forget(self) -> None:
        """Let go of the oldest of the recent sends but those that a failed connect came before."""
        recent = self._recent
        oldest = list(islice(recent, len(recent) - MAX_RECENT * 3 // 4))
        if not self._failed:
            for key in oldest:
                del recent[key]
            return
        for key in oldest:
            one = self._placed(recent.pop(key))
            if self._after_failure(one[1]):
                self.keep(key, [one])

    def _keep_after_failures(self) -> None:
        """Keep the recent sends that failed connects came before, whichever was told first."""
        if self._failed:
            for key, one in [(key, self._placed(one)) for key, one in self._recent.items()]:
                if self._after_failure(one[1]):
                    del self._recent[key]
                    self.keep(key, [one])

    def _placed(self, one: ExchangeRecord | Placed) -> Placed:
        """Return a recent send with its input, which that of the present input has not."""
        return one if isinstance(one, tuple) else (self._source, one)

    def _after_failure(self, row: ExchangeRecord) -> bool:
        """Return whether a connect of the same host failed right before a send."""
        begin = row.request_time or 0
        failed = self._failed.get(host_of(row.requester), ())
        place = bisect_right(failed, begin)
        return place > 0 and begin - failed[place - 1] <= _SOON and is_producers(row)

    def keep(self, key: MessageIdentity, rows: list[Placed]) -> None:
        """Keep the sends of a message to the end."""
        if len(self._telling) >= MAX_TELLING:
            self.left_out += 1
            return
        self._telling[key] = rows

    def messages(self, names: Mapping[str, str]) -> list[ObservedMessage]:
        """Return the messages that matter, by the time of their first attempt.

        `names` are those of brokers by address.
        """
        self._keep_after_failures()
        failures = self._connect_failures(names)
        by_process: dict[str, list[list[Send]]] = {}
        rows_of: dict[MessageIdentity, list[ExchangeRecord]] = {}
        hops = {
            key: [hop_of(row) for _, row in rows]
            for key, rows in self._telling.items()
            if len(rows) > 1
        }
        relays = proven_relays(hops.values())
        for key, rows in self._telling.items():
            inner = inner_hops(hops.get(key, ()), relays)
            own = [one for place, one in enumerate(rows) if place not in inner]
            own.sort(key=lambda one: (one[1].request_time or 0, one[1].opaque))
            rows_of[key] = [row for _, row in own]
            made = [self._send_of(source, row, names) for source, row in own]
            by_process.setdefault(process_of(key[0], made[0].host), []).append(made)
        found = []
        for several in by_process.values():
            learnt = timeout_learnt(several)
            timeout = learnt if learnt is not None else DEFAULT_TIMEOUT_US
            limits = Limits(timeout, RETRIES, learnt is not None)
            for made in several:
                near = failures.get(made[0].host, [])
                attempts = attempts_of(made, near, timeout, learnt is not None)
                first = made[0]
                chain = chain_of(attempts, limits)
                own_rows = rows_of[first.unique_key, first.topic]
                found.append(
                    ObservedMessage(
                        first.unique_key, attempts, chain, timeout, learnt is not None, own_rows
                    )
                )
        found.sort(key=lambda one: (one.attempts[0].begin, one.key, one.last.send.topic or ""))
        return found

    def _connect_failures(self, names: Mapping[str, str]) -> dict[str, list[ConnectFailure]]:
        found: dict[str, list[ConnectFailure]] = {}
        for row in sorted(self._failures, key=lambda one: (one.start_time, one.conversation)):
            if row.server not in names:
                continue
            host = host_of(row.client)
            found.setdefault(host, []).append(
                ConnectFailure(
                    host,
                    row.server,
                    names[row.server],
                    row.start_time // 1000,
                    row.end_time // 1000,
                    row.end == tcp.REFUSED,
                    "",
                    row.capture,
                    row.conversation,
                )
            )
        return found

    def _send_of(self, source: str, row: ExchangeRecord, names: Mapping[str, str]) -> Send:
        place = source, row.conversation
        connection = self._connections.get((*place, row.requester, row.responder))
        if connection is None:  # its beginning was not seen: the ends may be the other way round
            connection = self._connections.get((*place, row.responder, row.requester))
        connected = closed = None
        ended_by: str | None = None
        whole: bool | None = None
        if connection is not None:
            if connection.start != tcp.MIDSTREAM:
                connected = connection.start_time // 1000
            if connection.end != tcp.OPEN:
                closed = left_at(connection) // 1000
            ended_by = connection.ended_by
            whole = connection.directions == tcp.BOTH and not connection.gaps
        assert row.request_time is not None
        begin = row.request_time // 1000
        key = row.unique_key or ""
        return Send(
            unique_key=key,
            host=host_of(row.requester),
            group=row.group,
            topic=row.topic,
            requester=row.requester,
            responder=row.responder,
            broker=names.get(row.responder, row.responder),
            asked_broker=row.broker_name,
            queue_id=row.queue_id,
            opaque=row.opaque,
            begin=begin,
            end=row.response_time // 1000 if row.response_time is not None else None,
            status=row.status,
            response_code=row.response_code,
            response_name=row.response_name,
            remark=row.remark,
            how_ended=row.end,
            language=row.language,
            version=row.version,
            version_name=row.version_name,
            source=source,
            capture=row.capture,
            conversation=row.conversation,
            request_packet=row.request_packet,
            response_packet=row.response_packet,
            offset_msg_id=row.offset_msg_id,
            lead=lead_to(key, begin),
            connected=connected,
            closed=closed,
            ended_by=ended_by,
            whole=whole,
        )


def is_producers(row: ExchangeRecord) -> bool:
    """Return whether a send is one of a producer, not of a consumer to its retry topic."""
    topic = row.topic or ""
    return row.request_code in SENDS and RETRY_PREFIX not in topic and DLQ_PREFIX not in topic


def process_of(key: str, host: str) -> str:
    """Return what tells a client process: address and the digits of it in a UNIQ_KEY."""
    return f"{host} {key[-24:-12]}" if len(key) in KEY_LENGTHS else host

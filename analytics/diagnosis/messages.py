"""Collect messages whose attempts are analyzed individually, then stitch them.

The stitching is that of the retry report (`analytics.sends.attempts`, `calls`, `chains`), so both
agree on each message. Only recent sends are kept; a send that failed, was slow, was captured twice,
or followed a failed connect is kept to the end.
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
from dissectors.grpc import send_codes
from dissectors.remoting.code_sets import SENDS, STORED
from dissectors.remoting.ids.message_ids import KEY_LENGTHS
from dissectors.remoting.row_facts.names import STREAM_RESET, fact_in
from dissectors.remoting.topic_names import is_group_topic
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import left_at
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.outcome import SEND_CALLS
from dissectors.rows.record import (
    ONEWAY,
    ORPHAN,
    ExchangeRecord,
    MessageIdentity,
    identity_of,
)
from dissectors.rows.relays import Relay, hop_of, inner_hops, proven_relays

from ..sends.attempts import (
    DEFAULT_TIMEOUT_US,
    SOON_US,
    ConnectFailure,
    ObservedAttempt,
    Send,
    long_us,
    timeout_learnt,
)
from ..sends.calls import attempts_of_message, with_broker_outcomes
from ..sends.chains import Chain, Limits, chain_of
from .keys import Add, Flow, flow_of, message_keys, request_times, slowest_of

MAX_RECENT: Final = 20_000
"""messages that were stored at once and may still be retried"""
MAX_SENDS: Final = 64
"""maximum sends of one message"""
MAX_TELLING: Final = 20_000
"""maximum messages whose attempts are analyzed"""
MAX_CONNECTIONS: Final = 50_000
"""maximum connections that may carry sends"""
MAX_FAILURES: Final = 20_000
"""maximum failed connects"""
_LONG_US: Final = long_us(DEFAULT_TIMEOUT_US)
RETRIES: Final = 2
"""default of retryTimesWhenSendFailed"""
Placed = tuple[str, ExchangeRecord]
"""a send and its input"""
_Connection = tuple[str, int, str, str]
"""input, conversation number in it, and both ends; a fold does not know the input"""
_SOON: Final = SOON_US * 1000


@dataclass(frozen=True, slots=True)
class ObservedMessage:
    """A producer's message with its attempts."""

    key: str
    """UNIQ_KEY"""
    attempts: list[ObservedAttempt]
    chain: Chain
    timeout_us: int
    """assumed sendMsgTimeout"""
    timeout_known: bool
    """inferred from the client's behavior"""
    rows: list[ExchangeRecord]
    """the exchanges, sorted by time"""

    @property
    def last(self) -> ObservedAttempt:
        """The last attempt."""
        return self.attempts[-1]


def span_of_message(message: ObservedMessage) -> tuple[int, int]:
    """Return the start times of the first and last attempts of a message, in ns."""
    return message.attempts[0].begin * 1000, message.attempts[-1].begin * 1000


class AttemptStore:
    """Sends by message, as far as they may be relevant."""

    def __init__(self) -> None:
        self._source = ""
        self._recent: dict[MessageIdentity, ExchangeRecord | Placed] = {}
        self._of_proxies: dict[MessageIdentity, list[Placed]] = {}
        """sends by proxies for recent calls"""
        self._telling: dict[MessageIdentity, list[Placed]] = {}
        self._connections: OrderedDict[_Connection, ConversationRecord] = OrderedDict()
        self._failures: list[ConversationRecord] = []
        self._failed: dict[str, list[int]] = {}
        """client host -> times of its failed connects in ns, sorted"""
        self.relays: frozenset[Relay] = frozenset()
        """relays proved by the messages, set by `messages`"""
        self.left_out = 0
        """messages omitted because of MAX_TELLING"""

    @property
    def source(self) -> str:
        """Input of the rows: conversation numbers are unique within one input."""
        return self._source

    @source.setter
    def source(self, name: str) -> None:
        # Sends of the current input are kept without its name: now it is no longer the current one.
        for key, send in self._recent.items():
            self._recent[key] = self._placed(send)
        self._source = name

    def add(self, row: ExchangeRecord) -> None:
        """Add an exchange; ignore everything except sends."""
        add = self.adder_of(flow_of(row))
        if add is not None:
            add([row])

    def adder_of(self, flow: Flow) -> Add | None:
        """Return the function that adds exchanges of a flow; None if they are no client sends."""
        call = flow.request_code is None  # of any kind: a flow does not tell which
        if not (call or flow.request_code in SENDS) or flow.status == ORPHAN:
            return None
        oneway = flow.status == ONEWAY
        stored = flow.response_code in (send_codes.STORED if call else STORED)
        telling, recent, topic = self._telling, self._recent, flow.topic

        def add(rows: Sequence[ExchangeRecord]) -> None:
            if call and not (rows := [row for row in rows if is_send_call(row)]):
                return
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
                    stored and (latency := row.latency_us) is not None and latency <= _LONG_US
                ):
                    if recent.setdefault(key, row) is not row:
                        self._add_second(key, row)
                # The message had a quick send before: both are needed to stitch its attempts.
                elif key in recent:
                    self._add_again(key, row)
                elif is_producers(row):
                    self.keep(key, [(self.source, row)])

        return add

    def _took_quick(self, rows: Sequence[ExchangeRecord], topic: str | None) -> bool:
        """Add quick first sends of their messages; return False and add nothing if any is not."""
        keys, recent, slowest = message_keys(rows), self._recent, slowest_of(rows)
        if slowest is None or slowest > _LONG_US or None in keys or None in request_times(rows):
            return False
        messages = list(zip(cast("list[str]", keys), repeat(topic)))
        if not (recent.keys().isdisjoint(messages) and self._telling.keys().isdisjoint(messages)):
            return False
        # One update for all rows: a duplicate among them shows in the number of new keys.
        before = len(recent)
        recent.update(zip(messages, rows, strict=True))
        if len(recent) == before + len(rows):
            return True
        for key in messages:  # a message was sent twice
            recent.pop(key, None)
        return False

    def _add_second(self, key: MessageIdentity, row: ExchangeRecord) -> None:
        """Add a quick send of a message that already has a quick send."""
        before = self._recent[key]
        both = self._placed(before)[1], row
        # A call and the send that a proxy derives from it are one, and stay among the recent ones.
        made = inner_hops([hop_of(send) for send in both])
        if len(made) != 1 or len({send.request_code is None for send in both}) != 2:
            self._add_again(key, row)
            return
        (inner,) = made
        self._of_proxies.setdefault(key, []).append(
            (self.source, row) if inner else self._placed(before)
        )
        if not inner:
            self._recent[key] = row

    def _add_again(self, key: MessageIdentity, row: ExchangeRecord) -> None:
        """Add another send of a known message."""
        rows = self._telling.get(key)
        if rows is not None:
            if len(rows) < MAX_SENDS:
                rows.append((self.source, row))
            return
        before = [self._placed(self._recent.pop(key)), *self._of_proxies.pop(key, ())]
        if is_producers(row):
            self.keep(key, [*before, (self.source, row)])

    def add_connection(self, row: ConversationRecord) -> None:
        """Add a closed TCP connection."""
        if row.end in tcp.NEVER_OPENED:
            if len(self._failures) < MAX_FAILURES:
                self._failures.append(row)
                insort(self._failed.setdefault(host_of(row.client_address), []), row.end_time)
            return
        if row.commands:
            self._connections[
                self.source, row.conversation, row.client_address, row.server_address
            ] = row
            if len(self._connections) > MAX_CONNECTIONS:
                self._connections.popitem(last=False)

    def _forget(self) -> None:
        """Drop the oldest recent sends, except those preceded by a failed connect."""
        recent = self._recent
        # A quarter at a time, so this happens rarely.
        oldest = list(islice(recent, len(recent) - MAX_RECENT * 3 // 4))
        if not self._failed:
            for key in oldest:
                del recent[key]
                self._of_proxies.pop(key, None)
            return
        for key in oldest:
            one = self._placed(recent.pop(key))
            self._of_proxies.pop(key, None)
            if self._after_failure(one[1]):
                self.keep(key, [one])

    def _keep_after_failures(self) -> None:
        """Keep recent sends preceded by failed connects, whichever was reported first."""
        # In a decoded log, all connections come after all exchanges; on Spark, in any order.
        if self._failed:
            for key, one in [(key, self._placed(send)) for key, send in self._recent.items()]:
                if self._after_failure(one[1]):
                    del self._recent[key]
                    self.keep(key, [one])

    def _placed(self, send: ExchangeRecord | Placed) -> Placed:
        """Return a recent send with its input; sends of the current input are stored without it."""
        return send if isinstance(send, tuple) else (self._source, send)

    def _after_failure(self, row: ExchangeRecord) -> bool:
        """Return whether a connect of the same host failed right before a send."""
        begin = row.request_time or 0
        failed = self._failed.get(host_of(row.client_address), ())
        place = bisect_right(failed, begin)
        soon = place > 0 and begin - failed[place - 1] <= _SOON
        return soon and row.request_code is not None and is_producers(row)

    def keep(self, key: MessageIdentity, rows: list[Placed]) -> None:
        """Keep the sends of a message to the end."""
        if len(self._telling) >= MAX_TELLING:
            self.left_out += 1
            return
        self._telling[key] = rows

    def messages(self, names: Mapping[str, str]) -> list[ObservedMessage]:
        """Return the relevant messages, sorted by the time of their first attempt.

        `names` are broker names by address.
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
        self.relays = proven_relays(hops.values())
        for key, rows in self._telling.items():
            inner = inner_hops(hops.get(key, ()), self.relays)
            # What a relay sends on is the same attempt, captured once more.
            own = [row for place, row in enumerate(rows) if place not in inner]
            own.sort(key=lambda item: (item[1].request_time or 0, item[1].opaque))
            rows_of[key] = [row for _, row in own]
            made = [self._send_of(source, row, names) for source, row in own]
            made = with_broker_outcomes(made, [row for _, row in rows])
            by_process.setdefault(process_of(key[0], made[0].host), []).append(made)
        observed = []
        for several in by_process.values():
            # The timeout is a setting of the producer: what one message shows holds for all.
            learnt = timeout_learnt(several)
            timeout = learnt if learnt is not None else DEFAULT_TIMEOUT_US
            limits = Limits(timeout, RETRIES, learnt is not None)
            for made in several:
                near = failures.get(made[0].host, [])
                attempts = attempts_of_message(made, near, limits)
                first = made[0]
                chain = chain_of(attempts, limits)
                own_rows = rows_of[first.unique_key, first.topic]
                observed.append(
                    ObservedMessage(
                        first.unique_key, attempts, chain, timeout, learnt is not None, own_rows
                    )
                )
        observed.sort(
            key=lambda item: (item.attempts[0].begin, item.key, item.last.send.topic or "")
        )
        return observed

    def _connect_failures(self, names: Mapping[str, str]) -> dict[str, list[ConnectFailure]]:
        failures: dict[str, list[ConnectFailure]] = {}
        for row in sorted(
            self._failures, key=lambda failure: (failure.start_time, failure.conversation)
        ):
            # Connects to NameServers and other programs are no attempts to send.
            if row.server_address not in names:
                continue
            failure = failure_of(row, names[row.server_address])
            failures.setdefault(failure.host, []).append(failure)
        return failures

    def _send_of(self, source: str, row: ExchangeRecord, names: Mapping[str, str]) -> Send:
        place = source, row.conversation
        connection = self._connections.get((*place, row.client_address, row.server_address))
        if connection is None:  # its start was not captured: the ends may be swapped
            connection = self._connections.get((*place, row.server_address, row.client_address))
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
            host=host_of(row.client_address),
            group=row.group,
            topic=row.topic,
            client_address=row.client_address,
            server_address=row.server_address,
            broker=names.get(row.server_address, row.server_address),
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
            lead=None if row.key_time is None else begin - row.key_time // 1000,
            connected=connected,
            closed=closed,
            ended_by=ended_by,
            whole=whole,
            call=row.request_code is None,
            reset=fact_in(row.facts, STREAM_RESET),
        )


def failure_of(row: ConversationRecord, broker: str) -> ConnectFailure:
    """Return the failed connect as an attempt at the broker of that name."""
    return ConnectFailure(
        host=host_of(row.client_address),
        server=row.server_address,
        broker=broker,
        begin=row.start_time // 1000,
        end=row.end_time // 1000,
        refused=row.end == tcp.REFUSED,
        source="",
        capture=row.capture,
        conversation=row.conversation,
    )


def is_send_call(row: ExchangeRecord) -> bool:
    """Return whether an exchange is a gRPC send."""
    return row.request_code is None and row.request_name in SEND_CALLS


def is_producers(row: ExchangeRecord) -> bool:
    """Return whether a send is from a producer, not from a consumer to its retry topic."""
    sent = row.request_code in SENDS or is_send_call(row)
    return sent and not is_group_topic(row.topic or "")


def process_of(key: str, host: str) -> str:
    """Return the identity of a client process: its address and the process digits of a UNIQ_KEY."""
    return f"{host} {key[-24:-12]}" if len(key) in KEY_LENGTHS else host

"""Consumers return the same messages repeatedly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from dissectors.grpc.names import OK
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.ext_fields import POPS
from dissectors.remoting.row_facts.names import CLIENT_TYPE, FIRST_KEY, RECONSUMED, fact_in
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.outcome import RECEIVE_CALLS, is_call
from dissectors.rows.record import ExchangeRecord, MessageIdentity, identity_of

from ...context import Context, Need
from ...keys import SUCCESS, has_room, named_group, state_in
from ...names import first_of, only
from ...problem import Case, Impact, ProblemSeverity, Subject, Tally, duration, shown
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold
from ...spells import spells
from .grpc_consumer_stuck import PUSH
from .returns import ReturnedMessage, Returns

SEND_BACK: Final = int(RequestCode.CONSUMER_SEND_MSG_BACK)
FEWEST: Final = 3
"""returns of one message that are reported: one or two may be a hiccup"""
MANY: Final = 16
"""returns of one group that are reported if repetitions of a message are unknown"""
MOST_NAMED: Final = 5
_RETURN_CALL: Final = "ChangeInvisibleDuration"
"""call of a gRPC push consumer that returns a message; others may extend its invisible time"""


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.returns = Returns()
        self._pushes = False
        """the group has a gRPC push consumer"""
        self._received: Counter[MessageIdentity] = Counter()
        """gRPC deliveries that begin with a message"""
        self._popped: dict[MessageIdentity, ReturnedMessage] = {}
        """messages that POP delivered repeatedly"""
        self._calls = False
        """its consumers use gRPC: their proxy pops"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_code in POPS:
            self._add_pop(row)
        elif not is_call(row.request_name) or row.request_name == _RETURN_CALL:
            self.returns.add(row)
        elif row.request_name in RECEIVE_CALLS:
            self._calls = True
            key = identity_of(row)
            if key is not None and has_room(self._received, key, Returns.MAX_MESSAGES):
                self._received[key] += 1
        elif fact_in(row.facts, CLIENT_TYPE) == PUSH:
            self._pushes = True

    def _add_pop(self, row: ExchangeRecord) -> None:
        """Add a pop whose first message was delivered before."""
        key, again = fact_in(row.facts, FIRST_KEY), number_in(row.facts, RECONSUMED)
        if key is None or again is None:
            return
        what = f"{row.request_name} -> delivery {again + 1:,} of {key}"
        message = state_in(
            self._popped,
            (key, row.topic),
            lambda: ReturnedMessage(key, topic=row.topic or ""),
            Returns.MAX_MESSAGES,
        )
        if message is not None:
            message.reported = max(message.reported, again)
            message.note(row, shown(row, what))

    def _is_returned(self, key: MessageIdentity, message: ReturnedMessage) -> bool:
        """Return whether a message was returned repeatedly, and not just kept for longer."""
        # What went to the DLQ is a problem of its own (`dead-letter`).
        if message.failures < FEWEST or message.dead:
            return False
        # A simple consumer may extend the invisible time of one delivery again and again, which is
        # the same call.
        return not message.callers or self._pushes or self._received[key] >= FEWEST

    def cases(self, context: Context) -> Iterable[Case]:
        again = [
            message
            for key, message in self.returns.messages.items()
            if self._is_returned(key, message)
        ]
        if not self._calls:
            again += [one for one in self._popped.values() if one.failures >= FEWEST]
        if not again:
            yield from self._unnamed(context)
        for spell in spells(again, ReturnedMessage.span, self.lasts):
            yield self._case(sorted(spell, key=_by_failures), context)

    def _case(self, again: list[ReturnedMessage], context: Context) -> Case:
        tally = Tally()
        clients: Counter[str] = Counter()
        topics: Counter[str] = Counter()
        for item in again:
            tally.add(item.evidence(), last=item.last_time)
            clients.update(item.clients)
            topics[item.topic] += 1
        names = {context.client(endpoint) for endpoint in clients}
        most = again[0].failures
        count = tally.count
        messages_text = f"message {again[0].key}" if count == 1 else f"{count:,} messages"
        often = f"{most} times" if count == 1 else f"{again[-1].failures} to {most} times each"
        if count > 1 and again[-1].failures == most:
            often = f"{most} times each"
        case = tally.case(
            f"{self.key} failed to consume {messages_text} {often}; the broker keeps redelivering"
            f" {'it' if count == 1 else 'them'}",
            Subject(
                topic=only(topics),
                group=self.key,
                client=only(names),
                message=again[0].key if count == 1 else None,
            ),
        )
        case.grpc = all(message.callers for message in again)
        case.first_time = min(message.first_time for message in again)
        popped = all(message.reported for message in again)
        case.details.append(f"{'received' if popped else 'returned'} by {first_of(names)}")
        case.details.append(f"messages: {', '.join(message.key for message in again[:MOST_NAMED])}")
        limits = {message.limit for message in again if message.limit is not None}
        if limits:
            case.details.append(f"a message goes to the DLQ after {max(limits)} further deliveries")
        return case

    def _unnamed(self, context: Context) -> Iterable[Case]:
        """Return a case of many returns by clients that do not identify the message."""
        every = [
            message
            for message in self.returns.messages.values()
            # Clients before 3.4.9 send no limit, and give each delivery another id.
            if message.limit is None and not message.callers
        ]
        if any(message.dead for message in every):
            return
        for returned in spells(every, ReturnedMessage.span, self.lasts):
            if len(returned) >= MANY:
                yield self._unnamed_case(returned, context)

    def _unnamed_case(self, returned: list[ReturnedMessage], context: Context) -> Case:
        tally = Tally()
        for item in returned:
            tally.add(item.evidence(), last=item.last_time)
        names = {context.client(endpoint) for message in returned for endpoint in message.clients}
        case = tally.case(
            f"{self.key} returned {tally.count:,} deliveries within"
            f" {duration(tally.last - tally.first)}: it fails to consume them, and the broker"
            " delivers each up to 16 times more",
            Subject(
                topic=only(message.topic for message in returned),
                group=self.key,
                client=only(names),
            ),
        )
        case.details.append(f"returned by {first_of(names)}")
        case.doubt("such an old client does not show which deliveries belong to one message")
        return case


def _by_failures(message: ReturnedMessage) -> tuple[int, int, str]:
    return -message.failures, message.first_time, message.key


_CALLS: Final = frozenset((_RETURN_CALL, "Heartbeat", "Telemetry", *RECEIVE_CALLS))


def _of_call(row: ExchangeRecord) -> str | None:
    return row.group if row.request_name in _CALLS else None


def _of_pop(row: ExchangeRecord) -> str | None:
    return row.group if number_in(row.facts, RECONSUMED) is not None else None


RULE = DiagnosisRule(
    id="reconsume-growth",
    severity=ProblemSeverity.WARNING,
    title="Consumers return the same messages repeatedly",
    searched=("consume retry", "reconsumeTimes", "RECONSUME_LATER", "message consumed repeatedly"),
    proof=(
        "Three or more successful CONSUMER_SEND_MSG_BACK (36) for one message, by its originMsgId,"
        " but not yet enough to send it to the DLQ. Or 16 returns of a group whose clients (before"
        " 3.4.9) give each delivery another id. With gRPC: ChangeInvisibleDuration for three"
        " deliveries of a message, by a push consumer or if the message was received that often."
        " With POP: a pop whose first message was delivered at least three times before."
    ),
    explanation=(
        "The consumer's code fails for these messages: it throws, returns RECONSUME_LATER, or takes"
        " longer than consumeTimeout. The consumer returns the message; the broker delivers it"
        " again from %RETRY% with a delay that grows from 10 s to 2 h. After maxReconsumeTimes, it"
        " goes to %DLQ%."
    ),
    advice=(
        "Check the consumer's log for the exception. If a message can never succeed, the code"
        " should set it aside and acknowledge it. maxReconsumeTimes defaults to -1 (16 for"
        " concurrent consumers). consumeTimeout (default 15 minutes) also returns messages of code"
        " that is merely slow."
    ),
    grpc_explanation=(
        "The consumer's listener fails for these messages: it throws or returns"
        " ConsumeResult.FAILURE. The client makes the message invisible until the next attempt: by"
        " default for 1 s at first, and later for up to 2 h. Then the proxy delivers it again."
        " After retryMaxTimes retries, it goes to %DLQ%."
    ),
    grpc_advice=(
        "Check the consumer's log for the exception. If a message can never succeed, the listener"
        " should set it aside and return ConsumeResult.SUCCESS. The group's settings on the broker"
        " limit the retries and set their delays: retryMaxTimes (default 16) and groupRetryPolicy"
        " (mqadmin updateSubGroup)."
    ),
    grpc=COVERED,
    impact=Impact.REDELIVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=named_group, requests={SEND_BACK}, responses={SUCCESS}),
        Exchanges(key=_of_pop, requests=POPS, responses={SUCCESS}, with_facts=True),
        Exchanges(key=_of_call, responses={OK}),
    ),
    references=(
        "apache/rocketmq#2724",
        "apache/rocketmq#1472",
        "apache/rocketmq#2357",
        "apache/rocketmq#3731",
        "apache/rocketmq#1600",
        "apache/rocketmq-client-cpp#282",
        "apache/rocketmq-client-go#624",
        "apache/rocketmq-client-go#625",
    ),
    limits=(
        "Not covered: orderly and FIFO consumers, which retry in place. With POP, only the first"
        " message of each response counts."
    ),
    needs={Need.GROUPS},
)

"""Messages that consumers returned too often become dead letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.grpc.names import OK
from dissectors.quantities import counted
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.names import RECONSUME_LIMIT, RECONSUMED
from dissectors.remoting.row_facts.values import number_in
from dissectors.remoting.topic_names import DLQ_PREFIX, RETRY_PREFIX, group_of
from dissectors.rows.outcome import is_call
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import SUCCESS
from ...names import Names, counted_names, only, times
from ...problem import Case, Impact, ProblemSeverity, Subject, Tally, end_of, shown
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold
from ...spells import MAX_INTERVALS, Parts, spells
from .returns import ReturnedMessage, Returns, is_spent

SEND_BACK: Final = int(RequestCode.CONSUMER_SEND_MSG_BACK)
MOST_NAMED: Final = 5


class _Sent:
    """Client sends that become dead letters."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.keys: set[str] = set()
        self.clients = Names()

    def join(self, other: _Sent) -> None:
        """Merge the sends of another period."""
        self.tally.merge(other.tally)
        self.keys |= other.keys
        self.clients.update(other.clients)


class _Spell(NamedTuple):
    """Messages that became dead letters, or were sent there, in one spell."""

    first: int
    last: int
    dead: ReturnedMessage | None
    sent: _Sent | None

    def span(self) -> tuple[int, int]:
        return self.first, self.last


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.returns = Returns()
        self.sent_keys: set[str] = set()
        self._sent: Parts[_Sent] = Parts(MAX_INTERVALS, lambda _: _Sent(), _Sent.join)
        self._at_limit: Parts[_Sent] = Parts(MAX_INTERVALS, lambda _: _Sent(), _Sent.join)
        """sends to %RETRY% that are dead letters only if the consumer is orderly"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_code == SEND_BACK or is_call(row.request_name):
            self.returns.add(row)
            return
        # A relay sends the same message on: it counts once.
        key = row.unique_key or f"{row.conversation} {row.opaque}"
        if key not in self.sent_keys:
            parts = self._sent if _is_dead(row, orderly=False) else self._at_limit
            part = parts.at(end_of(row), self.lasts)
            if len(self.sent_keys) < Returns.MAX_MESSAGES:
                self.sent_keys.add(key)
                part.keys.add(key)
            at_limit = "" if DLQ_PREFIX in (row.topic or "") else " at the redelivery limit"
            part.tally.add(shown(row, f"sent to {row.topic}{at_limit}: stored"))
            part.clients.note(row.client_address)

    def cases(self, context: Context) -> Iterable[Case]:
        signs = [
            _Spell(message.last_time, message.last_time, message, None)
            for message in self.returns.dead()
        ]
        orderly = self.key in context.orderly
        for *_, one in (*self._sent.items(), *(self._at_limit.items() if orderly else ())):
            signs.append(_Spell(one.tally.first, one.tally.last, None, one))
        for spell in spells(signs, _Spell.span, self.lasts):
            sent = _Sent()
            for part in spell:
                if part.sent is not None:
                    sent.join(part.sent)
            yield self._case(
                [message.dead for message in spell if message.dead is not None], sent, context
            )

    def _case(self, dead: list[ReturnedMessage], sent: _Sent, context: Context) -> Case:
        tally, clients = sent.tally, sent.clients
        sent_count = tally.count
        topics: Counter[str] = Counter()
        failures: set[int] = set()
        for item in dead:
            tally.add(item.evidence(), last=item.last_time)
            # With gRPC, the other senders are the proxy.
            clients.update(item.callers or item.clients)
            topics[item.topic] += 1
            failures.add(item.failures)
        count = tally.count
        names = sorted({context.client(endpoint) for endpoint in clients})
        clients_text = " and ".join(names[:2]) + (
            f" and {len(names) - 2} more" if len(names) > 2 else ""
        )
        failed = ""
        if failures and not sent_count:
            up_to = "up to " if len(failures) > 1 else ""
            failed = f" failed {up_to}{times(max(failures))} and"
        case = tally.case(
            f"{counted(count, 'message')} of {self.key}{failed} went to {DLQ_PREFIX}{self.key};"
            f" {clients_text} returned {'it' if count == 1 else 'them'}",
            Subject(topic=only(topics), group=self.key, client=only(names)),
        )
        # Only a FIFO consumer gives up a message with a call of its own.
        case.grpc = not sent_count and all(item.callers for item in dead)
        if topics:
            case.details.append(f"topics: {counted_names(topics)}")
        named = [message.key for message in dead[:MOST_NAMED]] or sorted(sent.keys)[:MOST_NAMED]
        case.details.append(f"messages: {', '.join(named)}")
        case.details.append(
            f"no consumer reads them unless it subscribes to {DLQ_PREFIX}{self.key}"
        )
        return case


def _returned(row: ExchangeRecord) -> str | None:
    return row.group


def _forwarded(row: ExchangeRecord) -> str | None:
    return row.group if row.request_name == "ForwardMessageToDeadLetterQueue" else None


def _sent(row: ExchangeRecord) -> str | None:
    """Return the group of a send to its dead letter topic, or None."""
    topic = row.topic
    return group_of(topic) if topic is not None and DLQ_PREFIX in topic else None


def _sent_too_often(row: ExchangeRecord) -> str | None:
    """Return the group of a send to its retry topic that may become a dead letter, or None."""
    topic = row.topic
    if topic is None or RETRY_PREFIX not in topic or DLQ_PREFIX in topic:
        return None
    return group_of(topic) if _is_dead(row, orderly=True) else None


def _is_dead(row: ExchangeRecord, *, orderly: bool) -> bool:
    """Return whether a send becomes a dead letter, for a group that is orderly or not."""
    if DLQ_PREFIX in (row.topic or ""):
        return True
    made, most = number_in(row.facts, RECONSUMED), number_in(row.facts, RECONSUME_LIMIT)
    # A capture may contain any number, also a negative one.
    if made is None or most is None or made < 0 or most < 0:
        return False
    return is_spent(made, most, orderly)


RULE = DiagnosisRule(
    id="dead-letter",
    severity=ProblemSeverity.ERROR,
    title="Messages failed too often and went to the dead letter queue (DLQ)",
    searched=(
        "DLQ",
        DLQ_PREFIX,
        "dead letter queue",
        "maxReconsumeTimes",
        "Failed to consume fifo message finally, run out of attempt times",
    ),
    proof=(
        "A consumer returns a message (36) more often than the request's maxReconsumeTimes allows,"
        " or with a negative delay level, and the broker responds with success. Or a client itself"
        " sends to %DLQ%, or to %RETRY% with a reconsumeTimes above maxReconsumeTimes (an orderly"
        " consumer: at or above it). Or an orderly consumer calls ForwardMessageToDeadLetterQueue"
        " of a proxy, with its number of failures."
    ),
    explanation=(
        "The consumer's code failed: it threw an exception, asked for a retry (RECONSUME_LATER;"
        " orderly: SUSPEND_CURRENT_QUEUE_A_MOMENT), or, if concurrent, took longer than"
        " consumeTimeout. A concurrent consumer returned the message each time, and the broker"
        " delivered it again later. An orderly consumer retried it itself, and returned it only at"
        " its limit. After the last allowed attempt, the broker stored the message in %DLQ% with"
        " the name of the group. No consumer reads that topic by default."
    ),
    advice=(
        "Check the log of the named consumer at the times of the evidence: what made these messages"
        " fail? After the fix, read the dead letters with mqadmin or the dashboard and send them"
        " again. maxReconsumeTimes of the consumer defaults to -1: 16 for concurrent consumers, no"
        " limit for orderly ones. consumeTimeout defaults to 15 minutes."
    ),
    grpc_explanation=(
        "The listener of a FIFO consumer failed: it threw an exception or returned"
        " ConsumeResult.FAILURE. The client retried the message itself, and held back the messages"
        " after it. After the last allowed attempt, it asked the proxy to move the message to %DLQ%"
        " with the name of the group. No consumer reads that topic by default."
    ),
    grpc_advice=(
        "Check the log of the named consumer at the times of the evidence: what made these messages"
        " fail? After the fix, read the dead letters with mqadmin or the dashboard and send them"
        " again. The group's retryMaxTimes on the broker (default 16; mqadmin updateSubGroup -r)"
        " limits the retries."
    ),
    grpc=COVERED,
    impact=Impact.DEAD,
    fold=_Fold,
    exchanges=(
        Exchanges(key=_returned, requests={SEND_BACK}, responses={SUCCESS}),
        Exchanges(key=_forwarded, responses={OK}, with_facts=True),
        Exchanges(key=_sent, requests=SENDS, responses={SUCCESS}, of_flow=True),
        Exchanges(key=_sent_too_often, requests=SENDS, responses={SUCCESS}, with_facts=True),
    ),
    references=("apache/rocketmq#2357", "apache/rocketmq-externals#255"),
    limits=(
        "The broker does not report dead letters: they follow from the number of returns in the"
        " capture. Returns before the capture are unknown, so there may be more. POP consumers"
        " without gRPC acknowledge a message that failed too often: it is dropped."
    ),
    needs={Need.GROUPS},
    consequence_of={"reconsume-growth"},
)

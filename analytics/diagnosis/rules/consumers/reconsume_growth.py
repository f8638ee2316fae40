"""Consumers return the same messages again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import named_group
from ...need import Need
from ...problem import Case, Confidence, ProblemSeverity, Subject, Tally, seconds
from ...refusals import only
from ...rule import DiagnosisRule, Exchanges, Fold
from ...spells import spells
from .returns import ReturnedMessage, Returns

SEND_BACK: Final = int(RequestCode.CONSUMER_SEND_MSG_BACK)
_SUCCESS: Final = int(ResponseCode.SUCCESS)
FEWEST: Final = 3
"""returns of one message from which on it is said: one or two may be a hiccup"""
MANY: Final = 16
"""returns of one group that are not a hiccup, where nobody can tell whether a message came twice"""
MOST_NAMED: Final = 5


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.returns = Returns()

    def add_exchange(self, row: ExchangeRecord) -> None:
        self.returns.add(row)

    def cases(self, context: Context) -> Iterable[Case]:
        again = [
            one for one in self.returns.messages.values() if one.failures >= FEWEST and not one.dead
        ]
        if not again:
            yield from self._unnamed(context)
        for spell in spells(again, ReturnedMessage.span, self.lasts):
            yield self._case(sorted(spell, key=_by_failures), context)

    def _case(self, again: list[ReturnedMessage], context: Context) -> Case:
        tally = Tally()
        clients: Counter[str] = Counter()
        topics: Counter[str] = Counter()
        for one in again:
            tally.add(one.evidence(), last=one.last_time)
            clients.update(one.clients)
            topics[one.topic] += 1
        who = sorted({context.client(endpoint) for endpoint in clients})
        most = again[0].failures
        count = tally.count
        what = f"message {again[0].key}" if count == 1 else f"{count:,} messages"
        often = f"{most} times" if count == 1 else f"{again[-1].failures} to {most} times each"
        if count > 1 and again[-1].failures == most:
            often = f"{most} times each"
        case = tally.case(
            f"{self.key} failed to consume {what} {often}; the broker delivers"
            f" {'it' if count == 1 else 'them'} again and again",
            Subject(
                topic=only(topics),
                group=self.key,
                client=who[0] if len(who) == 1 else None,
                message=again[0].key if count == 1 else None,
            ),
        )
        case.first_time = min(one.first_time for one in again)
        case.details.append(f"returned by {', '.join(who[:MOST_NAMED])}")
        case.details.append(f"messages: {', '.join(one.key for one in again[:MOST_NAMED])}")
        limits = {one.limit for one in again if one.limit is not None}
        if limits:
            case.details.append(
                f"a message goes to the dead letters after {max(limits)} further deliveries"
            )
        return case

    def _unnamed(self, context: Context) -> Iterable[Case]:
        """Return a case of many returns of clients that do not say which message it is."""
        every = [one for one in self.returns.messages.values() if one.limit is None]
        if any(one.dead for one in every):
            return
        for returned in spells(every, ReturnedMessage.span, self.lasts):
            if len(returned) >= MANY:
                yield self._unnamed_case(returned, context)

    def _unnamed_case(self, returned: list[ReturnedMessage], context: Context) -> Case:
        tally = Tally()
        for one in returned:
            tally.add(one.evidence(), last=one.last_time)
        who = {context.client(endpoint) for one in returned for endpoint in one.clients}
        case = tally.case(
            f"{self.key} returned {tally.count:,} deliveries within"
            f" {seconds(tally.last - tally.first)}: it fails to consume them, and the broker"
            " delivers each up to 16 times more",
            Subject(topic=only(one.topic for one in returned), group=self.key, client=only(who)),
        )
        case.details.append(f"returned by {', '.join(sorted(who)[:MOST_NAMED])}")
        case.confidence = Confidence.LIKELY
        case.reason = "such an old client does not say which deliveries are of one message"
        return case


def _by_failures(one: ReturnedMessage) -> tuple[int, int, str]:
    return -one.failures, one.first_time, one.key


RULE = DiagnosisRule(
    id="reconsume-growth",
    severity=ProblemSeverity.WARNING,
    title="Consumers return the same messages again and again",
    searched=("consume retry", "reconsumeTimes", "RECONSUME_LATER", "message consumed repeatedly"),
    proof=(
        "CONSUMER_SEND_MSG_BACK (36) for one message, by its originMsgId, three times or more, each"
        " answered with success, and not yet as often as sends it to the dead letters. Or 16"
        " returns of a group whose clients (before 3.4.9) give each delivery another id."
    ),
    explanation=(
        "The consumer's code fails for these messages: it throws, returns RECONSUME_LATER or takes"
        " longer than consumeTimeout. The consumer returns the message; the broker delivers it"
        " again from %RETRY% with a delay that grows from 10 s to 2 h. After maxReconsumeTimes it"
        " goes to %DLQ%."
    ),
    advice=(
        "Check the consumer's log for the exception. A message that can never succeed should be put"
        " aside by the code and acknowledged. maxReconsumeTimes has the default -1 (16 for"
        " concurrent consumers). consumeTimeout (default 15 minutes) returns messages of code that"
        " is merely slow."
    ),
    grpc="Consumers of gRPC return nothing: see `pop-ack-late` and `dead-letter`.",
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=named_group, requests=frozenset((SEND_BACK,)), responses=frozenset((_SUCCESS,))
        ),
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
        "Orderly consumers try again in place and return nothing. POP consumers let the message"
        " become visible again. Neither is seen here."
    ),
    needs=frozenset((Need.GROUPS,)),
)

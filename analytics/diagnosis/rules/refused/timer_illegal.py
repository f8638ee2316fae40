"""A broker refuses a timed message."""

from __future__ import annotations

import re
from typing import Final

from dissectors.foreign import natural_of
from dissectors.grpc.names import CODES
from dissectors.quantities import counted
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import says, whole, with_remark
from ...problem import Case, ProblemSeverity
from ...refusals import CALL_REFUSALS, Refusals, whole_of_sends
from ...rule import COVERED, DiagnosisRule, Exchanges

TOO_LONG: Final = "timer message illegal"
OFF: Final = "accurate timer message is not enabled"
CROWDED: Final = "timer message is under flow control"
"""SendMessageProcessor.handlePutMessageResult"""
_MOST: Final = re.compile(r"max (?:delay|is) (\d{1,15})")
"""maximum of a broker in ms, and of a proxy (SendMessageActivity.fillDelayMessageProperty)"""
_CALL: Final = CODES["ILLEGAL_DELIVERY_TIME"]
_PROXY_ADVICE: Final = (
    "Choose an earlier delivery time, or raise maxDelayTimeMills (default 1 day) in rmq-proxy.json"
    " and timerMaxDelaySec (default 3 days) in broker.conf."
)
_LIMIT: Final = "limit"
_KIND: Final = "kind"


class _Fold(Refusals):
    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        remark = row.remark or ""
        kinds = (one for one in (TOO_LONG, OFF, CROWDED) if one in remark)
        self.note_name(_KIND, next(kinds, TOO_LONG))
        if (match := _MOST.search(remark)) is not None:
            self.note_figure(_LIMIT, natural_of(match[1]))

    def title(self, context: Context) -> str:
        broker = context.server(self.key)
        kinds = self.named(_KIND)
        sends = counted(self.tally.count, "send of a timed message", "sends of timed messages")
        if len(kinds) == 1:
            return f"{broker} refused {sends}: {self._why(next(iter(kinds)))}"
        why = ", ".join(f"{kinds[kind]:,} because {self._why(kind)}" for kind in sorted(kinds))
        return f"{broker} refused {sends}: {why}"

    def judge(self, case: Case, context: Context) -> None:
        if context.is_proxy(self.key):
            case.advice = _PROXY_ADVICE

    def _why(self, kind: str) -> str:
        if kind == OFF:
            return "its timer is off"
        if kind == CROWDED:
            return "too many messages are due at that time"
        _, most = self.figures.get(_LIMIT, (0, 0))
        if not most:
            return "the delay is too long"
        days = most / 86_400_000
        return f"the delay exceeds {days:g} {'day' if days == 1 else 'days'}"


def _key_of_call(row: ExchangeRecord) -> str | None:
    marked = says(row, TOO_LONG, OFF, CROWDED)
    return whole_of_sends(row) if marked or row.response_code == _CALL else None


RULE = DiagnosisRule(
    id="timer-illegal",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses a timed message",
    searched=(
        "timer message illegal, the delay time should not be bigger than the max delay",
        "accurate timer message is not enabled",
        "timer message is under flow control",
        "the max delay time of message is too large",
    ),
    proof=(
        "Response code 13 with `timer message illegal`, or code 1 with `accurate timer message is"
        " not enabled` or `timer message is under flow control`, to a send. With gRPC: SendMessage"
        " gets ILLEGAL_DELIVERY_TIME (40012) or the broker's remark."
    ),
    explanation=(
        "A 5.x broker can deliver a message at any given time (TIMER_DELIVER_MS, TIMER_DELAY_SEC,"
        " TIMER_DELAY_MS). It refuses times beyond the range of its timer wheel, and all delivery"
        " times if the timer is off. A proxy has its own limit, which is lower by default (1 day)."
    ),
    advice=(
        "Choose an earlier time, or raise timerMaxDelaySec (default 259,200 s, 3 days) on all"
        " brokers. timerWheelEnable (default true) turns the timer on; the 18 delay levels work"
        " without it. timerCongestNumEachSlot limits how many messages are due at once."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=with_remark(TOO_LONG, OFF, CROWDED, key=whole),
            requests=SENDS,
            responses={ResponseCode.MESSAGE_ILLEGAL, ResponseCode.SYSTEM_ERROR},
        ),
        Exchanges(key=_key_of_call, responses=CALL_REFUSALS),
    ),
    references=(
        "apache/rocketmq#5376",
        "apache/rocketmq#5646",
        "apache/rocketmq#8022",
        "apache/rocketmq-client-go#1180",
    ),
    needs={Need.SENDS},
    lasts=None,
)

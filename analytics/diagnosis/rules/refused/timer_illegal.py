"""A broker refuses a timed message."""

from __future__ import annotations

import re
from typing import Final

from dissectors.foreign import natural_of
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import whole, with_remark
from ...need import Need
from ...problem import ProblemSeverity
from ...refusals import Refusals, counted, times
from ...rule import REFUSED_CALL, DiagnosisRule, Exchanges

TOO_LONG: Final = "timer message illegal"
OFF: Final = "accurate timer message is not enabled"
CROWDED: Final = "timer message is under flow control"
"""SendMessageProcessor.handlePutMessageResult"""
_MOST: Final = re.compile(r"max delay (\d{1,15})\s*ms")
_LIMIT: Final = "limit"
_KIND: Final = "kind"


class _Fold(Refusals):
    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        remark = row.remark or ""
        self.note_name(_KIND, next(one for one in (TOO_LONG, OFF, CROWDED) if one in remark))
        if (found := _MOST.search(remark)) is not None:
            self.note_figure(_LIMIT, natural_of(found[1]))

    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        kinds = self.named(_KIND)
        sends = counted(self.tally.count, "send of a timed message", "sends of timed messages")
        if len(kinds) == 1:
            return f"{broker} refused {sends}: {self._why(next(iter(kinds)))}"
        why = "; ".join(f"{times(kinds[kind])} {self._why(kind)}" for kind in sorted(kinds))
        return f"{broker} refused {sends}: {why}"

    def _why(self, kind: str) -> str:
        if kind == OFF:
            return "its timer is off"
        if kind == CROWDED:
            return "too many messages are due at that time"
        _, most = self.figures.get(_LIMIT, (0, 0))
        allowed = f", {most / 86_400_000:g} days are allowed" if most else ""
        return f"the delay is too long{allowed}"


RULE = DiagnosisRule(
    id="timer-illegal",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses a timed message",
    searched=(
        "timer message illegal, the delay time should not be bigger than the max delay",
        "accurate timer message is not enabled",
        "timer message is under flow control",
    ),
    proof=(
        "A send is answered with code 13 and `timer message illegal`, or with code 1 and `accurate"
        " timer message is not enabled` or `timer message is under flow control`."
    ),
    explanation=(
        "A 5.x broker delivers a message at a time of its own (TIMER_DELIVER_MS, TIMER_DELAY_SEC,"
        " TIMER_DELAY_MS). It refuses one that is due later than its wheel of timers reaches, and"
        " all of them when the timer is off."
    ),
    advice=(
        "Choose an earlier time, or raise timerMaxDelaySec (default 259,200 s, 3 days) on all"
        " brokers. timerWheelEnable (default true) turns the timer on; the 18 delay levels work"
        " without it. timerCongestNumEachSlot limits how many messages are due at once."
    ),
    grpc=REFUSED_CALL,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=with_remark(TOO_LONG, OFF, CROWDED, key=whole),
            requests=SENDS,
            responses=frozenset(
                (int(ResponseCode.MESSAGE_ILLEGAL), int(ResponseCode.SYSTEM_ERROR))
            ),
        ),
    ),
    references=(
        "apache/rocketmq#5376",
        "apache/rocketmq#5646",
        "apache/rocketmq#8022",
        "apache/rocketmq-client-go#1180",
    ),
    needs=frozenset((Need.SENDS,)),
    lasts=None,
)

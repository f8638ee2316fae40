"""Messages are sent oneway: it is unknown whether they were stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.quantities import counted
from dissectors.remoting.code_sets import SENDS
from dissectors.rows.record import ONEWAY, ExchangeRecord

from ...context import Context, Need
from ...keys import is_traced
from ...names import counted_names, only
from ...problem import Case, Evidence, Impact, ProblemSeverity, Subject, Tally, asked
from ...rule import DiagnosisRule, Exchanges, Fold

MAX_MESSAGES: Final = 20_000


class _Send(NamedTuple):
    evidence: Evidence
    client_address: str
    server_address: str
    group: str


class _Fold(Fold):
    """Oneway sends of one topic."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.messages: dict[str, _Send] = {}
        self.further = Tally()
        """messages beyond MAX_MESSAGES"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        # A relay forwards the message: it counts once, and the first hop is its client's.
        key = row.unique_key or f"{row.capture} {row.conversation} {row.opaque}"
        before = self.messages.get(key)
        evidence = asked(row, f"{row.request_name} oneway to {row.server_address}")
        if before is None and len(self.messages) >= MAX_MESSAGES:
            self.further.add(evidence)
        elif before is None or evidence < before.evidence:
            self.messages[key] = _Send(
                evidence, row.client_address, row.server_address, row.group or ""
            )

    def cases(self, context: Context) -> Iterable[Case]:
        tally = Tally.of(send.evidence for send in self.messages.values())
        tally.merge(self.further)
        count = tally.count
        if not count:
            return
        sends = self.messages.values()
        groups = Counter(send.group for send in sends)
        group = only(groups)
        by = group or f"{len(groups)} groups"
        case = tally.case(
            f"{counted(count, 'message was', 'messages were')} sent oneway to {self.key} by {by}:"
            f" it is unknown whether the broker stored {'it' if count == 1 else 'them'}",
            Subject(
                broker=only(context.broker(send.server_address) for send in sends),
                topic=self.key,
                group=group,
                client=only(context.client(send.client_address) for send in sends),
            ),
        )
        if group is None:
            case.details.append(f"groups: {counted_names(groups)}")
        yield case


def _topic(row: ExchangeRecord) -> str | None:
    # A lost trace loses no message of the application.
    return None if is_traced(row) else row.topic


RULE = DiagnosisRule(
    id="oneway-unconfirmed",
    severity=ProblemSeverity.INFO,
    title="Messages are sent oneway, without a confirmation",
    searched=("sendOneway", "oneway message lost"),
    proof="Sends with bit 1 of the flag set: the broker sends no response.",
    explanation=(
        "sendOneway writes the request and does not wait. The broker sends no response, even if it"
        " refuses the message, is busy, or fails to store it. There is no retry. Oneway is meant"
        " for logs and similar data, where losing single messages is acceptable."
    ),
    advice=(
        "Use send() or send(…, SendCallback) for messages that must not be lost. Consumers or"
        " mqadmin queryMsgByUniqueKey show whether a oneway message arrived."
    ),
    grpc="Not covered: gRPC has no oneway sends.",
    impact=Impact.UNCONFIRMED,
    fold=_Fold,
    exchanges=(Exchanges(key=_topic, requests=SENDS, statuses={ONEWAY}),),
    references=("alibaba/rocketmq#392",),
    limits="The capture does not show whether messages were lost.",
    needs={Need.SENDS},
    lasts=None,
)

"""A topic that its first send created exists on some brokers only."""

from __future__ import annotations

from collections.abc import Iterable

from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.topic_names import DEFAULT_TOPIC
from dissectors.rows.record import ExchangeRecord

from ...answered_routes import WRITE
from ...context import Context, Need
from ...keys import ROUTE, user_topic
from ...names import listed
from ...problem import Case, ProblemSeverity, Subject, Tally, clock, end_of, shown
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges, Fold
from ...spells import joined


class _Fold(Fold):
    """Routes of one topic."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._missing = Tally()
        self._routed: ExchangeRecord | None = None
        """the latest response with its brokers"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.response_code == ResponseCode.TOPIC_NOT_EXIST:
            self._missing.add(shown(row))
        elif self._routed is None or _place(row) > _place(self._routed):
            self._routed = row

    def cases(self, context: Context) -> Iterable[Case]:
        routed = self._routed
        # Missing first, routed later: the topic was created in the capture.
        if not self._missing.count or routed is None or end_of(routed) < self._missing.first:
            return
        possible = {
            broker.name
            for broker in context.brokers_of(DEFAULT_TOPIC)
            if broker.perm is not None and broker.perm & WRITE
        }
        brokers = {broker.name for broker in context.brokers_of(self.key)}
        without = possible - brokers
        # On none of the brokers of the template: the topic did not come from it.
        if not without or not brokers & possible:
            return
        tally = joined((self._missing,))
        tally.add(shown(routed, f"the route of {self.key} names {listed(brokers)}"))
        case = tally.case(
            f"topic {self.key} was created on {listed(brokers)} only: {listed(without)} get"
            f"{'s' if len(without) == 1 else ''} none of its messages",
            Subject(topic=self.key),
        )
        case.count = 1
        case.details = [
            f"{DEFAULT_TOPIC} offers {listed(possible)}; at {clock(end_of(routed))} UTC the route"
            f" of {self.key} still names {listed(brokers)}"
        ]
        yield case


def _place(row: ExchangeRecord) -> tuple[int, str, int]:
    return end_of(row), row.capture, row.response_packet or 0


RULE = DiagnosisRule(
    id="topic-on-some-brokers",
    severity=ProblemSeverity.WARNING,
    title="An automatically created topic exists on only some of the brokers",
    searched=(
        "autoCreateTopicEnable",
        "auto-created topic on one broker only",
        "messages go to one broker only",
        "topic route only one broker",
    ),
    proof=(
        "A topic has no route (17), TBW102 has one, and the later route of the topic names fewer"
        " brokers than that of TBW102."
    ),
    explanation=(
        "With autoCreateTopicEnable, a broker creates an unknown topic when it receives the first"
        " message. The producer finds the brokers through TBW102. As soon as one of them has the"
        " topic, the route names only that broker, and all later messages go there. The other"
        " brokers share none of the load, and the topic is unavailable when that broker is."
    ),
    advice=(
        "Create the topic on all brokers: mqadmin updateTopic -c CLUSTER -t TOPIC. Set"
        " autoCreateTopicEnable=false (default true) in production, and create topics before their"
        " first use."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=user_topic,
            requests={ROUTE},
            responses={ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST},
        ),
    ),
    references=("apache/rocketmq#2744", "apache/rocketmq#566", "apache/rocketmq#6657"),
    limits="A capture that starts after the first send shows the route, but not the intended one.",
    needs={Need.ROUTES},
    lasts=None,
)

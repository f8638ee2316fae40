"""A gRPC consumer group receives FIFO messages, but its settings are not FIFO."""

from __future__ import annotations

from collections.abc import Iterable

from dissectors.grpc.names import OK, TELEMETRY
from dissectors.remoting.row_facts.names import CLIENT_TYPE, FIFO, MESSAGE_GROUP, fact_in, facts_in
from dissectors.rows.outcome import RECEIVE_CALLS
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...names import Names, called, first_of, only
from ...problem import Case, ProblemSeverity, Subject, Tally, shown
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold


class _Fold(Fold):
    """One group."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.settings = Tally()
        """settings that are not FIFO"""
        self.received = Tally()
        """responses that begin with a FIFO message"""
        self.topics = Names()
        self.clients = Names()
        self.fifo = False
        """some settings are FIFO"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_name == TELEMETRY:
            # The last one is that of the response.
            if facts_in(row.facts, FIFO)[-1] == "true":
                self.fifo = True
            else:
                self.settings.add(shown(row, "Telemetry: the settings from the proxy are not FIFO"))
            return
        group = fact_in(row.facts, MESSAGE_GROUP)
        what = f"{row.request_name} -> {row.unique_key} of message group {group}"
        self.received.add(shown(row, what))
        self.topics.note(row.topic)
        self.clients.note(row.client_address)

    def cases(self, context: Context) -> Iterable[Case]:
        # A group that was changed during the capture is what it should be now.
        if not self.settings.count or not self.received.count or self.fifo:
            return
        self.settings.merge(self.received)
        clients = {context.client(address) for address in self.clients}
        case = self.settings.case(
            f"group {self.key} receives FIFO messages of {called('topic', self.topics)} in any"
            " order: its settings on the broker are not FIFO",
            Subject(topic=only(self.topics), group=self.key, client=only(clients)),
        )
        case.count = self.received.count
        case.details.append(f"received by {first_of(clients)}")
        yield case


def _key(row: ExchangeRecord) -> str | None:
    if row.request_name in RECEIVE_CALLS:
        return row.group if fact_in(row.facts, MESSAGE_GROUP) is not None else None
    # With one client type, only the client sent settings, in which `fifo` means nothing.
    answered = row.request_name == TELEMETRY and len(facts_in(row.facts, CLIENT_TYPE)) > 1
    return row.group if answered and fact_in(row.facts, FIFO) is not None else None


RULE = DiagnosisRule(
    id="group-not-fifo",
    severity=ProblemSeverity.WARNING,
    title="A consumer group that is not FIFO receives FIFO messages",
    searched=(
        "FIFO messages consumed out of order",
        "message group order",
        "consumeMessageOrderly",
        "Create fifo consume service",
        "Create standard consume service",
    ),
    proof=(
        "The settings that a proxy sends to a consumer (Telemetry) have fifo false, and"
        " ReceiveMessage returns messages with a message group to its consumer group."
    ),
    explanation=(
        "Messages of one message group are stored in order. A proxy delivers them in order only to"
        " a group that is FIFO on the broker (consumeMessageOrderly, default false). To any other"
        " group, it delivers each message by itself: several members and threads consume messages"
        " of one message group at once, and one that failed comes back after later ones."
    ),
    advice=(
        "Make the group FIFO if the order matters: mqadmin updateSubGroup -c CLUSTER -g GROUP -o"
        " true. Then restart its consumers: they read the setting when they start. (A group that"
        " needs no order needs no action.)"
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(Exchanges(key=_key, responses={OK}, with_facts=True),),
    limits=(
        "Settings are sent when a consumer starts, and later every 5 minutes. Without any in the"
        " capture, the rule cannot decide. Orderly consumers of remoting order messages by their"
        " own locks."
    ),
    lasts=None,
)

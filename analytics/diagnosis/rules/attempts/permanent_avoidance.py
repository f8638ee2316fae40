"""A producer never again uses a broker that it had isolated."""

from __future__ import annotations

from ...context import Need
from ...problem import ProblemSeverity
from ...rule import ISOLATES_PROXIES, DiagnosisRule, Fold
from .isolated_broker_still_used import AVOIDED

RULE = DiagnosisRule(
    id=AVOIDED,
    severity=ProblemSeverity.WARNING,
    title="A producer never again uses a broker that failed once",
    searched=("broker never selected again", "broker unreachable forever", "5.1.4 isolation"),
    proof=(
        "For more than ten times the length of its isolation, a broker in the route gets no send of"
        " the producer, while at least 20 go elsewhere."
    ),
    explanation=(
        "Clients since 5.1.4 remember that a broker is unreachable, and 5.1.4 itself then treats it"
        " as unavailable. Only a successful send or the detector clears that state. Without the"
        " detector, nothing is sent there, so nothing clears it."
    ),
    advice=(
        "Update clients of 5.1.4 to 5.2.0 or later, or start them with"
        " -Dcom.rocketmq.startDetectorEnable=true (the setter has no effect in 5.1.4). Restarting"
        " the producer fixes it immediately."
    ),
    grpc=ISOLATES_PROXIES,
    fold=Fold,
    found_by="isolated-broker-still-used",
    references=("apache/rocketmq#7812",),
    limits="Needs numpy (rmqtool[report]).",
    needs={Need.SENDS, Need.ROUTES},
    consequence_of={"broker-hung", "packets-unacknowledged", "broker-gone", "broker-isolated"},
    lasts=None,
)

"""A producer avoided a broker for a time, as its fault strategy demands."""

from __future__ import annotations

from ...context import Need
from ...problem import ProblemSeverity
from ...rule import ISOLATES_PROXIES, DiagnosisRule, Fold
from .attempt_words import NO_RESPONSE
from .isolated_broker_still_used import ISOLATED

RULE = DiagnosisRule(
    id=ISOLATED,
    severity=ProblemSeverity.INFO,
    title="A producer avoids a broker for a while because it failed or was slow",
    searched=("notAvailableDuration", "latencyMax", "broker isolated by producer"),
    proof=(
        "According to the fault strategy of the client's version, the captured attempts isolate a"
        " broker. During that time, the producer sends only to other brokers, and chance is an"
        " unlikely explanation."
    ),
    explanation=(
        "With sendLatencyFaultEnable, a producer avoids a broker that failed or was slow. Since"
        " 5.1.4, it does so for 10 s after a failure, and for at least 2 s after a send that took"
        " 550 ms or longer. Earlier versions avoid it for 600 s after a failure, and for 30 s or"
        " more after a slow send, unless a fast response ends it sooner. This protects sends and is"
        " not itself a problem."
    ),
    advice=(
        "Find out why sends to the broker failed or were slow. setNotAvailableDuration and"
        " setLatencyMax set how long producers avoid a broker. (The isolation itself needs no"
        " action.)"
    ),
    grpc=ISOLATES_PROXIES,
    fold=Fold,
    found_by="isolated-broker-still-used",
    limits="Needs numpy (rmqtool[report]).",
    needs={Need.SENDS},
    consequence_of=NO_RESPONSE | {"disk-full", "no-permission"},
)

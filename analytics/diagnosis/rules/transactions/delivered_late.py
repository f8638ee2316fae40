"""Messages with a delay are delivered long after they were due."""

from __future__ import annotations

from ...need import Need
from ...problem import ProblemSeverity
from ...rule import BEHIND_PROXY, DiagnosisRule, Fold
from .delay_ignored import LATE_ID

RULE = DiagnosisRule(
    id=LATE_ID,
    severity=ProblemSeverity.WARNING,
    title="A broker delivers messages with a delay long after they were due",
    searched=("timer message delayed", "delayed message late", "timerWheelEnable behind"),
    proof=(
        "A message in a response to a pull was stored in its queue two seconds or more after the"
        " time at which the broker's timer was to deliver it (TIMER_OUT_MS)."
    ),
    explanation=(
        "The broker keeps messages with a delay in a topic of its own and moves them to their queue"
        " when they are due, in steps of a second. While the broker is away nothing is moved, and"
        " what was due is delivered when it is back. A timer with too many messages of one moment,"
        " or a slow disk, falls behind."
    ),
    advice=(
        "Find out why the broker was away or slow when the messages were due. Look at timer metrics"
        " (mqadmin brokerStatus, timerReadBehind, timerCongestNum) where it was neither."
    ),
    grpc=BEHIND_PROXY,
    fold=Fold,
    found_by="delay-ignored",
    references=("apache/rocketmq#6566", "apache/rocketmq#6533"),
    limits="The first message of each pull is looked at only.",
    needs=frozenset((Need.PULLS,)),
    consequence_of=frozenset(("broker-gone", "broker-hung", "disk-full")),
    follows_within=600_000_000_000,
)

"""Messages with a delay are delivered long after they were due."""

from __future__ import annotations

from ...context import Need
from ...problem import ProblemSeverity
from ...rule import COVERED, DiagnosisRule, Fold
from .delay_ignored import LATE_ID

RULE = DiagnosisRule(
    id=LATE_ID,
    severity=ProblemSeverity.WARNING,
    title="A broker delivers delayed messages long after they were due",
    searched=("timer message delayed", "delayed message late", "timerWheelEnable behind"),
    proof=(
        "A pulled message was stored in its queue two seconds or more after the time at which the"
        " broker's timer should have delivered it (TIMER_OUT_MS)."
    ),
    explanation=(
        "The broker keeps delayed messages in an internal topic and moves them to their queue when"
        " they are due, in steps of a second. While the broker is down, nothing is moved, and due"
        " messages are delivered when it is back. A timer with too many messages due at one moment,"
        " or a slow disk, falls behind."
    ),
    advice=(
        "Find out why the broker was down or slow when the messages were due. If it was neither,"
        " check its timer metrics (mqadmin brokerStatus, timerReadBehind, timerCongestNum)."
    ),
    grpc=COVERED,
    fold=Fold,
    found_by="delay-ignored",
    references=("apache/rocketmq#6566", "apache/rocketmq#6533"),
    limits="Only the first message of each pull is checked.",
    needs={Need.PULLS},
    consequence_of={"broker-gone", "proxy-cannot-reach-broker", "broker-hung", "disk-full"},
    follows_within=600_000_000_000,
)

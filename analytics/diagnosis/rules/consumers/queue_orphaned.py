"""No member of a clustering group pulls a queue of its topic."""

from __future__ import annotations

from ...context import Need
from ...problem import ProblemSeverity
from ...rule import NO_OFFSETS, DiagnosisRule, Fold
from .queue_shared import ORPHANED
from .queue_shared import RULE as SHARED

RULE = DiagnosisRule(
    id=ORPHANED,
    severity=ProblemSeverity.ERROR,
    title="No member of a group pulls a queue of its topic",
    searched=(
        "queue has no consumer",
        "consumerProgress shows a queue without a client",
        "AllocateMessageQueueByConfig",
    ),
    proof=(
        "The broker lists the members of a clustering group (38), and they stay the same for 45 s"
        " or longer. All of them are in the capture and pull queues of a topic at a broker, but"
        " the topic's route lists a queue there that no member pulls."
    ),
    explanation=(
        "Each member computes its own queues. If strategies differ, a strategy omits queues, or a"
        " member does not pull its share, messages in those queues wait although the group has"
        " members."
    ),
    advice=(
        "Use the same AllocateMessageQueueStrategy (default AllocateMessageQueueAveragely) in all"
        " members, and check that each member subscribes to the topic: one that does not still gets"
        " a share. Restart a member that owns queues and does not pull them."
    ),
    grpc=NO_OFFSETS,
    fold=Fold,
    found_by=SHARED.id,
    limits=(
        "A queue that was never pulled is known only from the route. If a member is not in the"
        " capture, the rule is skipped for its group."
    ),
    needs={Need.PULLS, Need.HEARTBEATS, Need.ROUTES},
    rests_on_absence=True,
    lasts=None,
    consequence_of={"consumer-not-pulling", "duplicate-client-id", "inconsistent-subscription"},
)

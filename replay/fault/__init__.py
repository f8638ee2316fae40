"""The producer's latency fault strategy, in three generations of the Java client, as pure state.

A broker that failed or answered slowly is avoided for a time. Nothing here has a clock or a socket:
times are arguments, in milliseconds of the client's clock, and what Java draws at random is drawn
from a `Random` that may be given. The producer and the isolation report decide by this same code.

============================  ===================  =================  =========================
generation (client versions)  ``4.7`` (to 4.7.1)   ``4.8`` (to 5.1.3)  ``5.1`` (from 5.1.4)
============================  ===================  =================  =========================
an update of the item         replaces the time:   the same           only moves it later: a fast
                              a fast response ends                    response ends nothing
                              the isolation
first choice                  available, on a      available (1)      available (2) and not the
                              retry only the same                     last broker
                              broker
second choice                 the least bad (3)    the same           reachable and not the last
                                                                      broker
last choice                   the next queue       the same           the next queue
first look at queue           a retry goes on      the same           a retry begins anywhere
============================  ===================  =================  =========================

1. 5.1.1 to 5.1.3: and not the last broker.
2. 5.1.4 itself takes a broker that is not reachable for not available.
3. One of the better half of the items, in turn (``pickOneAtLeast``). All but 4.9.8 write that
   broker's name into the shared queue object, so the topic's queues are another list afterwards.

A broker without an item is available and reachable. Off, all generations take the next queue that
is not on the last broker. Read in the sources of the tags 4.1.0 to 5.3.3 of apache/rocketmq; 4.9.8
and 5.5.0 are compared with recorded runs.
RocketMQ: MQFaultStrategy, LatencyFaultToleranceImpl, TopicPublishInfo, ThreadLocalIndex, and what
DefaultMQProducerImpl and MQClientAPIImpl report to them.
"""

from __future__ import annotations

from .rules import (
    GENERATIONS,
    VARIANTS,
    AttemptEvent,
    Effect,
    FaultRules,
    FaultSettings,
    LastBroker,
    effect_of,
    generation_of_version,
    rules_of_version,
)
from .strategy import (
    DETECTOR_PERIOD_MS,
    ChoiceReason,
    FaultItem,
    FaultStrategy,
    QueueChoice,
    QueueIndex,
    StrategyQueue,
    StrategyTable,
)

__all__ = [
    "DETECTOR_PERIOD_MS",
    "GENERATIONS",
    "VARIANTS",
    "AttemptEvent",
    "ChoiceReason",
    "Effect",
    "FaultItem",
    "FaultRules",
    "FaultSettings",
    "FaultStrategy",
    "LastBroker",
    "QueueChoice",
    "QueueIndex",
    "StrategyQueue",
    "StrategyTable",
    "effect_of",
    "generation_of_version",
    "rules_of_version",
]

"""Headers of clients and consumer groups, and of what a broker asks a client.

One entry a Java class, fields in the order in which the class writes them.
"""

from __future__ import annotations

from .field import BOOLEAN, INT, LONG, RPC, STRING, TOPIC_RPC, HeaderField, may, must

CONSUMER_HEADERS: dict[str, tuple[HeaderField, ...]] = {
    "HeartbeatRequestHeader": RPC,
    "UnregisterClientRequestHeader": (
        must("clientID", STRING),
        may("producerGroup", STRING),
        may("consumerGroup", STRING),
        *RPC,
    ),
    "UnregisterClientResponseHeader": (),
    "GetConsumerListByGroupRequestHeader": (
        must("consumerGroup", STRING),
        *RPC,
    ),
    "GetConsumerListByGroupResponseHeader": (),
    "NotifyConsumerIdsChangedRequestHeader": (
        must("consumerGroup", STRING),
        *RPC,
    ),
    "LockBatchMqRequestHeader": RPC,
    "UnlockBatchMqRequestHeader": RPC,
    "ResetOffsetRequestHeader": (
        must("group", STRING),
        must("topic", STRING),
        may("queueId", INT, since="5.1.0"),
        may("offset", LONG, since="5.1.0"),
        must("timestamp", LONG),
        must("isForce", BOOLEAN),
        *TOPIC_RPC,
    ),
    "GetConsumerStatusRequestHeader": (
        must("topic", STRING),
        must("group", STRING),
        may("clientAddr", STRING),
        *TOPIC_RPC,
    ),
    "GetConsumerRunningInfoRequestHeader": (
        must("consumerGroup", STRING),
        must("clientId", STRING),
        may("jstackEnable", BOOLEAN),
        *RPC,
    ),
    "ConsumeMessageDirectlyResultRequestHeader": (
        must("consumerGroup", STRING),
        may("clientId", STRING),
        may("msgId", STRING),
        may("brokerName", STRING),
        may("topic", STRING, since="5.0.0"),
        may("topicSysFlag", INT, since="5.0.0"),
        may("groupSysFlag", INT, since="5.0.0"),
        *TOPIC_RPC,
    ),
}

"""Headers of reading: pull, offsets, queries of messages.

One entry a Java class, fields in the order in which the class writes them.
"""

from __future__ import annotations

from .field import (
    BOOLEAN,
    BOUNDARY,
    EARLY_TOPIC_RPC,
    INT,
    LONG,
    STRING,
    TOPIC_RPC,
    HeaderField,
    may,
    must,
)

PULL_HEADERS: dict[str, tuple[HeaderField, ...]] = {
    "PullMessageRequestHeader": (
        must("consumerGroup", STRING),
        must("topic", STRING),
        may("liteTopic", STRING, since="5.5.0"),
        must("queueId", INT),
        must("queueOffset", LONG),
        must("maxMsgNums", INT),
        must("sysFlag", INT),
        must("commitOffset", LONG),
        must("suspendTimeoutMillis", LONG),
        may("subscription", STRING),
        must("subVersion", LONG),
        may("expressionType", STRING, since="4.1.0"),
        may("maxMsgBytes", INT, since="5.0.0"),
        may("requestSource", INT, since="5.1.0"),
        may("proxyFrowardClientId", STRING, since="5.1.0"),
        *EARLY_TOPIC_RPC,
    ),
    "PullMessageResponseHeader": (
        must("suggestWhichBrokerId", LONG),
        must("nextBeginOffset", LONG),
        must("minOffset", LONG),
        must("maxOffset", LONG),
        may("offsetDelta", LONG, since="5.0.0"),
        may("topicSysFlag", INT, since="5.0.0"),
        may("groupSysFlag", INT, since="5.0.0"),
        may("forbiddenType", INT, since="5.0.0"),
    ),
    "QueryMessageRequestHeader": (
        must("topic", STRING),
        must("key", STRING),
        must("maxNum", INT),
        must("beginTimestamp", LONG),
        must("endTimestamp", LONG),
        may("indexType", STRING, since="5.4.0"),
        may("lastKey", STRING, since="5.4.0"),
        *TOPIC_RPC,
    ),
    "QueryMessageResponseHeader": (
        must("indexLastUpdateTimestamp", LONG),
        must("indexLastUpdatePhyoffset", LONG),
    ),
    "QueryConsumerOffsetRequestHeader": (
        must("consumerGroup", STRING),
        must("topic", STRING),
        must("queueId", INT),
        may("setZeroIfNotFound", BOOLEAN, since="5.0.0"),
        *EARLY_TOPIC_RPC,
    ),
    "QueryConsumerOffsetResponseHeader": (must("offset", LONG),),
    "UpdateConsumerOffsetRequestHeader": (
        must("consumerGroup", STRING),
        must("topic", STRING),
        must("queueId", INT),
        must("commitOffset", LONG),
        *EARLY_TOPIC_RPC,
    ),
    "UpdateConsumerOffsetResponseHeader": (),
    "SearchOffsetRequestHeader": (
        must("topic", STRING),
        may("liteTopic", STRING, since="5.5.0"),
        must("queueId", INT),
        must("timestamp", LONG),
        may("boundaryType", BOUNDARY, since="5.1.4"),
        *EARLY_TOPIC_RPC,
    ),
    "SearchOffsetResponseHeader": (must("offset", LONG),),
    "GetMaxOffsetRequestHeader": (
        must("topic", STRING),
        must("queueId", INT),
        may("committed", BOOLEAN, since="5.0.0"),
        may("logicalQueue", BOOLEAN, since="5.0.0-PREVIEW", until="5.0.0-PREVIEW"),
        *EARLY_TOPIC_RPC,
    ),
    "GetMaxOffsetResponseHeader": (must("offset", LONG),),
    "GetMinOffsetRequestHeader": (
        must("topic", STRING),
        must("queueId", INT),
        *EARLY_TOPIC_RPC,
    ),
    "GetMinOffsetResponseHeader": (must("offset", LONG),),
    "GetEarliestMsgStoretimeRequestHeader": (
        must("topic", STRING),
        must("queueId", INT),
        *EARLY_TOPIC_RPC,
    ),
    "GetEarliestMsgStoretimeResponseHeader": (must("timestamp", LONG),),
    "ViewMessageRequestHeader": (
        may("topic", STRING, since="5.3.0"),
        must("offset", LONG),
    ),
    "InitConsumerOffsetRequestHeader": (
        may("topic", STRING),
        may("initMode", INT),
        *TOPIC_RPC,
    ),
    "ViewMessageResponseHeader": (),
}

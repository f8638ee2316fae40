"""Headers of POP consumption, lite topics included.

One entry a Java class, fields in the order in which the class writes them.
"""

from __future__ import annotations

from .field import BOOLEAN, INT, LONG, RPC, STRING, TOPIC_RPC, HeaderField, may, must

POP_HEADERS: dict[str, tuple[HeaderField, ...]] = {
    "PopMessageRequestHeader": (
        must("consumerGroup", STRING),
        must("topic", STRING),
        must("queueId", INT),
        must("maxMsgNums", INT),
        must("invisibleTime", LONG),
        must("pollTime", LONG),
        must("bornTime", LONG),
        must("initMode", INT),
        may("expType", STRING),
        may("exp", STRING),
        may("order", BOOLEAN),
        may("attemptId", STRING, since="5.1.1"),
        *TOPIC_RPC,
    ),
    "PopMessageResponseHeader": (
        must("popTime", LONG),
        must("invisibleTime", LONG),
        must("reviveQid", INT),
        must("restNum", LONG),
        may("startOffsetInfo", STRING),
        may("msgOffsetInfo", STRING),
        may("orderCountInfo", STRING),
    ),
    "AckMessageRequestHeader": (
        must("consumerGroup", STRING),
        must("topic", STRING),
        must("queueId", INT),
        must("extraInfo", STRING),
        must("offset", LONG),
        may("liteTopic", STRING, since="5.5.0"),
        *TOPIC_RPC,
    ),
    "PeekMessageRequestHeader": (
        must("topic", STRING),
        must("queueId", INT),
        must("maxMsgNums", INT),
        must("consumerGroup", STRING),
        *TOPIC_RPC,
    ),
    "ChangeInvisibleTimeRequestHeader": (
        must("consumerGroup", STRING),
        must("topic", STRING),
        must("queueId", INT),
        must("extraInfo", STRING),
        must("offset", LONG),
        must("invisibleTime", LONG),
        may("liteTopic", STRING, since="5.5.0"),
        may("suspend", BOOLEAN, since="5.5.0"),
        *TOPIC_RPC,
    ),
    "ChangeInvisibleTimeResponseHeader": (
        must("popTime", LONG),
        must("invisibleTime", LONG),
        must("reviveQid", INT),
    ),
    "NotificationRequestHeader": (
        must("consumerGroup", STRING),
        must("topic", STRING),
        must("queueId", INT),
        must("pollTime", LONG),
        must("bornTime", LONG),
        may("order", BOOLEAN, since="5.1.2"),
        may("attemptId", STRING, since="5.1.2"),
        may("clientId", STRING, since=">5.5.0"),
        may("expType", STRING, since="5.5.0"),
        may("exp", STRING, since="5.5.0"),
        may("isLiteConsumer", BOOLEAN, since=">5.5.0"),
        *TOPIC_RPC,
    ),
    "NotificationResponseHeader": (
        must("hasMsg", BOOLEAN),
        may("pollingFull", BOOLEAN, since="5.3.2"),
    ),
    "PollingInfoRequestHeader": (
        must("consumerGroup", STRING),
        must("topic", STRING),
        must("queueId", INT),
        *TOPIC_RPC,
    ),
    "PollingInfoResponseHeader": (must("pollingNum", INT),),
    "PopLiteMessageRequestHeader": (
        must("clientId", STRING),
        must("consumerGroup", STRING),
        must("topic", STRING),
        must("maxMsgNum", INT),
        must("invisibleTime", LONG),
        must("pollTime", LONG),
        must("bornTime", LONG),
        may("attemptId", STRING),
        *RPC,
    ),
    "PopLiteMessageResponseHeader": (
        must("popTime", LONG),
        must("invisibleTime", LONG),
        must("reviveQid", INT),
        may("startOffsetInfo", STRING),
        may("msgOffsetInfo", STRING),
        may("orderCountInfo", STRING),
    ),
    "LiteSubscriptionCtlRequestHeader": RPC,
    "NotifyUnsubscribeLiteRequestHeader": (
        must("liteTopic", STRING),
        must("consumerGroup", STRING),
        must("clientId", STRING),
        *RPC,
    ),
    "GetParentTopicInfoRequestHeader": (must("topic", STRING),),
    "GetLiteTopicInfoRequestHeader": (
        may("parentTopic", STRING),
        may("liteTopic", STRING),
    ),
    "GetLiteClientInfoRequestHeader": (
        may("parentTopic", STRING),
        may("group", STRING),
        may("clientId", STRING),
        may("maxCount", INT),
    ),
    "GetLiteGroupInfoRequestHeader": (
        must("group", STRING),
        may("liteTopic", STRING),
        may("topK", INT),
    ),
    "TriggerLiteDispatchRequestHeader": (
        must("group", STRING),
        may("clientId", STRING),
    ),
}

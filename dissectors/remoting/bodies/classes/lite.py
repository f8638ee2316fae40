"""Bodies of lite topics (5.5.0): subscriptions of lite consumers and what brokers tell of them.

Java class → member as fastjson names it → Java type; see `java_types`. An absent member is null.
RocketMQ: LiteSubscriptionCtlRequestBody, LiteSubscriptionDTO, GetBrokerLiteInfoResponseBody.
"""

from __future__ import annotations

from .member import Members

LITE_CLASSES: dict[str, Members] = {
    "LiteSubscriptionCtlRequestBody": {
        "subscriptionSet": "Set<LiteSubscriptionDTO>",
    },
    "LiteSubscriptionDTO": {
        "action": "LiteSubscriptionAction",
        "clientId": "String",
        "group": "String",
        "liteTopicSet": "Set<String>",
        "offsetOption": "OffsetOption",
        "topic": "String",
        "version": "long",
    },
    "OffsetOption": {
        "type": "OffsetOption.Type",
        "value": "long",
    },
    "GetBrokerLiteInfoResponseBody": {
        "cqTableSize": "int",
        "currentLmqNum": "int",
        "eventMapSize": "int",
        "groupMeta": "Map<String, Set<String>>",
        "liteSubscriptionCount": "int",
        "maxLmqNum": "int",
        "offsetTableSize": "int",
        "orderInfoCount": "int",
        "storeType": "String",
        "topicMeta": "Map<String, Integer>",
    },
    "GetParentTopicInfoResponseBody": {
        "groups": "Set<String>",
        "liteTopicCount": "int",
        "lmqNum": "int",
        "topic": "String",
        "ttl": "int",
    },
    "GetLiteTopicInfoResponseBody": {
        "liteTopic": "String",
        "parentTopic": "String",
        "shardingToBroker": "boolean",
        "subscriber": "Set<ClientGroup>",
        "topicOffset": "TopicOffset",
    },
    "ClientGroup": {
        "clientId": "String",
        "group": "String",
    },
    "GetLiteClientInfoResponseBody": {
        "clientId": "String",
        "group": "String",
        "lastAccessTime": "long",
        "lastConsumeTime": "long",
        "liteTopicCount": "int",
        "liteTopicSet": "Set<String>",
        "parentTopic": "String",
    },
    "GetLiteGroupInfoResponseBody": {
        "earliestUnconsumedTimestamp": "long",
        "group": "String",
        "lagCountTopK": "List<LiteLagInfo>",
        "lagTimestampTopK": "List<LiteLagInfo>",
        "liteTopic": "String",
        "liteTopicOffsetWrapper": "OffsetWrapper",
        "parentTopic": "String",
        "totalLagCount": "long",
    },
    "LiteLagInfo": {
        "earliestUnconsumedTimestamp": "long",
        "lagCount": "long",
        "liteTopic": "String",
    },
}

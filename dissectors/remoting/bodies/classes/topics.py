"""Bodies about topics, subscription groups and broker configuration.

Java class → member as fastjson names it → Java type; see `java_types`. An absent member is null.
RocketMQ: TopicConfig, TopicQueueMappingDetail, SubscriptionGroupConfig, RegisterBrokerBody.
"""

from __future__ import annotations

from .member import Members

TOPICS_CLASSES: dict[str, Members] = {
    "TopicConfig": {
        "attributes": "Map<String, String>",
        "order": "boolean",
        "perm": "int",
        "readQueueNums": "int",
        "topicFilterType": "TopicFilterType",
        "topicName": "String",
        "topicSysFlag": "int",
        "writeQueueNums": "int",
    },
    "TopicConfigSerializeWrapper": {
        "dataVersion": "DataVersion",
        "topicConfigTable": "Map<String, TopicConfig>",
    },
    "TopicConfigAndMappingSerializeWrapper": {
        "dataVersion": "DataVersion",
        "mappingDataVersion": "DataVersion",
        "topicConfigTable": "Map<String, TopicConfig>",
        "topicQueueMappingDetailMap": "Map<String, TopicQueueMappingDetail>",
        "topicQueueMappingInfoMap": "Map<String, TopicQueueMappingInfo>",
    },
    "TopicConfigAndQueueMapping": {
        "attributes": "Map<String, String>",
        "mappingDetail": "TopicQueueMappingDetail",
        "order": "boolean",
        "perm": "int",
        "readQueueNums": "int",
        "topicFilterType": "TopicFilterType",
        "topicName": "String",
        "topicSysFlag": "int",
        "writeQueueNums": "int",
    },
    "CreateTopicListRequestBody": {
        "topicConfigList": "List<TopicConfig>",
    },
    "TopicList": {
        "brokerAddr": "String",
        "topicList": "Set<String>",
    },
    "RegisterBrokerBody": {
        "filterServerList": "List<String>",
        "topicConfigSerializeWrapper": "TopicConfigAndMappingSerializeWrapper",
    },
    "DataVersion": {
        "counter": "long",
        "stateVersion": "long",
        "timestamp": "long",
        "timestatmp": "long",  # so spelled in 3.2.6
    },
    "LogicQueueMappingItem": {
        "bname": "String",
        "endOffset": "long",
        "gen": "int",
        "logicOffset": "long",
        "queueId": "int",
        "startOffset": "long",
        "timeOfEnd": "long",
        "timeOfStart": "long",
    },
    "TopicQueueMappingContext": {
        "currentItem": "LogicQueueMappingItem",
        "globalId": "Integer",
        "leader": "boolean",
        "leaderItem": "LogicQueueMappingItem",
        "mappingDetail": "TopicQueueMappingDetail",
        "mappingItemList": "List<LogicQueueMappingItem>",
        "topic": "String",
    },
    "TopicQueueMappingDetail": {
        "bname": "String",
        "currIdMap": "Map<Integer, Integer>",
        "dirty": "boolean",
        "epoch": "long",
        "hostedQueues": "Map<Integer, List<LogicQueueMappingItem>>",
        "scope": "String",
        "topic": "String",
        "totalQueues": "int",
    },
    "TopicQueueMappingInfo": {
        "bname": "String",
        "currIdMap": "Map<Integer, Integer>",
        "dirty": "boolean",
        "epoch": "long",
        "scope": "String",
        "topic": "String",
        "totalQueues": "int",
    },
    "TopicQueueMappingOne": {
        "bname": "String",
        "globalId": "Integer",
        "items": "List<LogicQueueMappingItem>",
        "mappingDetail": "TopicQueueMappingDetail",
        "topic": "String",
    },
    "TopicQueueMappingSerializeWrapper": {
        "dataVersion": "DataVersion",
        "topicQueueMappingInfoMap": "Map<String, TopicQueueMappingDetail>",
    },
    "TopicRemappingDetailWrapper": {
        "brokerConfigMap": "Map<String, TopicConfigAndQueueMapping>",
        "brokerToMapIn": "Set<String>",
        "brokerToMapOut": "Set<String>",
        "epoch": "long",
        "topic": "String",
        "type": "String",
    },
    "SubscriptionGroupConfig": {
        "attributes": "Map<String, String>",
        "brokerId": "long",
        "consumeBroadcastEnable": "boolean",
        "consumeEnable": "boolean",
        "consumeFromMinEnable": "boolean",
        "consumeMessageOrderly": "boolean",
        "consumeTimeoutMinute": "int",
        "groupName": "String",
        "groupRetryPolicy": "GroupRetryPolicy",
        "groupSysFlag": "int",
        "notifyConsumerIdsChangedEnable": "boolean",
        "retryMaxTimes": "int",
        "retryQueueNums": "int",
        "subscriptionDataSet": "Set<SimpleSubscriptionData>",
        "whichBrokerWhenConsumeSlowly": "long",
    },
    "SubscriptionGroupList": {
        "groupConfigList": "List<SubscriptionGroupConfig>",
    },
    "SubscriptionGroupWrapper": {
        "dataVersion": "DataVersion",
        "forbiddenTable": "Map<String, Map<String, Integer>>",
        "subscriptionGroupTable": "Map<String, SubscriptionGroupConfig>",
    },
    "SimpleSubscriptionData": {
        "expression": "String",
        "expressionType": "String",
        "topic": "String",
        "version": "long",
    },
    "CustomizedRetryPolicy": {
        "next": "List<Long>",
    },
    "ExponentialRetryPolicy": {
        "initial": "long",
        "max": "long",
        "multiplier": "long",
    },
    "GroupRetryPolicy": {
        "customizedRetryPolicy": "CustomizedRetryPolicy",
        "exponentialRetryPolicy": "ExponentialRetryPolicy",
        "type": "GroupRetryPolicyType",
    },
    "RetryPolicy": {},
    "GroupForbidden": {
        "group": "String",
        "readable": "Boolean",
        "topic": "String",
    },
}

"""Bodies about consumers and producers: offsets, connections, statistics, diagnosis.

Java class → member as fastjson names it → Java type; see `java_types`. An absent member is null.
RocketMQ: ConsumeStats, ConsumerRunningInfo, ResetOffsetBody, ConsumerConnection.
"""

from __future__ import annotations

from .member import Members

CONSUMERS_CLASSES: dict[str, Members] = {
    "ConsumeStats": {
        "consumeTps": "double",
        "offsetTable": "Map<MessageQueue, OffsetWrapper>",
    },
    "OffsetWrapper": {
        "brokerOffset": "long",
        "consumerOffset": "long",
        "lastTimestamp": "long",
        "pullOffset": "long",
    },
    "ConsumeStatsList": {
        "brokerAddr": "String",
        "consumeStatsList": "List<Map<String, List<ConsumeStats>>>",
        "totalDiff": "long",
        "totalInflightDiff": "long",
    },
    "RollbackStats": {
        "brokerName": "String",
        "brokerOffset": "long",
        "consumerOffset": "long",
        "queueId": "long",
        "rollbackOffset": "long",
        "timestampOffset": "long",
    },
    "ConsumeStatus": {
        "consumeFailedMsgs": "long",
        "consumeFailedTPS": "double",
        "consumeOKTPS": "double",
        "consumeRT": "double",
        "pullRT": "double",
        "pullTPS": "double",
    },
    "ConsumeByWho": {
        "consumedGroup": "Set<String>",
        "notConsumedGroup": "Set<String>",
        "offset": "long",
        "queueId": "int",
        "topic": "String",
    },
    "ConsumeMessageDirectlyResult": {
        "autoCommit": "boolean",
        "consumeResult": "CMResult",
        "order": "boolean",
        "remark": "String",
        "spentTimeMills": "long",
    },
    "ConsumeQueueData": {
        "bitMap": "String",
        "eval": "boolean",
        "extendDataJson": "String",
        "msg": "String",
        "physicOffset": "long",
        "physicSize": "int",
        "tagsCode": "long",
    },
    "Connection": {
        "clientAddr": "String",
        "clientId": "String",
        "language": "LanguageCode",
        "version": "int",
    },
    "ConsumerConnection": {
        "connectionSet": "Set<Connection>",
        "consumeFromWhere": "ConsumeFromWhere",
        "consumeType": "ConsumeType",
        "messageModel": "MessageModel",
        "subscriptionTable": "Map<String, SubscriptionData>",
    },
    "ProducerConnection": {
        "connectionSet": "Set<Connection>",
    },
    "ProducerInfo": {
        "clientId": "String",
        "language": "LanguageCode",
        "lastUpdateTimestamp": "long",
        "remoteIP": "String",
        "version": "int",
    },
    "ProducerTableInfo": {
        "data": "Map<String, List<ProducerInfo>>",
    },
    "ConsumerOffsetSerializeWrapper": {
        "dataVersion": "DataVersion",
        "groupTopicMap": "Map<String, Set<String>>",
        "offsetTable": "Map<String, Map<Integer, Long>>",
        "pullOffsetTable": "Map<String, Map<Integer, Long>>",
    },
    "DelayOffsetSerializeWrapper": {
        "dataVersion": "DataVersion",
        "offsetTable": "Map<Integer, Long>",
    },
    "ConsumerRunningInfo": {
        "jstack": "String",
        "mqPopTable": "Map<MessageQueue, PopProcessQueueInfo>",
        "mqTable": "Map<MessageQueue, ProcessQueueInfo>",
        "properties": "Map<String, String>",
        "statusTable": "Map<String, ConsumeStatus>",
        "subscriptionSet": "Set<SubscriptionData>",
        "userConsumerInfo": "Map<String, String>",
    },
    "PopProcessQueueInfo": {
        "droped": "boolean",
        "lastPopTimestamp": "long",
        "waitAckCount": "int",
    },
    "ProcessQueueInfo": {
        "cachedMsgCount": "int",
        "cachedMsgMaxOffset": "long",
        "cachedMsgMinOffset": "long",
        "cachedMsgSizeInMiB": "int",
        "commitOffset": "long",
        "droped": "boolean",
        "lastConsumeTimestamp": "long",
        "lastLockTimestamp": "long",
        "lastPullTimestamp": "long",
        "locked": "boolean",
        "transactionMsgCount": "int",
        "transactionMsgMaxOffset": "long",
        "transactionMsgMinOffset": "long",
        "tryUnlockTimes": "long",
    },
    "GetConsumerStatusBody": {
        "consumerTable": "Map<String, Map<MessageQueue, Long>>",
        "messageQueueTable": "Map<MessageQueue, Long>",
    },
    "GroupList": {
        "groupList": "Set<String>",
    },
    "QueryConsumeQueueResponseBody": {
        "filterData": "String",
        "maxQueueIndex": "long",
        "minQueueIndex": "long",
        "queueData": "List<ConsumeQueueData>",
        "subscriptionData": "SubscriptionData",
    },
    "QueryConsumeTimeSpanBody": {
        "consumeTimeSpanSet": "List<QueueTimeSpan>",
    },
    "QueueTimeSpan": {
        "consumeTimeStamp": "long",
        "consumeTimeStampStr": "String",
        "delayTime": "long",
        "maxTimeStamp": "long",
        "maxTimeStampStr": "String",
        "messageQueue": "MessageQueue",
        "minTimeStamp": "long",
        "minTimeStampStr": "String",
    },
    "QueryCorrectionOffsetBody": {
        "correctionOffsets": "Map<Integer, Long>",
    },
    "QuerySubscriptionResponseBody": {
        "group": "String",
        "subscriptionData": "SubscriptionData",
        "topic": "String",
    },
    "ResetOffsetBody": {
        "offsetTable": "Map<MessageQueue, Long>",
    },
    "ResetOffsetBodyForC": {
        "offsetTable": "List<MessageQueueForC>",
    },
    "TopicOffset": {
        "lastUpdateTimestamp": "long",
        "maxOffset": "long",
        "minOffset": "long",
    },
    "TopicStatsTable": {
        "offsetTable": "Map<MessageQueue, TopicOffset>",
        "topicPutTps": "double",
    },
}

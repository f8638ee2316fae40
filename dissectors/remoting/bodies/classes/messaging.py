"""Bodies of clients: routes, heartbeats, subscriptions, locks, assignments, POP.

Java class → member as fastjson names it → Java type; see `java_types`. An absent member is null.
RocketMQ: TopicRouteData, HeartbeatData, LockBatchRequestBody, QueryAssignmentRequestBody, BatchAck,
PopCheckPoint.
"""

from __future__ import annotations

from .member import Members, short

MESSAGING_CLASSES: dict[str, Members] = {
    "MessageQueue": {
        "brokerName": "String",
        "queueId": "int",
        "topic": "String",
    },
    "MessageQueueForC": {
        "brokerName": "String",
        "offset": "long",
        "queueId": "int",
        "topic": "String",
    },
    "MessageQueueAssignment": {
        "attachments": "Map<String, String>",
        "messageQueue": "MessageQueue",
        "mode": "MessageRequestMode",
    },
    "BrokerData": {
        "brokerAddrs": "Map<Long, String>",
        "brokerName": "String",
        "cluster": "String",
        "enableActingMaster": "boolean",
        "zoneName": "String",
    },
    "QueueData": {
        "brokerName": "String",
        "perm": "int",
        "readQueueNums": "int",
        "topicSynFlag": "int",  # 3.2.6 to 4.6.1
        "topicSysFlag": "int",
        "writeQueueNums": "int",
    },
    "TopicRouteData": {
        "brokerDatas": "List<BrokerData>",
        "filterServerTable": "Map<String, List<String>>",
        "orderTopicConf": "String",
        "queueDatas": "List<QueueData>",
        "topicQueueMappingByBroker": "Map<String, TopicQueueMappingInfo>",
        "topicQueueMappingInfo": "Map<String, TopicQueueMappingInfo>",  # not of Java
    },
    "HeartbeatData": {
        "clientID": "String",
        "consumerDataSet": "Set<ConsumerData>",
        "heartbeatFingerprint": "int",
        "producerDataSet": "Set<ProducerData>",
        "withoutSub": "boolean",
    },
    "ProducerData": {
        "groupName": "String",
    },
    "ConsumerData": {
        "consumeFromWhere": "ConsumeFromWhere",
        "consumeType": "ConsumeType",
        "groupName": "String",
        "messageModel": "MessageModel",
        "subscriptionDataSet": "Set<SubscriptionData>",
        "unitMode": "boolean",
    },
    "SubscriptionData": {
        "classFilterMode": "boolean",
        "codeSet": "Set<Integer>",
        "expressionType": "String",
        "subString": "String",
        "subVersion": "long",
        "tagsSet": "Set<String>",
        "topic": "String",
    },
    "CheckClientRequestBody": {
        "clientId": "String",
        "group": "String",
        "namespace": "String",
        "subscriptionData": "SubscriptionData",
    },
    "GetConsumerListByGroupResponseBody": {
        "consumerIdList": "List<String>",
    },
    "LockBatchRequestBody": {
        "clientId": "String",
        "consumerGroup": "String",
        "mqSet": "Set<MessageQueue>",
        "onlyThisBroker": "boolean",
    },
    "LockBatchResponseBody": {
        "lockOKMQSet": "Set<MessageQueue>",
    },
    "UnlockBatchRequestBody": {
        "clientId": "String",
        "consumerGroup": "String",
        "mqSet": "Set<MessageQueue>",
        "onlyThisBroker": "boolean",
    },
    "QueryAssignmentRequestBody": {
        "clientId": "String",
        "consumerGroup": "String",
        "messageModel": "MessageModel",
        "strategyName": "String",
        "topic": "String",
    },
    "QueryAssignmentResponseBody": {
        "messageQueueAssignments": "Set<MessageQueueAssignment>",
    },
    "SetMessageRequestModeRequestBody": {
        "consumerGroup": "String",
        "mode": "MessageRequestMode",
        "popShareQueueNum": "int",
        "topic": "String",
    },
    "MessageRequestModeSerializeWrapper": {
        "messageRequestModeMap": "Map<String, Map<String, SetMessageRequestModeRequestBody>>",
    },
    "BatchAck": {
        "b": short("bitSet", "BitSet"),
        "c": short("consumerGroup", "String"),
        "it": short("invisibleTime", "long"),
        "pt": short("popTime", "long"),
        "q": short("queueId", "int"),
        "r": short("retry", "String"),
        "rq": short("reviveQueueId", "int"),
        "so": short("startOffset", "long"),
        "t": short("topic", "String"),
    },
    "BatchAckMessageRequestBody": {
        "acks": "List<BatchAck>",
        "brokerName": "String",
    },
    "AckMsg": {
        "ao": short("ackOffset", "long"),
        "bn": short("brokerName", "String"),
        "c": short("consumerGroup", "String"),
        "pt": short("popTime", "long"),
        "q": short("queueId", "int"),
        "so": short("startOffset", "long"),
        "t": short("topic", "String"),
    },
    "BatchAckMsg": {
        "ao": short("ackOffset", "long"),
        "aol": short("ackOffsetList", "List<Long>"),
        "bn": short("brokerName", "String"),
        "c": short("consumerGroup", "String"),
        "pt": short("popTime", "long"),
        "q": short("queueId", "int"),
        "so": short("startOffset", "long"),
        "t": short("topic", "String"),
    },
    "PopCheckPoint": {
        "bm": short("bitMap", "int"),
        "bn": short("brokerName", "String"),
        "c": short("consumerGroup", "String"),
        "d": short("queueOffsetDiff", "List<Integer>"),
        "it": short("invisibleTime", "long"),
        "n": short("messageCount", "byte"),
        "pt": short("popTime", "long"),
        "q": short("queueId", "int"),
        "reviveTime": "long",
        "ro": short("reviveOffset", "long"),
        "rp": short("rePutTimes", "String"),
        "so": short("startOffset", "long"),
        "sp": short("suspend", "boolean"),
        "t": short("topic", "String"),
    },
    "OffsetMovedEvent": {
        "consumerGroup": "String",
        "messageQueue": "MessageQueue",
        "offsetNew": "long",
        "offsetRequest": "long",
    },
}

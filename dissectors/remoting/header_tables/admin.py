"""Headers of administration: topics, groups, statistics.

One entry a Java class, fields in the order in which the class writes them.
"""

from __future__ import annotations

from .field import BOOLEAN, INT, LONG, RPC, STRING, TOPIC_RPC, HeaderField, may, must

CLASSLESS: dict[str, tuple[HeaderField, ...]] = {
    "SET_COMMITLOG_READ_MODE": (must("readAheadMode", INT, wire="READ_AHEAD_MODE"),),
    "SWITCH_TIMER_ENGINE": (must("timerEngineType", STRING, wire="E_T"),),
}
"""Ext fields of requests that have no header class, by the name of the request code."""

ADMIN_HEADERS: dict[str, tuple[HeaderField, ...]] = {
    "CreateTopicRequestHeader": (
        must("topic", STRING),
        must("defaultTopic", STRING),
        must("readQueueNums", INT),
        must("writeQueueNums", INT),
        must("perm", INT),
        must("topicFilterType", STRING),
        may("topicSysFlag", INT),
        must("order", BOOLEAN),
        may("attributes", STRING, since="5.0.0"),
        may("force", BOOLEAN, since="5.0.0"),
        *TOPIC_RPC,
    ),
    "CreateTopicListRequestHeader": RPC,
    "GetAllTopicConfigRequestHeader": (
        must("topicSeq", INT, since="5.4.0"),
        may("dataVersion", STRING, since="5.4.0"),
        may("maxTopicNum", INT, since="5.4.0"),
    ),
    "GetAllTopicConfigResponseHeader": (may("totalTopicNum", INT, since="5.4.0"),),
    "GetBrokerConfigResponseHeader": (must("version", STRING),),
    "GetAllSubscriptionGroupRequestHeader": (
        must("groupSeq", INT, since="5.4.0"),
        may("dataVersion", STRING, since="5.4.0"),
        may("maxGroupNum", INT, since="5.4.0"),
    ),
    "GetAllSubscriptionGroupResponseHeader": (must("totalGroupNum", INT, since="5.4.0"),),
    "GetTopicStatsInfoRequestHeader": (
        must("topic", STRING),
        *TOPIC_RPC,
    ),
    "GetConsumerConnectionListRequestHeader": (
        must("consumerGroup", STRING),
        *RPC,
    ),
    "GetProducerConnectionListRequestHeader": (
        must("producerGroup", STRING),
        *RPC,
    ),
    "DeleteSubscriptionGroupRequestHeader": (
        must("groupName", STRING),
        may("cleanOffset", BOOLEAN, since="5.0.0"),
        may("removeOffset", BOOLEAN, since="4.9.0", until="5.0.0-ALPHA"),
        *RPC,
    ),
    "GetConsumeStatsRequestHeader": (
        must("consumerGroup", STRING),
        may("topic", STRING),
        may("topicList", STRING, since="5.3.2"),
        *TOPIC_RPC,
    ),
    "DeleteTopicRequestHeader": (
        must("topic", STRING),
        *TOPIC_RPC,
    ),
    "QueryTopicConsumeByWhoRequestHeader": (
        must("topic", STRING),
        *TOPIC_RPC,
    ),
    "QueryConsumeTimeSpanRequestHeader": (
        must("topic", STRING),
        must("group", STRING),
        *TOPIC_RPC,
    ),
    "QueryCorrectionOffsetHeader": (
        may("filterGroups", STRING),
        must("compareGroup", STRING),
        must("topic", STRING),
        *TOPIC_RPC,
    ),
    "CloneGroupOffsetRequestHeader": (
        must("srcGroup", STRING),
        must("destGroup", STRING),
        may("topic", STRING),
        may("offline", BOOLEAN),
        *RPC,
    ),
    "ViewBrokerStatsDataRequestHeader": (
        must("statsName", STRING),
        must("statsKey", STRING),
    ),
    "GetConsumeStatsInBrokerHeader": (must("isOrder", BOOLEAN),),
    "QueryConsumeQueueRequestHeader": (
        may("topic", STRING),
        may("queueId", INT),
        may("index", LONG),
        may("count", INT),
        may("consumerGroup", STRING),
        *TOPIC_RPC,
    ),
    "GetAllProducerInfoRequestHeader": (),
    "QueryTopicsByConsumerRequestHeader": (
        must("group", STRING),
        *RPC,
    ),
    "QuerySubscriptionByConsumerRequestHeader": (
        must("group", STRING),
        may("topic", STRING),
        *TOPIC_RPC,
    ),
    "GetTopicConfigRequestHeader": (
        must("topic", STRING),
        *TOPIC_RPC,
    ),
    "GetSubscriptionGroupConfigRequestHeader": (
        must("group", STRING),
        *RPC,
    ),
    "UpdateGroupForbiddenRequestHeader": (
        must("group", STRING),
        must("topic", STRING),
        may("readable", BOOLEAN),
        *TOPIC_RPC,
    ),
    "CheckRocksdbCqWriteProgressRequestHeader": (
        must("topic", STRING),
        may("checkStoreTime", LONG, since="5.3.2"),
    ),
    "ExportRocksDBConfigToJsonRequestHeader": (must("configType", STRING),),
    "StatisticsMessagesRequestHeader": (
        must("consumerGroup", STRING),
        must("topic", STRING),
        must("queueId", INT),
        may("fromTime", LONG),
        may("toTime", LONG),
        *TOPIC_RPC,
    ),
}

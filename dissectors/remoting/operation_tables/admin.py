"""Operations of administration tools on a broker: topics, groups, statistics, users.

Rows in the order of the codes; the columns are those of `Operation`.
"""

from __future__ import annotations

from .operation import Operation

ADMIN_OPERATIONS: dict[str, Operation] = {
    "QUERY_MESSAGE": Operation(
        request_header="QueryMessageRequestHeader",
        response_header="QueryMessageResponseHeader",
        response_body="stored-messages",
        who="admin->broker",
        mode="async",
        since="4.0.0",
        note="ext field _UNIQUE_KEY_QUERY tells a search by UNIQ_KEY from one by KEYS",
    ),
    "UPDATE_AND_CREATE_TOPIC": Operation(
        request_header="CreateTopicRequestHeader", who="admin->broker", since="4.0.0"
    ),
    "UPDATE_AND_CREATE_TOPIC_LIST": Operation(
        request_header="CreateTopicListRequestHeader",
        request_body="CreateTopicListRequestBody",
        who="admin->broker",
        since="5.3.0",
    ),
    "UPDATE_BROKER_CONFIG": Operation(
        request_body="properties-text",
        who="admin->broker",
        since="4.0.0",
        note="a broker container takes it too",
    ),
    "GET_BROKER_CONFIG": Operation(
        response_header="GetBrokerConfigResponseHeader",
        response_body="properties-text",
        who="admin->broker",
        since="4.0.0",
        note="a broker container takes it too",
    ),
    "GET_BROKER_RUNTIME_INFO": Operation(
        response_body="KVTable", who="admin->broker", since="4.0.0"
    ),
    "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP": Operation(
        request_body="SubscriptionGroupConfig", who="admin->broker", since="4.0.0"
    ),
    "GET_TOPIC_STATS_INFO": Operation(
        request_header="GetTopicStatsInfoRequestHeader",
        response_body="TopicStatsTable",
        who="admin->broker",
        since="4.0.0",
    ),
    "GET_CONSUMER_CONNECTION_LIST": Operation(
        request_header="GetConsumerConnectionListRequestHeader",
        response_body="ConsumerConnection",
        who="admin->broker",
        since="4.0.0",
    ),
    "GET_PRODUCER_CONNECTION_LIST": Operation(
        request_header="GetProducerConnectionListRequestHeader",
        response_body="ProducerConnection",
        who="admin->broker",
        since="4.0.0",
    ),
    "DELETE_SUBSCRIPTIONGROUP": Operation(
        request_header="DeleteSubscriptionGroupRequestHeader",
        who="admin->broker",
        since="4.0.0",
        note="cleanOffset in 5.x, removeOffset in 4.9",
    ),
    "GET_CONSUME_STATS": Operation(
        request_header="GetConsumeStatsRequestHeader",
        response_body="ConsumeStats",
        who="admin->broker",
        since="4.0.0",
    ),
    "DELETE_TOPIC_IN_BROKER": Operation(
        request_header="DeleteTopicRequestHeader", who="admin->broker", since="4.0.0"
    ),
    "INVOKE_BROKER_TO_RESET_OFFSET": Operation(
        request_header="ResetOffsetRequestHeader",
        response_body="ResetOffsetBody",
        who="admin->broker",
        since="4.0.0",
    ),
    "INVOKE_BROKER_TO_GET_CONSUMER_STATUS": Operation(
        request_header="GetConsumerStatusRequestHeader",
        response_body="GetConsumerStatusBody",
        who="admin->broker",
        since="4.0.0",
        note="the response fills consumerTable",
    ),
    "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST": Operation(
        request_body="SubscriptionGroupList", who="admin->broker", since="5.3.1"
    ),
    "QUERY_TOPIC_CONSUME_BY_WHO": Operation(
        request_header="QueryTopicConsumeByWhoRequestHeader",
        response_body="GroupList",
        who="admin->broker",
        since="4.0.0",
    ),
    "QUERY_CONSUME_TIME_SPAN": Operation(
        request_header="QueryConsumeTimeSpanRequestHeader",
        response_body="QueryConsumeTimeSpanBody",
        who="admin->broker",
        since="4.0.0",
    ),
    "GET_SYSTEM_TOPIC_LIST_FROM_BROKER": Operation(
        response_body="TopicList", who="admin->broker", since="4.0.0"
    ),
    "CLEAN_EXPIRED_CONSUMEQUEUE": Operation(who="admin->broker", since="4.0.0"),
    "GET_CONSUMER_RUNNING_INFO": Operation(
        request_header="GetConsumerRunningInfoRequestHeader",
        response_body="ConsumerRunningInfo",
        who="admin->broker",
        since="4.0.0",
        note="the broker asks the client the same and hands its body on",
    ),
    "QUERY_CORRECTION_OFFSET": Operation(
        request_header="QueryCorrectionOffsetHeader",
        response_body="QueryCorrectionOffsetBody",
        who="admin->broker",
        since="4.0.0",
    ),
    "CONSUME_MESSAGE_DIRECTLY": Operation(
        request_header="ConsumeMessageDirectlyResultRequestHeader",
        request_body="stored-message",
        response_body="ConsumeMessageDirectlyResult",
        who="admin->broker",
        since="4.0.0",
        note="the broker asks the client the same, with the message as body",
    ),
    "CLONE_GROUP_OFFSET": Operation(
        request_header="CloneGroupOffsetRequestHeader", who="admin->broker", since="4.0.0"
    ),
    "VIEW_BROKER_STATS_DATA": Operation(
        request_header="ViewBrokerStatsDataRequestHeader",
        response_body="BrokerStatsData",
        who="admin->broker",
        since="4.0.0",
    ),
    "CLEAN_UNUSED_TOPIC": Operation(who="admin->broker", since="4.0.0"),
    "GET_BROKER_CONSUME_STATS": Operation(
        request_header="GetConsumeStatsInBrokerHeader",
        response_body="ConsumeStatsList",
        who="admin->broker",
        since="4.0.0",
    ),
    "QUERY_CONSUME_QUEUE": Operation(
        request_header="QueryConsumeQueueRequestHeader",
        response_body="QueryConsumeQueueResponseBody",
        who="admin->broker",
        since="4.1.0",
    ),
    "RESUME_CHECK_HALF_MESSAGE": Operation(
        request_header="ResumeCheckHalfMessageRequestHeader", who="admin->broker", since="4.5.2"
    ),
    "GET_ALL_PRODUCER_INFO": Operation(
        request_header="GetAllProducerInfoRequestHeader",
        response_body="ProducerTableInfo",
        who="admin->broker",
        since="4.9.4",
        note="the request header is empty",
    ),
    "DELETE_EXPIRED_COMMITLOG": Operation(who="admin->broker", since="4.9.4"),
    "QUERY_TOPICS_BY_CONSUMER": Operation(
        request_header="QueryTopicsByConsumerRequestHeader",
        response_body="TopicList",
        who="admin->broker",
        since="5.0.0",
    ),
    "QUERY_SUBSCRIPTION_BY_CONSUMER": Operation(
        request_header="QuerySubscriptionByConsumerRequestHeader",
        response_body="QuerySubscriptionResponseBody",
        who="admin->broker",
        since="5.0.0",
    ),
    "GET_TOPIC_CONFIG": Operation(
        request_header="GetTopicConfigRequestHeader",
        response_body="TopicConfigAndQueueMapping",
        who="admin->broker",
        since="5.0.0",
    ),
    "GET_SUBSCRIPTIONGROUP_CONFIG": Operation(
        request_header="GetSubscriptionGroupConfigRequestHeader",
        response_body="SubscriptionGroupConfig",
        who="admin->broker",
        since="5.0.0",
    ),
    "UPDATE_AND_GET_GROUP_FORBIDDEN": Operation(
        request_header="UpdateGroupForbiddenRequestHeader",
        response_body="GroupForbidden",
        who="admin->broker",
        since="5.0.0",
    ),
    "CHECK_ROCKSDB_CQ_WRITE_PROGRESS": Operation(
        request_header="CheckRocksdbCqWriteProgressRequestHeader",
        response_body="CheckRocksdbCqWriteResult",
        who="admin->broker",
        since="5.3.1",
    ),
    "EXPORT_ROCKSDB_CONFIG_TO_JSON": Operation(
        request_header="ExportRocksDBConfigToJsonRequestHeader", who="admin->broker", since="5.3.2"
    ),
    "SET_MESSAGE_REQUEST_MODE": Operation(
        request_body="SetMessageRequestModeRequestBody", who="admin->broker", since="5.0.0"
    ),
    "UPDATE_AND_CREATE_STATIC_TOPIC": Operation(
        request_header="CreateTopicRequestHeader",
        request_body="TopicQueueMappingDetail",
        who="admin->broker",
        since="5.0.0",
    ),
    "GET_BROKER_HA_STATUS": Operation(
        response_body="HARuntimeInfo", who="admin->broker", since="5.0.0"
    ),
    "RESET_MASTER_FLUSH_OFFSET": Operation(
        request_header="ResetMasterFlushOffsetHeader", who="admin->broker", since="5.0.0"
    ),
    "GET_BROKER_EPOCH_CACHE": Operation(
        response_body="EpochEntryCache", who="admin->broker", since="5.0.0"
    ),
    "UPDATE_COLD_DATA_FLOW_CTR_CONFIG": Operation(
        request_body="properties-text",
        who="admin->broker",
        since="5.1.2",
        note="consumer group = threshold",
    ),
    "REMOVE_COLD_DATA_FLOW_CTR_CONFIG": Operation(
        request_body="text",
        who="admin->broker",
        since="5.1.2",
        note="the body is the consumer group",
    ),
    "GET_COLD_DATA_FLOW_CTR_INFO": Operation(
        response_body="json-map",
        who="admin->broker",
        since="5.1.2",
        note="runtimeTable, configTable and the thresholds",
    ),
    "SET_COMMITLOG_READ_MODE": Operation(
        who="admin->broker",
        since="5.1.2",
        note="ext field READ_AHEAD_MODE instead of a header class",
    ),
    "AUTH_CREATE_USER": Operation(
        request_header="CreateUserRequestHeader",
        request_body="UserInfo",
        who="admin->broker",
        since="5.3.0",
    ),
    "AUTH_UPDATE_USER": Operation(
        request_header="UpdateUserRequestHeader",
        request_body="UserInfo",
        who="admin->broker",
        since="5.3.0",
    ),
    "AUTH_DELETE_USER": Operation(
        request_header="DeleteUserRequestHeader", who="admin->broker", since="5.3.0"
    ),
    "AUTH_GET_USER": Operation(
        request_header="GetUserRequestHeader",
        response_body="UserInfo",
        who="admin->broker",
        since="5.3.0",
    ),
    "AUTH_LIST_USER": Operation(
        request_header="ListUsersRequestHeader",
        response_body="json-list:UserInfo",
        who="admin->broker",
        since="5.3.0",
    ),
    "AUTH_CREATE_ACL": Operation(
        request_header="CreateAclRequestHeader",
        request_body="AclInfo",
        who="admin->broker",
        since="5.3.0",
    ),
    "AUTH_UPDATE_ACL": Operation(
        request_header="UpdateAclRequestHeader",
        request_body="AclInfo",
        who="admin->broker",
        since="5.3.0",
    ),
    "AUTH_DELETE_ACL": Operation(
        request_header="DeleteAclRequestHeader", who="admin->broker", since="5.3.0"
    ),
    "AUTH_GET_ACL": Operation(
        request_header="GetAclRequestHeader",
        response_body="AclInfo",
        who="admin->broker",
        since="5.3.0",
    ),
    "AUTH_LIST_ACL": Operation(
        request_header="ListAclsRequestHeader",
        response_body="json-list:AclInfo",
        who="admin->broker",
        since="5.3.0",
    ),
    "POP_ROLLBACK": Operation(
        who="admin->broker", since="5.3.2", note="moves POP state from RocksDB back to files"
    ),
    "SWITCH_TIMER_ENGINE": Operation(
        who="admin->broker", since="5.4.0", note="ext field E_T instead of a header class"
    ),
    "DELETE_TOPIC_IN_BROKER_LIST": Operation(
        request_body="json-map", who="admin->broker", since=">5.5.0", note="body: topicList"
    ),
    "DELETE_SUBSCRIPTION_GROUP_LIST": Operation(
        request_body="json-map", who="admin->broker", since=">5.5.0", note="body: groupNameList"
    ),
    "GET_PARENT_TOPIC_INFO": Operation(
        request_header="GetParentTopicInfoRequestHeader",
        response_body="GetParentTopicInfoResponseBody",
        who="admin->broker",
        since="5.5.0",
    ),
}

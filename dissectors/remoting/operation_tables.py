"""What each request code carries, and what each response code means, in numeric order, as text.

`code_names` has both by number. RocketMQ: RequestCode, ResponseCode, RemotingSysResponseCode, and
the processors that use them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..table_text import entries, parts_of


class Operation(NamedTuple):
    """Description of a request code."""

    request_header: str | None = None
    """Java class of the request's ext fields."""
    response_header: str | None = None
    """Java class of the response's ext fields."""
    request_body: str | None = None
    """Java class, or a form: raw-message, batch-messages, properties-text, text, json-list:X, …"""
    response_body: str | None = None
    """As `request_body`, of a successful response."""
    who: str = ""
    """Usual pair, `producer->broker`; brokers also act as clients and the proxy forwards."""
    mode: str = "sync"
    """sync, async, any (sync, async or oneway), oneway, internal; empty for unused codes."""
    since: str = ""
    """First release with the code; `>5.5.0` is in none up to that one."""
    note: str = ""
    """Additional remarks."""


def _operation_of(text: str) -> Operation:
    text, _, note = text.partition("; note ")
    columns, *sides = parts_of(text)
    who, mode, since = ("" if column == "-" else column for column in columns.split(", "))
    carried: dict[str, str] = {}
    for part in sides:
        side, *words = part.split(" ")
        header, *body = ["", *words] if words[0] == "+" else words
        carried[f"{side}_header"] = header
        carried[f"{side}_body"] = body[1] if body else ""
    return Operation(
        carried.get("request_header") or None,
        carried.get("response_header") or None,
        carried.get("request_body") or None,
        carried.get("response_body") or None,
        who,
        mode,
        since,
        note,
    )


# CODE: sender->receiver, mode, since; request HEADER + BODY; response HEADER + BODY; note text
# Absent parts are omitted, `-` is an empty column.
_TABLE: Final = """
# Operations of clients: messages, offsets, POP, and what a broker asks a client
SEND_MESSAGE: producer->broker, any, 4.0.0; request SendMessageRequestHeader + raw-message;
  response SendMessageResponseHeader;
  note long field names, with sendSmartMsg=false; responses add MSG_REGION, TRACE_ON
PULL_MESSAGE: consumer->broker, any, 4.0.0; request PullMessageRequestHeader;
  response PullMessageResponseHeader + stored-messages;
  note held by the broker when sysFlag has SUSPEND
QUERY_CONSUMER_OFFSET: consumer->broker, sync, 4.0.0; request QueryConsumerOffsetRequestHeader;
  response QueryConsumerOffsetResponseHeader; note QUERY_NOT_FOUND when nothing was committed
UPDATE_CONSUMER_OFFSET: consumer->broker, any, 4.0.0; request UpdateConsumerOffsetRequestHeader;
  response UpdateConsumerOffsetResponseHeader;
  note oneway from the periodic task; the response header is empty
SEARCH_OFFSET_BY_TIMESTAMP: client->broker, sync, 4.0.0; request SearchOffsetRequestHeader;
  response SearchOffsetResponseHeader
GET_MAX_OFFSET: client->broker, sync, 4.0.0; request GetMaxOffsetRequestHeader;
  response GetMaxOffsetResponseHeader; note the fault detector of producers probes brokers with it
GET_MIN_OFFSET: client->broker, sync, 4.0.0; request GetMinOffsetRequestHeader;
  response GetMinOffsetResponseHeader
GET_EARLIEST_MSG_STORETIME: client->broker, sync, 4.0.0;
  request GetEarliestMsgStoretimeRequestHeader; response GetEarliestMsgStoretimeResponseHeader
VIEW_MESSAGE_BY_ID: client->broker, sync, 4.0.0; request ViewMessageRequestHeader;
  response + stored-message; note no response header is attached although a class exists
HEART_BEAT: client->broker, any, 4.0.0; request HeartbeatRequestHeader + HeartbeatData;
  note the response adds IS_SUPPORT_HEART_BEAT_V2, IS_SUB_CHANGE
UNREGISTER_CLIENT: client->broker, sync, 4.0.0; request UnregisterClientRequestHeader;
  response UnregisterClientResponseHeader; note the response header is empty
CONSUMER_SEND_MSG_BACK: consumer->broker, sync, 4.0.0; request ConsumerSendMsgBackRequestHeader
END_TRANSACTION: producer->broker, oneway, 4.0.0; request EndTransactionRequestHeader;
  note no response is awaited; the class of one exists and is empty
GET_CONSUMER_LIST_BY_GROUP: consumer->broker, sync, 4.0.0;
  request GetConsumerListByGroupRequestHeader;
  response GetConsumerListByGroupResponseHeader + GetConsumerListByGroupResponseBody;
  note the response header is empty
CHECK_TRANSACTION_STATE: broker->client, oneway, 4.0.0;
  request CheckTransactionStateRequestHeader + stored-message;
  note the answer is an END_TRANSACTION with fromTransactionCheck=true, not a response
NOTIFY_CONSUMER_IDS_CHANGED: broker->client, oneway, 4.0.0;
  request NotifyConsumerIdsChangedRequestHeader
LOCK_BATCH_MQ: consumer->broker, sync, 4.0.0;
  request LockBatchMqRequestHeader + LockBatchRequestBody; response + LockBatchResponseBody;
  note also between brokers for a quorum; the proxy echoes an empty mqSet
UNLOCK_BATCH_MQ: consumer->broker, any, 4.0.0;
  request UnlockBatchMqRequestHeader + UnlockBatchRequestBody
CHECK_CLIENT_CONFIG: consumer->broker, sync, 4.1.0; request + CheckClientRequestBody;
  note at start, for filters other than tags
GET_ROUTEINFO_BY_TOPIC: client->namesrv, sync, 4.7.1; request GetRouteInfoRequestHeader;
  response + TopicRouteData; note TOPIC_NOT_EXIST when there is no route
RESET_CONSUMER_CLIENT_OFFSET: broker->client, oneway, 4.0.0;
  request ResetOffsetRequestHeader + ResetOffsetBody;
  note another body form (ResetOffsetBodyForC) when the admin's language was CPP
GET_CONSUMER_STATUS_FROM_CLIENT: broker->client, sync, 4.0.0;
  request GetConsumerStatusRequestHeader; response + GetConsumerStatusBody;
  note the response fills messageQueueTable
SEND_MESSAGE_V2: producer->broker, any, 4.0.0; request SendMessageRequestHeaderV2 + raw-message;
  response SendMessageResponseHeader; note the usual send; field names a to n
SEND_BATCH_MESSAGE: producer->broker, any, 4.1.0;
  request SendMessageRequestHeaderV2 + batch-messages; response SendMessageResponseHeader;
  note m=true; msgId is a comma-joined list, or one id with batchUniqId
SEND_REPLY_MESSAGE: consumer->broker, any, 4.6.0; request SendMessageRequestHeader + raw-message;
  response SendMessageResponseHeader; note the answer of a request-reply pair, MSG_TYPE=reply
SEND_REPLY_MESSAGE_V2: consumer->broker, any, 4.6.0;
  request SendMessageRequestHeaderV2 + raw-message; response SendMessageResponseHeader;
  note as SEND_REPLY_MESSAGE, field names a to n
PUSH_REPLY_MESSAGE_TO_CLIENT: broker->client, sync, 4.6.0;
  request ReplyMessageRequestHeader + raw-message;
  note hands a reply to the producer that asked; waits up to 10 s
LITE_PULL_MESSAGE: consumer->broker, any, 5.0.0; request PullMessageRequestHeader;
  response PullMessageResponseHeader + stored-messages;
  note PULL_MESSAGE of a lite pull consumer, sysFlag LITE_PULL_MESSAGE
RECALL_MESSAGE: producer->broker, any, 5.3.2; request RecallMessageRequestHeader;
  response RecallMessageResponseHeader; note takes back a timer message by its recall handle
QUERY_ASSIGNMENT: consumer->broker, sync, 5.0.0; request + QueryAssignmentRequestBody;
  response + QueryAssignmentResponseBody
POP_MESSAGE: consumer->broker, any, 5.0.0; request PopMessageRequestHeader;
  response PopMessageResponseHeader + stored-messages
ACK_MESSAGE: consumer->broker, any, 5.0.0; request AckMessageRequestHeader
PEEK_MESSAGE: consumer->broker, any, 5.0.0; request PeekMessageRequestHeader;
  response PopMessageResponseHeader + stored-messages
CHANGE_MESSAGE_INVISIBLETIME: consumer->broker, any, 5.0.0;
  request ChangeInvisibleTimeRequestHeader; response ChangeInvisibleTimeResponseHeader
NOTIFICATION: consumer->broker, any, 5.0.0; request NotificationRequestHeader;
  response NotificationResponseHeader
POLLING_INFO: consumer->broker, any, 5.0.0; request PollingInfoRequestHeader;
  response PollingInfoResponseHeader
BATCH_ACK_MESSAGE: consumer->broker, any, 5.1.3; request + BatchAckMessageRequestBody
POP_LITE_MESSAGE: proxy->broker, async, 5.5.0; request PopLiteMessageRequestHeader;
  response PopLiteMessageResponseHeader + stored-messages;
  note lite consumers speak gRPC, so only the proxy sends it
LITE_SUBSCRIPTION_CTL: proxy->broker, async, 5.5.0;
  request LiteSubscriptionCtlRequestHeader + LiteSubscriptionCtlRequestBody;
  note the broker looks at the body only
NOTIFY_UNSUBSCRIBE_LITE: broker->client, oneway, 5.5.0; request NotifyUnsubscribeLiteRequestHeader
GET_BROKER_LITE_INFO: admin->broker, sync, 5.5.0; response + GetBrokerLiteInfoResponseBody
GET_LITE_TOPIC_INFO: admin->broker, sync, 5.5.0; request GetLiteTopicInfoRequestHeader;
  response + GetLiteTopicInfoResponseBody
GET_LITE_CLIENT_INFO: admin->broker, sync, 5.5.0; request GetLiteClientInfoRequestHeader;
  response + GetLiteClientInfoResponseBody
GET_LITE_GROUP_INFO: admin->broker, sync, 5.5.0; request GetLiteGroupInfoRequestHeader;
  response + GetLiteGroupInfoResponseBody
TRIGGER_LITE_DISPATCH: admin->broker, sync, 5.5.0; request TriggerLiteDispatchRequestHeader
# Operations of administration tools on a broker: topics, groups, statistics, users
QUERY_MESSAGE: admin->broker, async, 4.0.0; request QueryMessageRequestHeader;
  response QueryMessageResponseHeader + stored-messages;
  note ext field _UNIQUE_KEY_QUERY tells a search by UNIQ_KEY from one by KEYS
UPDATE_AND_CREATE_TOPIC: admin->broker, sync, 4.0.0; request CreateTopicRequestHeader
UPDATE_AND_CREATE_TOPIC_LIST: admin->broker, sync, 5.3.0;
  request CreateTopicListRequestHeader + CreateTopicListRequestBody
UPDATE_BROKER_CONFIG: admin->broker, sync, 4.0.0; request + properties-text;
  note broker containers also accept this request
GET_BROKER_CONFIG: admin->broker, sync, 4.0.0;
  response GetBrokerConfigResponseHeader + properties-text;
  note broker containers also accept this request
GET_BROKER_RUNTIME_INFO: admin->broker, sync, 4.0.0; response + KVTable
UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: admin->broker, sync, 4.0.0; request + SubscriptionGroupConfig
GET_TOPIC_STATS_INFO: admin->broker, sync, 4.0.0; request GetTopicStatsInfoRequestHeader;
  response + TopicStatsTable
GET_CONSUMER_CONNECTION_LIST: admin->broker, sync, 4.0.0;
  request GetConsumerConnectionListRequestHeader; response + ConsumerConnection
GET_PRODUCER_CONNECTION_LIST: admin->broker, sync, 4.0.0;
  request GetProducerConnectionListRequestHeader; response + ProducerConnection
DELETE_SUBSCRIPTIONGROUP: admin->broker, sync, 4.0.0; request DeleteSubscriptionGroupRequestHeader;
  note cleanOffset in 5.x, removeOffset in 4.9
GET_CONSUME_STATS: admin->broker, sync, 4.0.0; request GetConsumeStatsRequestHeader;
  response + ConsumeStats
DELETE_TOPIC_IN_BROKER: admin->broker, sync, 4.0.0; request DeleteTopicRequestHeader
INVOKE_BROKER_TO_RESET_OFFSET: admin->broker, sync, 4.0.0; request ResetOffsetRequestHeader;
  response + ResetOffsetBody
INVOKE_BROKER_TO_GET_CONSUMER_STATUS: admin->broker, sync, 4.0.0;
  request GetConsumerStatusRequestHeader; response + GetConsumerStatusBody;
  note the response fills consumerTable
UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: admin->broker, sync, 5.3.1;
  request + SubscriptionGroupList
QUERY_TOPIC_CONSUME_BY_WHO: admin->broker, sync, 4.0.0; request QueryTopicConsumeByWhoRequestHeader;
  response + GroupList
QUERY_CONSUME_TIME_SPAN: admin->broker, sync, 4.0.0; request QueryConsumeTimeSpanRequestHeader;
  response + QueryConsumeTimeSpanBody
GET_SYSTEM_TOPIC_LIST_FROM_BROKER: admin->broker, sync, 4.0.0; response + TopicList
CLEAN_EXPIRED_CONSUMEQUEUE: admin->broker, sync, 4.0.0
GET_CONSUMER_RUNNING_INFO: admin->broker, sync, 4.0.0; request GetConsumerRunningInfoRequestHeader;
  response + ConsumerRunningInfo; note the broker asks the client the same and hands its body on
QUERY_CORRECTION_OFFSET: admin->broker, sync, 4.0.0; request QueryCorrectionOffsetHeader;
  response + QueryCorrectionOffsetBody
CONSUME_MESSAGE_DIRECTLY: admin->broker, sync, 4.0.0;
  request ConsumeMessageDirectlyResultRequestHeader + stored-message;
  response + ConsumeMessageDirectlyResult;
  note the broker asks the client the same, with the message as body
CLONE_GROUP_OFFSET: admin->broker, sync, 4.0.0; request CloneGroupOffsetRequestHeader
VIEW_BROKER_STATS_DATA: admin->broker, sync, 4.0.0; request ViewBrokerStatsDataRequestHeader;
  response + BrokerStatsData
CLEAN_UNUSED_TOPIC: admin->broker, sync, 4.0.0
GET_BROKER_CONSUME_STATS: admin->broker, sync, 4.0.0; request GetConsumeStatsInBrokerHeader;
  response + ConsumeStatsList
QUERY_CONSUME_QUEUE: admin->broker, sync, 4.1.0; request QueryConsumeQueueRequestHeader;
  response + QueryConsumeQueueResponseBody
RESUME_CHECK_HALF_MESSAGE: admin->broker, sync, 4.5.2; request ResumeCheckHalfMessageRequestHeader
GET_ALL_PRODUCER_INFO: admin->broker, sync, 4.9.4; request GetAllProducerInfoRequestHeader;
  response + ProducerTableInfo; note the request header is empty
DELETE_EXPIRED_COMMITLOG: admin->broker, sync, 4.9.4
QUERY_TOPICS_BY_CONSUMER: admin->broker, sync, 5.0.0; request QueryTopicsByConsumerRequestHeader;
  response + TopicList
QUERY_SUBSCRIPTION_BY_CONSUMER: admin->broker, sync, 5.0.0;
  request QuerySubscriptionByConsumerRequestHeader; response + QuerySubscriptionResponseBody
GET_TOPIC_CONFIG: admin->broker, sync, 5.0.0; request GetTopicConfigRequestHeader;
  response + TopicConfigAndQueueMapping
GET_SUBSCRIPTIONGROUP_CONFIG: admin->broker, sync, 5.0.0;
  request GetSubscriptionGroupConfigRequestHeader; response + SubscriptionGroupConfig
UPDATE_AND_GET_GROUP_FORBIDDEN: admin->broker, sync, 5.0.0;
  request UpdateGroupForbiddenRequestHeader; response + GroupForbidden
CHECK_ROCKSDB_CQ_WRITE_PROGRESS: admin->broker, sync, 5.3.1;
  request CheckRocksdbCqWriteProgressRequestHeader; response + CheckRocksdbCqWriteResult
EXPORT_ROCKSDB_CONFIG_TO_JSON: admin->broker, sync, 5.3.2;
  request ExportRocksDBConfigToJsonRequestHeader
SET_MESSAGE_REQUEST_MODE: admin->broker, sync, 5.0.0; request + SetMessageRequestModeRequestBody
UPDATE_AND_CREATE_STATIC_TOPIC: admin->broker, sync, 5.0.0;
  request CreateTopicRequestHeader + TopicQueueMappingDetail
GET_BROKER_HA_STATUS: admin->broker, sync, 5.0.0; response + HARuntimeInfo
RESET_MASTER_FLUSH_OFFSET: admin->broker, sync, 5.0.0; request ResetMasterFlushOffsetHeader
GET_BROKER_EPOCH_CACHE: admin->broker, sync, 5.0.0; response + EpochEntryCache
UPDATE_COLD_DATA_FLOW_CTR_CONFIG: admin->broker, sync, 5.1.2; request + properties-text;
  note consumer group = threshold
REMOVE_COLD_DATA_FLOW_CTR_CONFIG: admin->broker, sync, 5.1.2; request + text;
  note the body is the consumer group
GET_COLD_DATA_FLOW_CTR_INFO: admin->broker, sync, 5.1.2; response + json-map;
  note runtimeTable, configTable and the thresholds
SET_COMMITLOG_READ_MODE: admin->broker, sync, 5.1.2;
  note ext field READ_AHEAD_MODE instead of a header class
AUTH_CREATE_USER: admin->broker, sync, 5.3.0; request CreateUserRequestHeader + UserInfo
AUTH_UPDATE_USER: admin->broker, sync, 5.3.0; request UpdateUserRequestHeader + UserInfo
AUTH_DELETE_USER: admin->broker, sync, 5.3.0; request DeleteUserRequestHeader
AUTH_GET_USER: admin->broker, sync, 5.3.0; request GetUserRequestHeader; response + UserInfo
AUTH_LIST_USER: admin->broker, sync, 5.3.0; request ListUsersRequestHeader;
  response + json-list:UserInfo
AUTH_CREATE_ACL: admin->broker, sync, 5.3.0; request CreateAclRequestHeader + AclInfo
AUTH_UPDATE_ACL: admin->broker, sync, 5.3.0; request UpdateAclRequestHeader + AclInfo
AUTH_DELETE_ACL: admin->broker, sync, 5.3.0; request DeleteAclRequestHeader
AUTH_GET_ACL: admin->broker, sync, 5.3.0; request GetAclRequestHeader; response + AclInfo
AUTH_LIST_ACL: admin->broker, sync, 5.3.0; request ListAclsRequestHeader;
  response + json-list:AclInfo
POP_ROLLBACK: admin->broker, sync, 5.3.2; note moves POP state from RocksDB back to files
SWITCH_TIMER_ENGINE: admin->broker, sync, 5.4.0; note ext field E_T instead of a header class
DELETE_TOPIC_IN_BROKER_LIST: admin->broker, sync, >5.5.0; request + json-map; note body: topicList
DELETE_SUBSCRIPTION_GROUP_LIST: admin->broker, sync, >5.5.0; request + json-map;
  note body: groupNameList
GET_PARENT_TOPIC_INFO: admin->broker, sync, 5.5.0; request GetParentTopicInfoRequestHeader;
  response + GetParentTopicInfoResponseBody
# Operations that keep a cluster together: NameServer, brokers, controller, DLedger
GET_ALL_TOPIC_CONFIG: broker->broker, sync, 4.0.0; request GetAllTopicConfigRequestHeader;
  response GetAllTopicConfigResponseHeader + TopicConfigAndMappingSerializeWrapper;
  note slaves and admin tools; paged by its header since 5.4.0
GET_ALL_CONSUMER_OFFSET: broker->broker, sync, 4.0.0; response + ConsumerOffsetSerializeWrapper;
  note slave to master; the body may have groupTopicMap besides
GET_ALL_DELAY_OFFSET: broker->broker, sync, 4.0.0; response + DelayOffsetSerializeWrapper;
  note slave to master
GET_TIMER_CHECK_POINT: broker->broker, sync, 5.0.0; response + timer-checkpoint;
  note slave to master
GET_TIMER_METRICS: broker->broker, sync, 5.0.0; response + TimerMetricsSerializeWrapper;
  note slave to master
PUT_KV_CONFIG: admin->namesrv, sync, 4.0.0; request PutKVConfigRequestHeader
GET_KV_CONFIG: admin->namesrv, sync, 4.0.0; request GetKVConfigRequestHeader;
  response GetKVConfigResponseHeader
DELETE_KV_CONFIG: admin->namesrv, sync, 4.0.0; request DeleteKVConfigRequestHeader
REGISTER_BROKER: broker->namesrv, any, 4.0.0;
  request RegisterBrokerRequestHeader + RegisterBrokerBody;
  response RegisterBrokerResponseHeader + KVTable;
  note the body may be deflated binary; the response body is the order topic table
UNREGISTER_BROKER: broker->namesrv, sync, 4.0.0; request UnRegisterBrokerRequestHeader
GET_BROKER_CLUSTER_INFO: admin->namesrv, sync, 4.0.0; response + ClusterInfo
GET_ALL_SUBSCRIPTIONGROUP_CONFIG: broker->broker, sync, 4.0.0;
  request GetAllSubscriptionGroupRequestHeader;
  response GetAllSubscriptionGroupResponseHeader + SubscriptionGroupWrapper;
  note slaves and admin tools
WIPE_WRITE_PERM_OF_BROKER: admin->namesrv, sync, 4.0.0; request WipeWritePermOfBrokerRequestHeader;
  response WipeWritePermOfBrokerResponseHeader
GET_ALL_TOPIC_LIST_FROM_NAMESERVER: admin->namesrv, sync, 4.0.0; response + TopicList
DELETE_TOPIC_IN_NAMESRV: admin->namesrv, sync, 4.0.0; request DeleteTopicFromNamesrvRequestHeader
REGISTER_TOPIC_IN_NAMESRV: broker->namesrv, sync, 5.0.0;
  request RegisterTopicRequestHeader + TopicRouteData; note one topic at a time
GET_KVLIST_BY_NAMESPACE: admin->namesrv, sync, 4.0.0; request GetKVListByNamespaceRequestHeader;
  response + KVTable
GET_TOPICS_BY_CLUSTER: admin->namesrv, sync, 4.0.0; request GetTopicsByClusterRequestHeader;
  response + TopicList
GET_SYSTEM_TOPIC_LIST_FROM_NS: admin->namesrv, sync, 4.0.0; response + TopicList
GET_UNIT_TOPIC_LIST: admin->namesrv, sync, 4.0.0; response + TopicList
GET_HAS_UNIT_SUB_TOPIC_LIST: admin->namesrv, sync, 4.0.0; response + TopicList
GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: admin->namesrv, sync, 4.0.0; response + TopicList
UPDATE_NAMESRV_CONFIG: admin->namesrv, sync, 4.0.0; request + properties-text
GET_NAMESRV_CONFIG: admin->namesrv, sync, 4.0.0; response + properties-text
QUERY_DATA_VERSION: broker->namesrv, any, 4.3.0;
  request QueryDataVersionRequestHeader + DataVersion;
  response QueryDataVersionResponseHeader + DataVersion;
  note oneway where it stands in for the light heartbeat
ADD_WRITE_PERM_OF_BROKER: admin->namesrv, sync, 4.9.2; request AddWritePermOfBrokerRequestHeader;
  response AddWritePermOfBrokerResponseHeader
GET_ALL_MESSAGE_REQUEST_MODE: broker->broker, sync, 5.0.0;
  response + MessageRequestModeSerializeWrapper; note slave to master
GET_BROKER_MEMBER_GROUP: broker->namesrv, sync, 5.0.0; request GetBrokerMemberGroupRequestHeader;
  response + GetBrokerMemberGroupResponseBody
ADD_BROKER: admin->container, sync, 5.0.0; request AddBrokerRequestHeader
REMOVE_BROKER: admin->container, sync, 5.0.0; request RemoveBrokerRequestHeader
BROKER_HEARTBEAT: broker->namesrv, oneway, 5.0.0; request BrokerHeartbeatRequestHeader;
  note to the controller as well
NOTIFY_MIN_BROKER_ID_CHANGE: namesrv->broker, oneway, 5.0.0;
  request NotifyMinBrokerIdChangeRequestHeader
EXCHANGE_BROKER_HA_INFO: broker->broker, sync, 5.0.0; request ExchangeHAInfoRequestHeader;
  response ExchangeHAInfoResponseHeader
CONTROLLER_ALTER_SYNC_STATE_SET: broker->controller, sync, 5.0.0;
  request AlterSyncStateSetRequestHeader + SyncStateSet;
  response AlterSyncStateSetResponseHeader + SyncStateSet
CONTROLLER_ELECT_MASTER: broker->controller, sync, 5.0.0; request ElectMasterRequestHeader;
  response ElectMasterResponseHeader + ElectMasterResponseBody; note from admin tools as well
CONTROLLER_REGISTER_BROKER: broker->controller, sync, 5.0.0;
  request RegisterBrokerToControllerRequestHeader;
  response RegisterBrokerToControllerResponseHeader + SyncStateSet
CONTROLLER_GET_REPLICA_INFO: broker->controller, sync, 5.0.0; request GetReplicaInfoRequestHeader;
  response GetReplicaInfoResponseHeader + SyncStateSet
CONTROLLER_GET_METADATA_INFO: broker->controller, sync, 5.0.0; response GetMetaDataResponseHeader;
  note from admin tools as well
CONTROLLER_GET_SYNC_STATE_DATA: admin->controller, sync, 5.0.0; request + json-list:string;
  response + BrokerReplicasInfo; note the request body is a JSON array of broker names
NOTIFY_BROKER_ROLE_CHANGED: controller->broker, oneway, 5.0.0;
  request NotifyBrokerRoleChangedRequestHeader + SyncStateSet
UPDATE_CONTROLLER_CONFIG: admin->controller, sync, 5.0.0; request + properties-text
GET_CONTROLLER_CONFIG: admin->controller, sync, 5.0.0; response + properties-text
CLEAN_BROKER_DATA: admin->controller, sync, 5.0.0; request CleanControllerBrokerDataRequestHeader
CONTROLLER_GET_NEXT_BROKER_ID: broker->controller, sync, 5.1.1;
  request GetNextBrokerIdRequestHeader; response GetNextBrokerIdResponseHeader
CONTROLLER_APPLY_BROKER_ID: broker->controller, sync, 5.1.1; request ApplyBrokerIdRequestHeader;
  response ApplyBrokerIdResponseHeader
BROKER_CLOSE_CHANNEL_REQUEST: controller-internal, internal, 5.2.0;
  request BrokerCloseChannelRequest; response BrokerCloseChannelResponse;
  note entry of the JRaft log
CHECK_NOT_ACTIVE_BROKER_REQUEST: controller-internal, internal, 5.2.0;
  request CheckNotActiveBrokerRequest; response CheckNotActiveBrokerResponse + json-list:json-map;
  note entry of the JRaft log
GET_BROKER_LIVE_INFO_REQUEST: controller-internal, internal, 5.2.0;
  request GetBrokerLiveInfoRequest; response GetBrokerLiveInfoResponse + json-map;
  note entry of the JRaft log
GET_SYNC_STATE_DATA_REQUEST: controller-internal, internal, 5.2.0; request GetSyncStateDataRequest;
  note never used; commands of this class carry code 1006
RAFT_BROKER_HEART_BEAT_EVENT_REQUEST: controller-internal, internal, 5.2.0;
  request RaftBrokerHeartBeatEventRequest; response RaftBrokerHeartBeatEventResponse;
  note entry of the JRaft log
DLEDGER_METADATA: dledger->dledger, sync, 4.5.1; request + json-map; response + json-map
DLEDGER_APPEND: dledger->dledger, sync, 4.5.1; request + json-map; response + json-map;
  note response code 200 whatever the outcome; the outcome is in the body
DLEDGER_GET: dledger->dledger, sync, 4.5.1; request + json-map; response + json-map
DLEDGER_VOTE: dledger->dledger, sync, 4.5.1; request + json-map; response + json-map
DLEDGER_HEART_BEAT: dledger->dledger, sync, 4.5.1; request + json-map; response + json-map
DLEDGER_PULL: dledger->dledger, sync, 4.5.1; request + json-map; response + json-map
DLEDGER_PUSH: dledger->dledger, sync, 4.5.1; request + json-map; response + json-map
DLEDGER_LEADERSHIP_TRANSFER: dledger->dledger, sync, 4.8.0; request + json-map; response + json-map;
  note dledger 0.2.0
DLEDGER_INSTALL_SNAPSHOT: dledger->dledger, sync, dledger 0.4.0; request + json-map;
  response + json-map
DLEDGER_USER_DEFINE_REQUEST: dledger->dledger, sync, dledger 0.4.0; request + json-map;
  response + json-map
# Operations that no current release performs: ACL 1.0, previews, constants without use
QUERY_BROKER_OFFSET: unused, -, 4.0.0; note constant only; nothing sends or handles it
GET_TOPIC_CONFIG_LIST: unused, -, 4.0.0; note constant only; nothing sends or handles it
GET_TOPIC_NAME_LIST: unused, -, 4.0.0; note constant only; nothing sends or handles it
TRIGGER_DELETE_FILES: unused, -, 4.0.0; note constant only; nothing sends or handles it
GET_CLIENT_CONFIG: unused, -, 5.0.0; note constant only; nothing sends or handles it
ACK_LITE_MESSAGE: unused, -, 5.5.0;
  note constant only; a lite message is acknowledged with ACK_MESSAGE and its liteTopic
SUSPEND_CONSUMER: unused, -, 4.0.0; note constant only; nothing sends or handles it
RESUME_CONSUMER: unused, -, 4.0.0; note constant only; nothing sends or handles it
RESET_CONSUMER_OFFSET_IN_CONSUMER: unused, -, 4.0.0; note constant only; nothing sends or handles it
RESET_CONSUMER_OFFSET_IN_BROKER: unused, -, 4.0.0; note constant only; nothing sends or handles it
ADJUST_CONSUMER_THREAD_POOL: unused, -, 4.0.0; note constant only; nothing sends or handles it
WHO_CONSUME_THE_MESSAGE: unused, -, 4.0.0; note constant only; nothing sends or handles it
REGISTER_FILTER_SERVER: filtersrv->broker, sync, 4.0.0; request RegisterFilterServerRequestHeader;
  response RegisterFilterServerResponseHeader; note 4.0 to 4.2; the constant is still there
REGISTER_MESSAGE_FILTER_CLASS: consumer->filtersrv, sync, 4.0.0;
  request RegisterMessageFilterClassRequestHeader + text;
  note 4.0 to 4.2, body: Java source text; the constant is still there
UPDATE_AND_CREATE_ACL_CONFIG: admin->broker, sync, 4.5.2; request CreateAccessConfigRequestHeader;
  note ACL 1.0, up to 5.3.2
DELETE_ACL_CONFIG: admin->broker, sync, 4.5.2; request DeleteAccessConfigRequestHeader;
  note ACL 1.0, up to 5.3.2
GET_BROKER_CLUSTER_ACL_INFO: admin->broker, sync, 4.5.2; response GetBrokerAclConfigResponseHeader;
  note ACL 1.0, up to 5.3.2
UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: admin->broker, sync, 4.5.2;
  request UpdateGlobalWhiteAddrsConfigRequestHeader; note ACL 1.0, up to 5.3.2
GET_BROKER_CLUSTER_ACL_CONFIG: admin->broker, sync, 4.6.0;
  response GetBrokerClusterAclConfigResponseHeader + GetBrokerClusterAclConfigResponseBody;
  note ACL 1.0, up to 5.3.2
UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING: admin->broker, sync, 5.0.0-PREVIEW; request + json-map
QUERY_TOPIC_LOGICAL_QUEUE_MAPPING: admin->broker, sync, 5.0.0-PREVIEW;
  request QueryTopicLogicalQueueMappingRequestHeader; response + json-map
SEAL_TOPIC_LOGICAL_QUEUE: admin->broker, sync, 5.0.0-PREVIEW; request + json-map;
  response + json-map
REUSE_TOPIC_LOGICAL_QUEUE: admin->broker, sync, 5.0.0-PREVIEW; request + json-map;
  response + json-map
CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE: admin->broker, sync, 5.0.0-PREVIEW; request + json-map;
  response + json-map
MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE: admin->broker, sync, 5.0.0-PREVIEW; request + json-map;
  response + json-map
MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT: admin->broker, sync, 5.0.0-PREVIEW; request + json-map;
  response + json-map
MIGRATE_TOPIC_LOGICAL_QUEUE_NOTIFY: admin->broker, sync, 5.0.0-PREVIEW; request + json-map;
  response + json-map
DELETE_TOPIC_LOGICAL_QUEUE_MAPPING: admin->broker, sync, 5.0.0-PREVIEW;
  request DeleteTopicLogicalQueueRequestHeader
"""
OPERATION_ROWS: Final = {code: _operation_of(text) for code, text in entries(_TABLE)}
"""request code by name → its operation"""


class Response(NamedTuple):
    """Description of a response code."""

    meaning: str
    """Meaning; begins with `unused` if no release sends it."""
    since: str
    """First release with the code."""
    remarks: tuple[str, ...]
    """Its remarks, if they are constant."""


def _response_of(text: str) -> Response:
    since, _, rest = text.partition(", ")
    meaning, *remarks = rest.split(" | ")
    return Response(meaning, since, tuple(remarks))


# NAME: first release, meaning | remark | ...; removed codes are in `codes.FORMER_RESPONSES`
_RESPONSES: Final = """
# set by a client that got no response
RPC_TIME_OUT: 5.0.0, no response in time; made up by the caller, never sent
RPC_SEND_TO_CHANNEL_FAILED: 5.0.0, the request could not be written; made up by the caller, never
  sent
RPC_ADDR_IS_NULL: 5.0.0, the broker's address is not known; made up by the caller, never sent
RPC_UNKNOWN: 5.0.0, any other failure; made up by the caller, never sent
# any request
SUCCESS: 4.0.0, done
SYSTEM_ERROR: 4.0.0, failed for the reason in the remark | AclException: No accessKey is
  configured | AclException: Check signature failed for accessKey=
SYSTEM_BUSY: 4.0.0, refused without an attempt; the remark names the full queue or limit |
  [TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while
REQUEST_CODE_NOT_SUPPORTED: 4.0.0, the responder has no processor for this request code
TRANSACTION_FAILED: 4.0.0, unused: constant only
# messages and topics
FLUSH_DISK_TIMEOUT: 4.0.0, stored, but not on disk in time (synchronous flush)
SLAVE_NOT_AVAILABLE: 4.0.0, stored, but there is no slave, or it is too far behind
FLUSH_SLAVE_TIMEOUT: 4.0.0, stored, but not at the slave in time (synchronous master)
MESSAGE_ILLEGAL: 4.0.0, not stored: topic, body, properties or delay break a limit
SERVICE_NOT_AVAILABLE: 4.0.0, not stored: disk full, a slave, or shutting down | the broker's disk
  is full, messages are put to the slave, message store has been shut down
VERSION_NOT_SUPPORTED: 4.0.0, the proxy needs bname, which older clients do not send
NO_PERMISSION: 4.0.0, permission of the broker, topic or group, or access control | sending
  message is forbidden | check signature failed | User: is not found
TOPIC_NOT_EXIST: 4.0.0, no route at the NameServer, or no such topic at the broker | No topic
  route info in name server for the topic | topic not exist, apply first please!
TOPIC_EXIST_ALREADY: 4.0.0, unused: constant only
# reading
PULL_NOT_FOUND: 4.0.0, no new message; the end of a long poll that found nothing
PULL_RETRY_IMMEDIATELY: 4.0.0, nothing that matches here: pull again from the new offset
PULL_OFFSET_MOVED: 4.0.0, the offset is not in the queue: go on at the one given
QUERY_NOT_FOUND: 4.0.0, nothing stored for this key, group or queue
SUBSCRIPTION_PARSE_FAILED: 4.0.0, the filter expression does not parse
SUBSCRIPTION_NOT_EXIST: 4.0.0, no heartbeat told the broker of this subscription yet
SUBSCRIPTION_NOT_LATEST: 4.0.0, the broker has an older version of the subscription than the request
SUBSCRIPTION_GROUP_NOT_EXIST: 4.0.0, no such consumer group, and it is not created
FILTER_DATA_NOT_EXIST: 4.1.0, no compiled filter for this group and topic
FILTER_DATA_NOT_LATEST: 4.1.0, the compiled filter is older than the request
INVALID_PARAMETER: 5.3.2, a field has a value that cannot be
# transactions, consumers
TRANSACTION_SHOULD_COMMIT: 4.0.0, unused: constant only
TRANSACTION_SHOULD_ROLLBACK: 4.0.0, unused: constant only
TRANSACTION_STATE_UNKNOW: 4.0.0, unused: constant only
TRANSACTION_STATE_GROUP_WRONG: 4.0.0, unused: constant only
NO_BUYER_ID: 4.0.0, unused by Apache brokers; a producer tries another broker
NOT_IN_CURRENT_UNIT: 4.0.0, unused by Apache brokers; a producer tries another broker
CONSUMER_NOT_ONLINE: 4.0.0, no member of the consumer group is connected
CONSUME_MSG_TIMEOUT: 4.0.0, the client did not answer the broker in time
NO_MESSAGE: 4.0.0, no message at this offset, as a response to an acknowledgement
# POP, containers, static topics
POLLING_FULL: 5.0.0, the broker holds too many long polls already
POLLING_TIMEOUT: 5.0.0, a POP long poll ended without a message
BROKER_NOT_EXIST: 5.0.0, no such broker in this container
BROKER_DISPATCH_NOT_COMPLETE: 5.0.0, unused: constant only
BROADCAST_CONSUMPTION: 5.0.0, the group broadcasts, so it has no common state
FLOW_CONTROL: 4.9.5, unused by Apache brokers; a consumer pulls later
NOT_LEADER_FOR_QUEUE: 5.0.0, the logical queue is at another broker now
ILLEGAL_OPERATION: 5.1.1, the message's state or kind does not allow it
GO_AWAY: 5.2.0, the responder shuts down: reconnect and ask again
# controller
CONTROLLER_FENCED_MASTER_EPOCH: 5.0.0, from a master of an earlier epoch
CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH: 5.0.0, from an earlier in-sync set
CONTROLLER_INVALID_MASTER: 5.0.0, the sender is not the master
CONTROLLER_INVALID_REPLICAS: 5.0.0, an in-sync replica is not known
CONTROLLER_MASTER_NOT_AVAILABLE: 5.0.0, the old master is gone, no new one
CONTROLLER_INVALID_REQUEST: 5.0.0, a heartbeat without broker id
CONTROLLER_BROKER_NOT_ALIVE: 5.0.0, an in-sync replica sends no heartbeats
CONTROLLER_NOT_LEADER: 5.0.0, this controller is not the leader: ask it
CONTROLLER_BROKER_METADATA_NOT_EXIST: 5.0.0, no such broker group
CONTROLLER_INVALID_CLEAN_BROKER_METADATA: 5.0.0, the broker to be forgotten is alive or not known
CONTROLLER_BROKER_NEED_TO_BE_REGISTERED: 5.1.1, the broker must register first
CONTROLLER_MASTER_STILL_EXIST: 5.1.1, no election: the master is alive
CONTROLLER_ELECT_MASTER_FAILED: 5.1.1, no broker could become master
CONTROLLER_ALTER_SYNC_STATE_SET_FAILED: 5.1.1, the in-sync set stays: group not known, or the
  change has no master in it
CONTROLLER_BROKER_ID_INVALID: 5.1.1, the broker id is taken or not next
CONTROLLER_JRAFT_INTERNAL_ERROR: 5.2.0, the Raft log refused the entry
CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS: 5.2.0, no heartbeat known of it
# lite topics, access control
LMQ_QUOTA_EXCEEDED: 5.5.0, not stored: too many light queues
LITE_SUBSCRIPTION_QUOTA_EXCEEDED: 5.5.0, too many lite subscriptions
USER_NOT_EXIST: 5.3.0, unused: constant only
POLICY_NOT_EXIST: 5.3.0, unused: constant only
"""
RESPONSE_ROWS: Final = {name: _response_of(text) for name, text in entries(_RESPONSES)}

FORMER_MEANINGS: dict[str, str] = {
    "ASYNC_AND_RETURN_NULL": "no response yet; inside a broker, never sent",
    "UPDATE_AND_CREATE_ACL_CONFIG_FAILED": "to requests 50 to 54: the account was not stored",
    "DELETE_ACL_CONFIG_FAILED": "to requests 50 to 54: the account was not deleted",
    "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED": "to requests 50 to 54: the list was not stored",
    "CONTROLLER_ALTER_SYNC_STATE_SET_FAILED": "the in-sync set stays; 2013 since 5.1.1",
    "CONTROLLER_ELECT_MASTER_FAILED": "no broker could become master; 2012 since 5.1.1",
    "CONTROLLER_REGISTER_BROKER_FAILED": "the broker was not registered",
}
"""Meanings of removed responses, by constant name."""

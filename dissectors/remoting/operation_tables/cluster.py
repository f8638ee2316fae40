"""Operations that keep a cluster together: NameServer, brokers, controller, DLedger.

Rows in the order of the codes; the columns are those of `Operation`.
"""

from __future__ import annotations

from .operation import Operation

CLUSTER_OPERATIONS: dict[str, Operation] = {
    "GET_ALL_TOPIC_CONFIG": Operation(
        request_header="GetAllTopicConfigRequestHeader",
        response_header="GetAllTopicConfigResponseHeader",
        response_body="TopicConfigAndMappingSerializeWrapper",
        who="broker->broker",
        since="4.0.0",
        note="slaves and admin tools; paged by its header since 5.4.0",
    ),
    "GET_ALL_CONSUMER_OFFSET": Operation(
        response_body="ConsumerOffsetSerializeWrapper",
        who="broker->broker",
        since="4.0.0",
        note="slave to master; the body may have groupTopicMap besides",
    ),
    "GET_ALL_DELAY_OFFSET": Operation(
        response_body="DelayOffsetSerializeWrapper",
        who="broker->broker",
        since="4.0.0",
        note="slave to master",
    ),
    "GET_TIMER_CHECK_POINT": Operation(
        response_body="timer-checkpoint",
        who="broker->broker",
        since="5.0.0",
        note="slave to master",
    ),
    "GET_TIMER_METRICS": Operation(
        response_body="TimerMetricsSerializeWrapper",
        who="broker->broker",
        since="5.0.0",
        note="slave to master",
    ),
    "PUT_KV_CONFIG": Operation(
        request_header="PutKVConfigRequestHeader", who="admin->namesrv", since="4.0.0"
    ),
    "GET_KV_CONFIG": Operation(
        request_header="GetKVConfigRequestHeader",
        response_header="GetKVConfigResponseHeader",
        who="admin->namesrv",
        since="4.0.0",
    ),
    "DELETE_KV_CONFIG": Operation(
        request_header="DeleteKVConfigRequestHeader", who="admin->namesrv", since="4.0.0"
    ),
    "REGISTER_BROKER": Operation(
        request_header="RegisterBrokerRequestHeader",
        response_header="RegisterBrokerResponseHeader",
        request_body="RegisterBrokerBody",
        response_body="KVTable",
        who="broker->namesrv",
        mode="any",
        since="4.0.0",
        note="the body may be deflated binary; the response body is the order topic table",
    ),
    "UNREGISTER_BROKER": Operation(
        request_header="UnRegisterBrokerRequestHeader", who="broker->namesrv", since="4.0.0"
    ),
    "GET_BROKER_CLUSTER_INFO": Operation(
        response_body="ClusterInfo", who="admin->namesrv", since="4.0.0"
    ),
    "GET_ALL_SUBSCRIPTIONGROUP_CONFIG": Operation(
        request_header="GetAllSubscriptionGroupRequestHeader",
        response_header="GetAllSubscriptionGroupResponseHeader",
        response_body="SubscriptionGroupWrapper",
        who="broker->broker",
        since="4.0.0",
        note="slaves and admin tools",
    ),
    "WIPE_WRITE_PERM_OF_BROKER": Operation(
        request_header="WipeWritePermOfBrokerRequestHeader",
        response_header="WipeWritePermOfBrokerResponseHeader",
        who="admin->namesrv",
        since="4.0.0",
    ),
    "GET_ALL_TOPIC_LIST_FROM_NAMESERVER": Operation(
        response_body="TopicList", who="admin->namesrv", since="4.0.0"
    ),
    "DELETE_TOPIC_IN_NAMESRV": Operation(
        request_header="DeleteTopicFromNamesrvRequestHeader", who="admin->namesrv", since="4.0.0"
    ),
    "REGISTER_TOPIC_IN_NAMESRV": Operation(
        request_header="RegisterTopicRequestHeader",
        request_body="TopicRouteData",
        who="broker->namesrv",
        since="5.0.0",
        note="one topic at a time",
    ),
    "GET_KVLIST_BY_NAMESPACE": Operation(
        request_header="GetKVListByNamespaceRequestHeader",
        response_body="KVTable",
        who="admin->namesrv",
        since="4.0.0",
    ),
    "GET_TOPICS_BY_CLUSTER": Operation(
        request_header="GetTopicsByClusterRequestHeader",
        response_body="TopicList",
        who="admin->namesrv",
        since="4.0.0",
    ),
    "GET_SYSTEM_TOPIC_LIST_FROM_NS": Operation(
        response_body="TopicList", who="admin->namesrv", since="4.0.0"
    ),
    "GET_UNIT_TOPIC_LIST": Operation(
        response_body="TopicList", who="admin->namesrv", since="4.0.0"
    ),
    "GET_HAS_UNIT_SUB_TOPIC_LIST": Operation(
        response_body="TopicList", who="admin->namesrv", since="4.0.0"
    ),
    "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST": Operation(
        response_body="TopicList", who="admin->namesrv", since="4.0.0"
    ),
    "UPDATE_NAMESRV_CONFIG": Operation(
        request_body="properties-text", who="admin->namesrv", since="4.0.0"
    ),
    "GET_NAMESRV_CONFIG": Operation(
        response_body="properties-text", who="admin->namesrv", since="4.0.0"
    ),
    "QUERY_DATA_VERSION": Operation(
        request_header="QueryDataVersionRequestHeader",
        response_header="QueryDataVersionResponseHeader",
        request_body="DataVersion",
        response_body="DataVersion",
        who="broker->namesrv",
        mode="any",
        since="4.3.0",
        note="oneway where it stands in for the light heartbeat",
    ),
    "ADD_WRITE_PERM_OF_BROKER": Operation(
        request_header="AddWritePermOfBrokerRequestHeader",
        response_header="AddWritePermOfBrokerResponseHeader",
        who="admin->namesrv",
        since="4.9.2",
    ),
    "GET_ALL_MESSAGE_REQUEST_MODE": Operation(
        response_body="MessageRequestModeSerializeWrapper",
        who="broker->broker",
        since="5.0.0",
        note="slave to master",
    ),
    "GET_BROKER_MEMBER_GROUP": Operation(
        request_header="GetBrokerMemberGroupRequestHeader",
        response_body="GetBrokerMemberGroupResponseBody",
        who="broker->namesrv",
        since="5.0.0",
    ),
    "ADD_BROKER": Operation(
        request_header="AddBrokerRequestHeader", who="admin->container", since="5.0.0"
    ),
    "REMOVE_BROKER": Operation(
        request_header="RemoveBrokerRequestHeader", who="admin->container", since="5.0.0"
    ),
    "BROKER_HEARTBEAT": Operation(
        request_header="BrokerHeartbeatRequestHeader",
        who="broker->namesrv",
        mode="oneway",
        since="5.0.0",
        note="to the controller as well",
    ),
    "NOTIFY_MIN_BROKER_ID_CHANGE": Operation(
        request_header="NotifyMinBrokerIdChangeRequestHeader",
        who="namesrv->broker",
        mode="oneway",
        since="5.0.0",
    ),
    "EXCHANGE_BROKER_HA_INFO": Operation(
        request_header="ExchangeHAInfoRequestHeader",
        response_header="ExchangeHAInfoResponseHeader",
        who="broker->broker",
        since="5.0.0",
    ),
    "CONTROLLER_ALTER_SYNC_STATE_SET": Operation(
        request_header="AlterSyncStateSetRequestHeader",
        response_header="AlterSyncStateSetResponseHeader",
        request_body="SyncStateSet",
        response_body="SyncStateSet",
        who="broker->controller",
        since="5.0.0",
    ),
    "CONTROLLER_ELECT_MASTER": Operation(
        request_header="ElectMasterRequestHeader",
        response_header="ElectMasterResponseHeader",
        response_body="ElectMasterResponseBody",
        who="broker->controller",
        since="5.0.0",
        note="from admin tools as well",
    ),
    "CONTROLLER_REGISTER_BROKER": Operation(
        request_header="RegisterBrokerToControllerRequestHeader",
        response_header="RegisterBrokerToControllerResponseHeader",
        response_body="SyncStateSet",
        who="broker->controller",
        since="5.0.0",
    ),
    "CONTROLLER_GET_REPLICA_INFO": Operation(
        request_header="GetReplicaInfoRequestHeader",
        response_header="GetReplicaInfoResponseHeader",
        response_body="SyncStateSet",
        who="broker->controller",
        since="5.0.0",
    ),
    "CONTROLLER_GET_METADATA_INFO": Operation(
        response_header="GetMetaDataResponseHeader",
        who="broker->controller",
        since="5.0.0",
        note="from admin tools as well",
    ),
    "CONTROLLER_GET_SYNC_STATE_DATA": Operation(
        request_body="json-list:string",
        response_body="BrokerReplicasInfo",
        who="admin->controller",
        since="5.0.0",
        note="the request body is a JSON array of broker names",
    ),
    "NOTIFY_BROKER_ROLE_CHANGED": Operation(
        request_header="NotifyBrokerRoleChangedRequestHeader",
        request_body="SyncStateSet",
        who="controller->broker",
        mode="oneway",
        since="5.0.0",
    ),
    "UPDATE_CONTROLLER_CONFIG": Operation(
        request_body="properties-text", who="admin->controller", since="5.0.0"
    ),
    "GET_CONTROLLER_CONFIG": Operation(
        response_body="properties-text", who="admin->controller", since="5.0.0"
    ),
    "CLEAN_BROKER_DATA": Operation(
        request_header="CleanControllerBrokerDataRequestHeader",
        who="admin->controller",
        since="5.0.0",
    ),
    "CONTROLLER_GET_NEXT_BROKER_ID": Operation(
        request_header="GetNextBrokerIdRequestHeader",
        response_header="GetNextBrokerIdResponseHeader",
        who="broker->controller",
        since="5.1.1",
    ),
    "CONTROLLER_APPLY_BROKER_ID": Operation(
        request_header="ApplyBrokerIdRequestHeader",
        response_header="ApplyBrokerIdResponseHeader",
        who="broker->controller",
        since="5.1.1",
    ),
    "BROKER_CLOSE_CHANNEL_REQUEST": Operation(
        request_header="BrokerCloseChannelRequest",
        response_header="BrokerCloseChannelResponse",
        who="controller-internal",
        mode="internal",
        since="5.2.0",
        note="entry of the JRaft log",
    ),
    "CHECK_NOT_ACTIVE_BROKER_REQUEST": Operation(
        request_header="CheckNotActiveBrokerRequest",
        response_header="CheckNotActiveBrokerResponse",
        response_body="json-list:json-map",
        who="controller-internal",
        mode="internal",
        since="5.2.0",
        note="entry of the JRaft log",
    ),
    "GET_BROKER_LIVE_INFO_REQUEST": Operation(
        request_header="GetBrokerLiveInfoRequest",
        response_header="GetBrokerLiveInfoResponse",
        response_body="json-map",
        who="controller-internal",
        mode="internal",
        since="5.2.0",
        note="entry of the JRaft log",
    ),
    "GET_SYNC_STATE_DATA_REQUEST": Operation(
        request_header="GetSyncStateDataRequest",
        who="controller-internal",
        mode="internal",
        since="5.2.0",
        note="never used; commands of this class carry code 1006",
    ),
    "RAFT_BROKER_HEART_BEAT_EVENT_REQUEST": Operation(
        request_header="RaftBrokerHeartBeatEventRequest",
        response_header="RaftBrokerHeartBeatEventResponse",
        who="controller-internal",
        mode="internal",
        since="5.2.0",
        note="entry of the JRaft log",
    ),
    "DLEDGER_METADATA": Operation(
        request_body="json-map", response_body="json-map", who="dledger->dledger", since="4.5.1"
    ),
    "DLEDGER_APPEND": Operation(
        request_body="json-map",
        response_body="json-map",
        who="dledger->dledger",
        since="4.5.1",
        note="answer code 200 whatever the outcome; the outcome is in the body",
    ),
    "DLEDGER_GET": Operation(
        request_body="json-map", response_body="json-map", who="dledger->dledger", since="4.5.1"
    ),
    "DLEDGER_VOTE": Operation(
        request_body="json-map", response_body="json-map", who="dledger->dledger", since="4.5.1"
    ),
    "DLEDGER_HEART_BEAT": Operation(
        request_body="json-map", response_body="json-map", who="dledger->dledger", since="4.5.1"
    ),
    "DLEDGER_PULL": Operation(
        request_body="json-map", response_body="json-map", who="dledger->dledger", since="4.5.1"
    ),
    "DLEDGER_PUSH": Operation(
        request_body="json-map", response_body="json-map", who="dledger->dledger", since="4.5.1"
    ),
    "DLEDGER_LEADERSHIP_TRANSFER": Operation(
        request_body="json-map",
        response_body="json-map",
        who="dledger->dledger",
        since="4.8.0",
        note="dledger 0.2.0",
    ),
    "DLEDGER_INSTALL_SNAPSHOT": Operation(
        request_body="json-map",
        response_body="json-map",
        who="dledger->dledger",
        since="dledger 0.4.0",
    ),
    "DLEDGER_USER_DEFINE_REQUEST": Operation(
        request_body="json-map",
        response_body="json-map",
        who="dledger->dledger",
        since="dledger 0.4.0",
    ),
}

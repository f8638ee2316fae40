"""Operations that no current release performs: ACL 1.0, previews, constants without use.

Rows in the order of the codes; the columns are those of `Operation`.
"""

from __future__ import annotations

from .operation import Operation

FORMER_OPERATIONS: dict[str, Operation] = {
    "QUERY_BROKER_OFFSET": Operation(
        who="unused", mode="", since="4.0.0", note="constant only; nothing sends or handles it"
    ),
    "GET_TOPIC_CONFIG_LIST": Operation(
        who="unused", mode="", since="4.0.0", note="constant only; nothing sends or handles it"
    ),
    "GET_TOPIC_NAME_LIST": Operation(
        who="unused", mode="", since="4.0.0", note="constant only; nothing sends or handles it"
    ),
    "TRIGGER_DELETE_FILES": Operation(
        who="unused", mode="", since="4.0.0", note="constant only; nothing sends or handles it"
    ),
    "GET_CLIENT_CONFIG": Operation(
        who="unused", mode="", since="5.0.0", note="constant only; nothing sends or handles it"
    ),
    "ACK_LITE_MESSAGE": Operation(
        who="unused",
        mode="",
        since="5.5.0",
        note="constant only; a lite message is acknowledged with ACK_MESSAGE and its liteTopic",
    ),
    "SUSPEND_CONSUMER": Operation(
        who="unused", mode="", since="4.0.0", note="constant only; nothing sends or handles it"
    ),
    "RESUME_CONSUMER": Operation(
        who="unused", mode="", since="4.0.0", note="constant only; nothing sends or handles it"
    ),
    "RESET_CONSUMER_OFFSET_IN_CONSUMER": Operation(
        who="unused", mode="", since="4.0.0", note="constant only; nothing sends or handles it"
    ),
    "RESET_CONSUMER_OFFSET_IN_BROKER": Operation(
        who="unused", mode="", since="4.0.0", note="constant only; nothing sends or handles it"
    ),
    "ADJUST_CONSUMER_THREAD_POOL": Operation(
        who="unused", mode="", since="4.0.0", note="constant only; nothing sends or handles it"
    ),
    "WHO_CONSUME_THE_MESSAGE": Operation(
        who="unused", mode="", since="4.0.0", note="constant only; nothing sends or handles it"
    ),
    "REGISTER_FILTER_SERVER": Operation(
        request_header="RegisterFilterServerRequestHeader",
        response_header="RegisterFilterServerResponseHeader",
        who="filtersrv->broker",
        since="4.0.0",
        note="4.0 to 4.2; the constant is still there",
    ),
    "REGISTER_MESSAGE_FILTER_CLASS": Operation(
        request_header="RegisterMessageFilterClassRequestHeader",
        request_body="text",
        who="consumer->filtersrv",
        since="4.0.0",
        note="4.0 to 4.2, body: Java source text; the constant is still there",
    ),
    "UPDATE_AND_CREATE_ACL_CONFIG": Operation(
        request_header="CreateAccessConfigRequestHeader",
        who="admin->broker",
        since="4.5.2",
        note="ACL 1.0, up to 5.3.2",
    ),
    "DELETE_ACL_CONFIG": Operation(
        request_header="DeleteAccessConfigRequestHeader",
        who="admin->broker",
        since="4.5.2",
        note="ACL 1.0, up to 5.3.2",
    ),
    "GET_BROKER_CLUSTER_ACL_INFO": Operation(
        response_header="GetBrokerAclConfigResponseHeader",
        who="admin->broker",
        since="4.5.2",
        note="ACL 1.0, up to 5.3.2",
    ),
    "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG": Operation(
        request_header="UpdateGlobalWhiteAddrsConfigRequestHeader",
        who="admin->broker",
        since="4.5.2",
        note="ACL 1.0, up to 5.3.2",
    ),
    "GET_BROKER_CLUSTER_ACL_CONFIG": Operation(
        response_header="GetBrokerClusterAclConfigResponseHeader",
        response_body="GetBrokerClusterAclConfigResponseBody",
        who="admin->broker",
        since="4.6.0",
        note="ACL 1.0, up to 5.3.2",
    ),
    "UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING": Operation(
        request_body="json-map", who="admin->broker", since="5.0.0-PREVIEW"
    ),
    "QUERY_TOPIC_LOGICAL_QUEUE_MAPPING": Operation(
        request_header="QueryTopicLogicalQueueMappingRequestHeader",
        response_body="json-map",
        who="admin->broker",
        since="5.0.0-PREVIEW",
    ),
    "SEAL_TOPIC_LOGICAL_QUEUE": Operation(
        request_body="json-map",
        response_body="json-map",
        who="admin->broker",
        since="5.0.0-PREVIEW",
    ),
    "REUSE_TOPIC_LOGICAL_QUEUE": Operation(
        request_body="json-map",
        response_body="json-map",
        who="admin->broker",
        since="5.0.0-PREVIEW",
    ),
    "CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE": Operation(
        request_body="json-map",
        response_body="json-map",
        who="admin->broker",
        since="5.0.0-PREVIEW",
    ),
    "MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE": Operation(
        request_body="json-map",
        response_body="json-map",
        who="admin->broker",
        since="5.0.0-PREVIEW",
    ),
    "MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT": Operation(
        request_body="json-map",
        response_body="json-map",
        who="admin->broker",
        since="5.0.0-PREVIEW",
    ),
    "MIGRATE_TOPIC_LOGICAL_QUEUE_NOTIFY": Operation(
        request_body="json-map",
        response_body="json-map",
        who="admin->broker",
        since="5.0.0-PREVIEW",
    ),
    "DELETE_TOPIC_LOGICAL_QUEUE_MAPPING": Operation(
        request_header="DeleteTopicLogicalQueueRequestHeader",
        who="admin->broker",
        since="5.0.0-PREVIEW",
    ),
}

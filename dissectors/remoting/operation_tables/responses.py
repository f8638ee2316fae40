"""Meanings of response codes, and their first releases.

One row per constant, in numeric order; `code_names.RESPONSES` has them by number. Removed codes are
in `codes.FORMER_RESPONSES`. RocketMQ: ResponseCode, RemotingSysResponseCode, and the processors
that use them.
"""

from __future__ import annotations

from typing import NamedTuple


class Response(NamedTuple):
    """Description of a response code."""

    meaning: str
    """Meaning; begins with `unused` if no release sends it."""
    since: str = "4.0.0"
    """First release with the code."""
    remarks: tuple[str, ...] = ()
    """Its remarks, if they are constant."""


RESPONSE_ROWS: dict[str, Response] = {
    # set by a client that got no response
    "RPC_TIME_OUT": Response("no response in time; made up by the caller, never sent", "5.0.0"),
    "RPC_SEND_TO_CHANNEL_FAILED": Response(
        "the request could not be written; made up by the caller, never sent", "5.0.0"
    ),
    "RPC_ADDR_IS_NULL": Response(
        "the broker's address is not known; made up by the caller, never sent", "5.0.0"
    ),
    "RPC_UNKNOWN": Response("any other failure; made up by the caller, never sent", "5.0.0"),
    # any request
    "SUCCESS": Response("done"),
    "SYSTEM_ERROR": Response(
        "failed for the reason in the remark",
        remarks=(
            "AclException: No accessKey is configured",
            "AclException: Check signature failed for accessKey=",
        ),
    ),
    "SYSTEM_BUSY": Response(
        "refused without an attempt; the remark names the full queue or limit",
        remarks=("[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while",),
    ),
    "REQUEST_CODE_NOT_SUPPORTED": Response("the responder has no processor for this request code"),
    "TRANSACTION_FAILED": Response("unused: constant only"),
    # messages and topics
    "FLUSH_DISK_TIMEOUT": Response("stored, but not on disk in time (synchronous flush)"),
    "SLAVE_NOT_AVAILABLE": Response("stored, but there is no slave, or it is too far behind"),
    "FLUSH_SLAVE_TIMEOUT": Response("stored, but not at the slave in time (synchronous master)"),
    "MESSAGE_ILLEGAL": Response("not stored: topic, body, properties or delay break a limit"),
    "SERVICE_NOT_AVAILABLE": Response(
        "not stored: disk full, a slave, or shutting down",
        remarks=(
            "the broker's disk is full, messages are put to the slave, message store has been"
            " shut down",
        ),
    ),
    "VERSION_NOT_SUPPORTED": Response("the proxy needs bname, which older clients do not send"),
    "NO_PERMISSION": Response(
        "permission of the broker, topic or group, or access control",
        remarks=("sending message is forbidden", "check signature failed", "User: is not found"),
    ),
    "TOPIC_NOT_EXIST": Response(
        "no route at the NameServer, or no such topic at the broker",
        remarks=(
            "No topic route info in name server for the topic",
            "topic not exist, apply first please!",
        ),
    ),
    "TOPIC_EXIST_ALREADY": Response("unused: constant only"),
    # reading
    "PULL_NOT_FOUND": Response("no new message; the end of a long poll that found nothing"),
    "PULL_RETRY_IMMEDIATELY": Response("nothing that matches here: pull again from the new offset"),
    "PULL_OFFSET_MOVED": Response("the offset is not in the queue: go on at the one given"),
    "QUERY_NOT_FOUND": Response("nothing stored for this key, group or queue"),
    "SUBSCRIPTION_PARSE_FAILED": Response("the filter expression does not parse"),
    "SUBSCRIPTION_NOT_EXIST": Response("no heartbeat told the broker of this subscription yet"),
    "SUBSCRIPTION_NOT_LATEST": Response("the broker knows an older subscription than the request"),
    "SUBSCRIPTION_GROUP_NOT_EXIST": Response("no such consumer group, and it is not created"),
    "FILTER_DATA_NOT_EXIST": Response("no compiled filter for this group and topic", "4.1.0"),
    "FILTER_DATA_NOT_LATEST": Response("the compiled filter is older than the request", "4.1.0"),
    "INVALID_PARAMETER": Response("a field has a value that cannot be", "5.3.2"),
    # transactions, consumers
    "TRANSACTION_SHOULD_COMMIT": Response("unused: constant only"),
    "TRANSACTION_SHOULD_ROLLBACK": Response("unused: constant only"),
    "TRANSACTION_STATE_UNKNOW": Response("unused: constant only"),
    "TRANSACTION_STATE_GROUP_WRONG": Response("unused: constant only"),
    "NO_BUYER_ID": Response("unused by Apache brokers; a producer tries another broker"),
    "NOT_IN_CURRENT_UNIT": Response("unused by Apache brokers; a producer tries another broker"),
    "CONSUMER_NOT_ONLINE": Response("no member of the consumer group is connected"),
    "CONSUME_MSG_TIMEOUT": Response("the client did not answer the broker in time"),
    "NO_MESSAGE": Response("no message at this offset, as a response to an acknowledgement"),
    # POP, containers, static topics
    "POLLING_FULL": Response("the broker holds too many long polls already", "5.0.0"),
    "POLLING_TIMEOUT": Response("a POP long poll ended without a message", "5.0.0"),
    "BROKER_NOT_EXIST": Response("no such broker in this container", "5.0.0"),
    "BROKER_DISPATCH_NOT_COMPLETE": Response("unused: constant only", "5.0.0"),
    "BROADCAST_CONSUMPTION": Response("the group broadcasts, so it has no common state", "5.0.0"),
    "FLOW_CONTROL": Response("unused by Apache brokers; a consumer pulls later", "4.9.5"),
    "NOT_LEADER_FOR_QUEUE": Response("the logical queue is at another broker now", "5.0.0"),
    "ILLEGAL_OPERATION": Response("the message's state or kind does not allow it", "5.1.1"),
    "GO_AWAY": Response("the responder shuts down: reconnect and ask again", "5.2.0"),
    # controller
    "CONTROLLER_FENCED_MASTER_EPOCH": Response("from a master of an earlier epoch", "5.0.0"),
    "CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH": Response("from an earlier in-sync set", "5.0.0"),
    "CONTROLLER_INVALID_MASTER": Response("the sender is not the master", "5.0.0"),
    "CONTROLLER_INVALID_REPLICAS": Response("an in-sync replica is not known", "5.0.0"),
    "CONTROLLER_MASTER_NOT_AVAILABLE": Response("the old master is gone, no new one", "5.0.0"),
    "CONTROLLER_INVALID_REQUEST": Response("a heartbeat without broker id", "5.0.0"),
    "CONTROLLER_BROKER_NOT_ALIVE": Response("an in-sync replica sends no heartbeats", "5.0.0"),
    "CONTROLLER_NOT_LEADER": Response("this controller is not the leader: ask it", "5.0.0"),
    "CONTROLLER_BROKER_METADATA_NOT_EXIST": Response("no such broker group", "5.0.0"),
    "CONTROLLER_INVALID_CLEAN_BROKER_METADATA": Response(
        "the broker to be forgotten is alive or not known", "5.0.0"
    ),
    "CONTROLLER_BROKER_NEED_TO_BE_REGISTERED": Response("the broker must register first", "5.1.1"),
    "CONTROLLER_MASTER_STILL_EXIST": Response("no election: the master is alive", "5.1.1"),
    "CONTROLLER_ELECT_MASTER_FAILED": Response("no broker could become master", "5.1.1"),
    "CONTROLLER_ALTER_SYNC_STATE_SET_FAILED": Response(
        "the in-sync set stays: group not known, or the change has no master in it", "5.1.1"
    ),
    "CONTROLLER_BROKER_ID_INVALID": Response("the broker id is taken or not next", "5.1.1"),
    "CONTROLLER_JRAFT_INTERNAL_ERROR": Response("the Raft log refused the entry", "5.2.0"),
    "CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS": Response("no heartbeat known of it", "5.2.0"),
    # lite topics, access control
    "LMQ_QUOTA_EXCEEDED": Response("not stored: too many light queues", "5.5.0"),
    "LITE_SUBSCRIPTION_QUOTA_EXCEEDED": Response("too many lite subscriptions", "5.5.0"),
    "USER_NOT_EXIST": Response("unused: constant only", "5.3.0"),
    "POLICY_NOT_EXIST": Response("unused: constant only", "5.3.0"),
}

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

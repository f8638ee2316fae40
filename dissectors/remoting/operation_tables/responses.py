"""Meanings of response codes, and their first releases.

One row per constant, in numeric order; `code_names.RESPONSES` has them by number. Removed codes are
in `codes.FORMER_RESPONSES`. RocketMQ: ResponseCode, RemotingSysResponseCode, and the processors
that use them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...table_text import entries


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


# NAME: first release, meaning | remark | ...
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

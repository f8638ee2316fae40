"""What a capture must have for a rule to run."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from dissectors.remoting.codes import RequestCode

GROUPS: Final = frozenset(
    (
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.LOCK_BATCH_MQ,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
    )
)
"""requests that show that there are consumer groups"""
TRANSACTIONS: Final = frozenset(
    (int(RequestCode.END_TRANSACTION), int(RequestCode.CHECK_TRANSACTION_STATE))
)
"""requests that show that there are transactions"""
CALLS_OF_CLIENTS: Final = frozenset(
    (
        "QueryRoute",
        "QueryAssignment",
        "Heartbeat",
        "SendMessage",
        "ReceiveMessage",
        "AckMessage",
        "ForwardMessageToDeadLetterQueue",
    )
)
"""calls of gRPC that clients make of a proxy, which calls them for other things"""


class Need(StrEnum):
    """What a capture must have for a rule to run."""

    ROUTES = "NameServer responses"
    SENDS = "producer sends"
    PULLS = "consumer pulls or pops"
    HEARTBEATS = "client heartbeats"
    CONNECTIONS = "TCP connections"
    HANDSHAKES = "TCP handshakes"
    GROUPS = "consumer group requests"
    TRANSACTIONS = "transactional messages"


NEEDS_OF_CALLS: Final = {
    "SendMessage": (Need.SENDS,),
    "ReceiveMessage": (Need.PULLS, Need.GROUPS),
    "Heartbeat": (Need.HEARTBEATS,),
}
"""what calls of gRPC show, for rules that cover them"""
BY_REMOTING: Final = frozenset(
    (Need.ROUTES, Need.SENDS, Need.PULLS, Need.HEARTBEATS, Need.GROUPS, Need.TRANSACTIONS)
)
"""needs that calls of gRPC do not meet"""

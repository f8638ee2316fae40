"""Kinds of traffic that rules need in a capture."""

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
"""requests that prove consumer groups"""
TRANSACTIONS: Final = frozenset(
    (int(RequestCode.END_TRANSACTION), int(RequestCode.CHECK_TRANSACTION_STATE))
)
"""requests that prove transactions"""
CALLS_OF_CLIENTS: Final = frozenset(
    (
        "QueryRoute",
        "QueryAssignment",
        "Heartbeat",
        "SendMessage",
        "ReceiveMessage",
        "AckMessage",
        "EndTransaction",
        "ForwardMessageToDeadLetterQueue",
    )
)
"""gRPC calls of clients; a proxy's own calls have other purposes"""


class Need(StrEnum):
    """A kind of traffic that a rule needs in a capture."""

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
    "EndTransaction": (Need.TRANSACTIONS,),
}
"""kinds of traffic that gRPC calls show, for rules that cover them"""
BY_REMOTING: Final = frozenset(
    (Need.ROUTES, Need.SENDS, Need.PULLS, Need.HEARTBEATS, Need.GROUPS, Need.TRANSACTIONS)
)
"""kinds of traffic that gRPC calls do not show"""

"""Sets of codes: requests that send or fetch messages, responses that mean stored.

Plain ints, for comparison with numbers on the wire. RocketMQ: RequestCode, ResponseCode,
SendMessageProcessor, MQClientAPIImpl.processSendResponse.
"""

from __future__ import annotations

from typing import Final

from .codes import RequestCode, ResponseCode

V1_SENDS: Final = frozenset((int(RequestCode.SEND_MESSAGE), int(RequestCode.SEND_REPLY_MESSAGE)))
"""Sends whose header is SendMessageRequestHeader, with long field names."""
V2_SENDS: Final = frozenset(
    (
        int(RequestCode.SEND_MESSAGE_V2),
        int(RequestCode.SEND_BATCH_MESSAGE),
        int(RequestCode.SEND_REPLY_MESSAGE_V2),
    )
)
"""Sends whose header is SendMessageRequestHeaderV2, with letters for field names."""
SENDS: Final = V1_SENDS | V2_SENDS
"""All requests by which a producer sends messages."""
REPLIES: Final = frozenset(
    (int(RequestCode.SEND_REPLY_MESSAGE), int(RequestCode.SEND_REPLY_MESSAGE_V2))
)
"""Sends of a reply in request-reply messaging."""
FETCHES: Final = frozenset(
    (
        int(RequestCode.PULL_MESSAGE),
        int(RequestCode.LITE_PULL_MESSAGE),
        int(RequestCode.POP_MESSAGE),
        int(RequestCode.POP_LITE_MESSAGE),
    )
)
"""Requests that fetch messages for a consumer."""

STORED: Final = frozenset(
    (
        int(ResponseCode.SUCCESS),
        int(ResponseCode.FLUSH_DISK_TIMEOUT),
        int(ResponseCode.SLAVE_NOT_AVAILABLE),
        int(ResponseCode.FLUSH_SLAVE_TIMEOUT),
    )
)
"""Codes of send responses that mean the broker has the message."""

MESSAGE_BODIES: Final = frozenset(
    (
        int(RequestCode.SEND_BATCH_MESSAGE),
        int(RequestCode.CHECK_TRANSACTION_STATE),
        int(RequestCode.BATCH_ACK_MESSAGE),
    )
)
"""Requests whose messages are only in the body."""

"""Codes that belong together: which requests send or fetch messages, which answers mean stored.

Plain ints, because they are compared with numbers off the wire.
RocketMQ: RequestCode, ResponseCode, SendMessageProcessor, MQClientAPIImpl.processSendResponse.
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
"""Sends of the answer of request-reply."""
FETCHES: Final = frozenset(
    (
        int(RequestCode.PULL_MESSAGE),
        int(RequestCode.LITE_PULL_MESSAGE),
        int(RequestCode.POP_MESSAGE),
        int(RequestCode.POP_LITE_MESSAGE),
    )
)
"""Requests by which a consumer gets messages."""

STORED: Final = frozenset(
    (
        int(ResponseCode.SUCCESS),
        int(ResponseCode.FLUSH_DISK_TIMEOUT),
        int(ResponseCode.SLAVE_NOT_AVAILABLE),
        int(ResponseCode.FLUSH_SLAVE_TIMEOUT),
    )
)
"""Answers to a send of which the broker has the message."""

MESSAGE_BODIES: Final = frozenset(
    (
        int(RequestCode.SEND_BATCH_MESSAGE),
        int(RequestCode.CHECK_TRANSACTION_STATE),
        int(RequestCode.BATCH_ACK_MESSAGE),
    )
)
"""Requests of which only the body says which messages they are about."""

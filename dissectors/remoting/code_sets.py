"""Sets of codes: requests that send or fetch messages, responses that mean stored or are retried.

Plain ints, for comparison with numbers on the wire. RocketMQ: RequestCode, ResponseCode,
SendMessageProcessor, MQClientAPIImpl.processSendResponse, DefaultMQProducer.retryResponseCodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .codes import RequestCode, ResponseCode
from .versions import V5_3_0, V5_3_1


def _numbers(*codes: RequestCode | ResponseCode) -> frozenset[int]:
    return frozenset(map(int, codes))


V1_SENDS: Final = _numbers(RequestCode.SEND_MESSAGE, RequestCode.SEND_REPLY_MESSAGE)
"""Sends whose header is SendMessageRequestHeader, with long field names."""
V2_SENDS: Final = _numbers(
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.SEND_REPLY_MESSAGE_V2,
)
"""Sends whose header is SendMessageRequestHeaderV2, with letters for field names."""
SENDS: Final = V1_SENDS | V2_SENDS
"""All requests by which a producer sends messages."""
REPLIES: Final = _numbers(RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2)
"""Sends of a reply in request-reply messaging."""
FETCHES: Final = _numbers(
    RequestCode.PULL_MESSAGE,
    RequestCode.LITE_PULL_MESSAGE,
    RequestCode.POP_MESSAGE,
    RequestCode.POP_LITE_MESSAGE,
)
"""Requests that fetch messages for a consumer."""
MESSAGE_BODIES: Final = _numbers(
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.CHECK_TRANSACTION_STATE,
    RequestCode.BATCH_ACK_MESSAGE,
)
"""Requests whose messages are only in the body."""

STORED: Final = _numbers(
    ResponseCode.SUCCESS,
    ResponseCode.FLUSH_DISK_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE,
    ResponseCode.FLUSH_SLAVE_TIMEOUT,
)
"""Codes of send responses that mean the broker has the message."""

_ALWAYS: Final = 0
RETRIED_SINCE: Final[Mapping[int, int]] = MappingProxyType(
    {
        int(ResponseCode.TOPIC_NOT_EXIST): _ALWAYS,
        int(ResponseCode.SERVICE_NOT_AVAILABLE): _ALWAYS,
        int(ResponseCode.SYSTEM_ERROR): _ALWAYS,
        int(ResponseCode.NO_PERMISSION): _ALWAYS,
        int(ResponseCode.NO_BUYER_ID): _ALWAYS,
        int(ResponseCode.NOT_IN_CURRENT_UNIT): _ALWAYS,
        int(ResponseCode.SYSTEM_BUSY): V5_3_0,
        int(ResponseCode.GO_AWAY): V5_3_1,
    }
)
"""Response code → MQVersion ordinal of the first client that retries it on another broker."""


def retry_codes_of(version: int) -> frozenset[int]:
    """Return the response codes that a client of this MQVersion ordinal retries elsewhere."""
    return frozenset(code for code, since in RETRIED_SINCE.items() if version >= since)

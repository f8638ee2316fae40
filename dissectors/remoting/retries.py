"""Response codes after which a Java producer tries another broker, by client release.

RocketMQ: DefaultMQProducer.retryResponseCodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .codes import ResponseCode
from .versions import V5_3_0, V5_3_1

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

"""Ids and receipts taken apart: message ids, POP receipts and lists, recall handles, trace context.

Whatever a peer wrote there, the answer is a value or None; nothing raises.
RocketMQ: MessageDecoder.createMessageId, MessageClientIDSetter, ExtraInfoUtil, RecallMessageHandle.
"""

from __future__ import annotations

import struct
from ipaddress import ip_address


def encode_offset_id(store_host: str, physical_offset: int) -> str | None:
    """The offset message id of `ip:port` and commit log offset; None when they cannot make one."""
    address, _, port = store_host.rpartition(":")
    try:
        packed = ip_address(address.strip("[]")).packed
        return (packed + struct.pack(">iq", int(port), physical_offset)).hex().upper()
    except (ValueError, struct.error):
        return None

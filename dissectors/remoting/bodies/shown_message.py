"""A message for output: its fields in output order.

Rules: an UNSET field is omitted; field names are RocketMQ's. It is a struct, because it is created
for every message of a capture, and msgspec encodes it directly.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import astuple


class ShownMessage(msgspec.Struct, gc=False, rename="camel"):
    """A message in JSON types."""

    topic: str = ""
    queue_id: int = 0
    msg_id: str | None = None
    tags: str | None = None
    keys: list[str] = []
    properties: dict[str, str] = {}
    flag: int = 0
    sys_flag: int = 0
    transaction: str = ""
    born_timestamp: int = 0
    reconsume_times: int = 0
    queue_offset: int | UnsetType = UNSET
    commit_log_offset: int | UnsetType = UNSET
    offset_msg_id: str | UnsetType | None = UNSET
    born_host: str | UnsetType = UNSET
    store_timestamp: int | UnsetType = UNSET
    store_host: str | UnsetType = UNSET
    prepared_transaction_offset: int | UnsetType = UNSET
    store_size: int | UnsetType = UNSET
    version: int | UnsetType = UNSET
    body_crc: int | UnsetType = msgspec.field(default=UNSET, name="bodyCRC")
    crc_ok: bool | UnsetType | None = UNSET
    missing: int | UnsetType = UNSET
    compression: str | None = None
    body_size: int = 0
    """bytes on the wire"""
    body_form: str = ""
    """`text` or `base64`"""
    body: str = ""
    body_truncated: bool = False
    body_problem: str | UnsetType = UNSET
    content: dict[str, object] | UnsetType = UNSET
    """decoded body of RocketMQ itself, or of a plug-in"""
    content_problem: str | UnsetType = UNSET
    parts: dict[str, object] | UnsetType = UNSET
    """property → its parts, if it has any"""


MESSAGE_NAMES: Final = ShownMessage.__struct_encode_fields__
"""field names in output order"""


def message_dict(shown: ShownMessage) -> dict[str, object]:
    """Return a message as the dictionary of its output."""
    named = zip(MESSAGE_NAMES, astuple(shown), strict=True)
    return {name: value for name, value in named if value is not UNSET}

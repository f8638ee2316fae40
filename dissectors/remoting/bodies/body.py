"""A decoded body, the input of its decoder, and a message for output.

RocketMQ: RemotingCommand.body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import astuple

from ...budget import Budget
from ..messages.message import StoredMessage

RAW: Final = "raw"
"""Kind of an undecoded body."""
NONE: Final = "none"
"""Kind of an empty body."""
JSON: Final = "json"
"""Kind of a JSON body of unknown type."""


class Body(msgspec.Struct, frozen=True, gc=False):
    """A decoded body."""

    kind: str
    """Java class or form (`stored-messages`, `properties-text`, ..), or `raw`, `json`, `none`."""
    value: object = None
    """In JSON types; None if the messages are everything, or nothing was decoded."""
    messages: tuple[StoredMessage, ...] = ()
    """Its messages: stored ones, or sent ones with the fields of the send header."""
    problem: str | None = None
    """Why it was not decoded completely, or None."""
    notes: tuple[str, ...] = ()
    """Oddities that were decoded: unknown members, values of another type."""
    sound: bool = False
    """Every message was checked against its CRC, without differences."""


class BodyInput(NamedTuple):
    """A body and facts about its command."""

    form: str
    """Java class or form in the operation table."""
    request_code: int
    """Operation, also of a response."""
    response: bool
    """Whether it is the body of the response."""
    body: bytes
    """Bytes as sent."""
    ext_fields: Mapping[str, str]
    """Ext fields of the command, as sent."""
    budget: Budget | None = None
    """Budget for decompression; None: only the limit of each body."""
    fields: Mapping[str, object] | None = None
    """Typed ext fields of a request by long name, if known."""


# A struct, because it is created for every message of a capture, and msgspec encodes it directly.
class ShownMessage(msgspec.Struct, gc=False, rename="camel"):
    """A message in JSON types, its fields in output order; an UNSET one is omitted."""

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

"""A decoded body, and the input of its decoder.

RocketMQ: RemotingCommand.body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

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

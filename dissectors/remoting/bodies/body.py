"""What a body says, as a value, and what a decoder is given to find it.

RocketMQ: RemotingCommand.body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from ...budget import Budget
from ..messages.message import StoredMessage

RAW: Final = "raw"
"""Kind of a body that was not understood."""
NONE: Final = "none"
"""Kind of a body of no bytes."""
JSON: Final = "json"
"""Kind of a body that is JSON although nothing is known of it."""


class Body(msgspec.Struct, frozen=True, gc=False):
    """What a body says."""

    kind: str
    """Java class or form (`stored-messages`, `properties-text`, ..), or `raw`, `json`, `none`."""
    value: object = None
    """In JSON types; None where the messages say it all or nothing was understood."""
    messages: tuple[StoredMessage, ...] = ()
    """The messages in it: stored ones, or those sent, with what the send header says of them."""
    problem: str | None = None
    """Why not all of it was understood; None when all was."""
    notes: tuple[str, ...] = ()
    """What is odd and yet understood: members that are not known, values of another type."""
    sound: bool = False
    """Every message was compared with its CRC, and none differs."""


class BodyInput(NamedTuple):
    """One body with what its command says of it."""

    form: str
    """Java class or form that the operation's table names."""
    request_code: int
    """Operation, also for a response."""
    response: bool
    """Whether it is the body of the response."""
    body: bytes
    """The bytes, as sent."""
    ext_fields: Mapping[str, str]
    """The command's ext fields, as sent."""
    budget: Budget | None = None
    """What compressed bodies may become; None: each has its own bound only."""
    fields: Mapping[str, object] | None = None
    """The ext fields of a request by long name and typed, where somebody has them already."""

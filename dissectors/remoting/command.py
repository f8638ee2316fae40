"""RemotingCommand: what the header of a frame says, request or response.

RocketMQ: RemotingCommand. The header's JSON decodes straight into this class; the body is the
frame's and travels beside it.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

RESPONSE_FLAG = 1
"""bit 0 of `flag`: the command is a response"""
ONEWAY_FLAG = 2
"""bit 1 of `flag`: no response is expected"""

JSON = "JSON"
ROCKETMQ = "ROCKETMQ"

_WIRE_NAMES = {"ext_fields": "extFields", "serialize_type": "serializeTypeCurrentRPC"}
"""what `serializeTypeCurrentRPC` says does not count: how a header is written is seen, not said"""


Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]


class RemotingCommand(msgspec.Struct, rename=_WIRE_NAMES, gc=False, forbid_unknown_fields=True):
    """A decoded header."""

    code: Int32
    """request code, or response code; the real one where a binary header cut it to 16 bits"""
    opaque: Int32
    """the number that pairs a response with its request"""
    flag: Int32 = 0
    """bit 0 response, bit 1 oneway"""
    language: str = ""
    """name of the sender's language; empty where the header has none"""
    version: Int32 = 0
    """MQVersion ordinal of the sender"""
    remark: str | None = None
    """usually the error text of a response"""
    ext_fields: dict[str, str] = {}
    """the custom header: wire names and strings"""
    serialize_type: str = JSON
    """JSON or ROCKETMQ: how the header was written"""

    @property
    def is_response(self) -> bool:
        """Whether it is a response."""
        return self.flag & RESPONSE_FLAG != 0

    @property
    def is_oneway(self) -> bool:
        """Whether it is a request to which no response is expected."""
        return self.flag & 3 == ONEWAY_FLAG

    @property
    def wire_code(self) -> int:
        """The code as the header carries it: a binary header cuts it to 16 bits."""
        if self.serialize_type != ROCKETMQ or -32768 <= self.code <= 32767:
            return self.code
        cut = self.code & 0xFFFF
        return cut - 0x10000 if cut & 0x8000 else cut


class CertainHeader(msgspec.Struct, gc=False):
    """What a header in JSON must have to be certainly one: the other members may be any."""

    code: Int32
    opaque: Int32

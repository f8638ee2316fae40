"""RemotingCommand: the header of a request or response.

RocketMQ: RemotingCommand. JSON headers decode straight into this class; the body belongs to the
frame.
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
"""`serializeTypeCurrentRPC` is ignored: the serialization is detected"""


Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]


# An unknown member may be a known one in another spelling, which only `odd_header` reads.
class RemotingCommand(msgspec.Struct, rename=_WIRE_NAMES, gc=False, forbid_unknown_fields=True):
    """A decoded header."""

    code: Int32
    """request or response code; restored if a binary header cut it to 16 bits"""
    opaque: Int32
    """matches a response to its request"""
    flag: Int32 = 0
    """bit 0 response, bit 1 oneway"""
    language: str = ""
    """language of the sender, or empty"""
    version: Int32 = 0
    """MQVersion ordinal of the sender"""
    remark: str | None = None
    """usually the error text of a response"""
    ext_fields: dict[str, str] = {}
    """the custom header: wire names and strings"""
    serialize_type: str = JSON
    """JSON or ROCKETMQ: serialization of the header"""

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
        """Code in the header: a binary header cuts it to 16 bits."""
        if self.serialize_type != ROCKETMQ or -32768 <= self.code <= 32767:
            return self.code
        cut = self.code & 0xFFFF
        return cut - 0x10000 if cut & 0x8000 else cut


class CertainHeader(msgspec.Struct, gc=False):
    """Minimum members of a certain JSON header; others may be anything."""

    code: Int32
    opaque: Int32

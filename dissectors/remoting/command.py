"""RemotingCommand: what a frame says, request or response.

RocketMQ: RemotingCommand. The header's JSON decodes straight into this class; `body` is the
frame's and set afterwards, whatever a JSON member of a similar name says.
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

_WIRE_NAMES = {
    "ext_fields": "extFields",
    "serialize_type": "serializeTypeCurrentRPC",
    "body": "\0body",
    "wire_code": "\0wireCode",
}


Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]


class RemotingCommand(msgspec.Struct, rename=_WIRE_NAMES, gc=False):
    """A decoded header, and the body where it is kept."""

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
    body: bytes = b""
    """the frame's body, where bodies are kept"""
    wire_code: int = 0
    """the code as the header carries it, where that differs from `code`; else 0"""

    @property
    def is_response(self) -> bool:
        """Whether it is a response."""
        return self.flag & RESPONSE_FLAG != 0

    @property
    def is_oneway(self) -> bool:
        """Whether it is a request to which no response is expected."""
        return self.flag & 3 == ONEWAY_FLAG

"""Decode and encode headers in both serializations: JSON and ROCKETMQ (binary).

Decoding never raises. Of duplicate keys the last one counts. RocketMQ:
RemotingCommand.headerDecode, RemotingSerializable, RocketMQSerializable.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec
from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from ..foreign import read_json
from .code_names import is_language, language_code, language_name, wide_request_code
from .command import JSON, RESPONSE_FLAG, ROCKETMQ, CertainHeader, RemotingCommand
from .odd_header import odd_header_of

JSON_TYPE: Final = 0
BINARY_TYPE: Final = 1
FIRST_BYTES: Final[i64] = int.from_bytes(b'{"code":', "big")
"""start of headers as Java writes them"""
MIN_BINARY_HEADER: Final = 21
"""bytes of a binary header without remark and ext fields"""

_json_decoder: Final = msgspec.json.Decoder(RemotingCommand)
_certain_decoder: Final = msgspec.json.Decoder(CertainHeader)
_json_encoder: Final = msgspec.json.Encoder()
_BINARY_FIXED: Final = struct.Struct(">HBHIII")
"""code, language, version, opaque, flag, length of the remark"""


def decode_header(serialize_type: i64, header: bytes) -> RemotingCommand | None:
    """Decode a header, or return None if it is invalid."""
    command = decode_usual_header(serialize_type, header)
    if command is None and serialize_type != BINARY_TYPE:
        # Numbers in quotes or names in another case, for example: Java accepts them.
        odd = odd_header_of(header)
        if odd is not None:
            return odd.command
    return command


def decode_usual_header(serialize_type: i64, header: bytes) -> RemotingCommand | None:
    """Decode a header as Java writes it, or return None for others, which may be odd."""
    if serialize_type == BINARY_TYPE:
        return _decode_binary(header)
    command = read_json(_json_decoder, header)
    if command is None:
        return None
    if command.language and not is_language(command.language):
        return None
    if command.serialize_type is not JSON:  # what the header says does not matter
        command.serialize_type = JSON
    return command


def first_code_of(header: bytes) -> i64:
    """Return the code at the start of a JSON header, as in Java's, or -1."""
    if len(header) < 16 or read_i64_be(header, 0) != FIRST_BYTES:
        return -1
    word: i64 = read_i64_be(header, 8)
    code: i64 = 0
    shift: i64 = 56
    while shift >= 0:
        byte: i64 = (word >> shift) & 0xFF
        if byte == 0x2C and shift < 56:
            return code
        if byte < 0x30 or byte > 0x39 or (shift < 56 and code == 0):  # no digit; a leading zero
            return -1
        code = code * 10 + byte - 0x30
        shift -= 8
    return -1


def is_header(serialize_type: i64, header: bytes, tolerant: bool = False) -> bool:
    """Return whether bytes are certainly a header, for a decoder that searches for frames.

    `tolerant`: also accept JSON that only Java's reader accepts.
    """
    if serialize_type == BINARY_TYPE:
        return _is_binary(header)
    if not (
        tolerant or (header.endswith(b"}") and read_json(_certain_decoder, header) is not None)
    ):
        return False
    command = decode_header(serialize_type, header)
    # No release sets other bits of the flag, so that most other JSON is refused.
    return command is not None and 0 <= command.flag <= 3


def _is_binary(header: bytes) -> bool:
    """Return whether the lengths of a binary header add up, without decoding it."""
    # Candidates of a hostile stream overlap, each byte in sixteen of them: decoding these takes 2.6
    # times as long as adding up.
    size: i64 = len(header)
    if size < MIN_BINARY_HEADER or not 0 <= read_i32_be(header, 9) <= 3:
        return False
    remark_length: i64 = i64(read_i32_be(header, 13))
    if remark_length < 0 or remark_length > size - MIN_BINARY_HEADER:
        return False
    at: i64 = 17 + remark_length
    if i64(read_i32_be(header, at)) != size - at - 4:
        return False
    at += 4
    while at < size:
        if size - at < 6:
            return False
        key_length: i64 = i64(read_i16_be(header, at))
        at += 2 + key_length
        if key_length < 0 or at + 4 > size:
            return False
        value_length: i64 = i64(read_i32_be(header, at))
        at += 4 + value_length
        if value_length < 0 or at > size:
            return False
    return True


def _decode_binary(header: bytes) -> RemotingCommand | None:
    size: i64 = len(header)
    if size < MIN_BINARY_HEADER:
        return None
    flag: i64 = i64(read_i32_be(header, 9))
    remark_length: i64 = i64(read_i32_be(header, 13))
    if remark_length < 0 or remark_length > size - MIN_BINARY_HEADER:
        return None
    at: i64 = 17 + remark_length
    ext_length: i64 = i64(read_i32_be(header, at))
    at += 4
    if ext_length < 0 or ext_length > size - at:
        return None
    fields: dict[str, str] = {}
    if ext_length and not _decode_ext_fields(header, at, at + ext_length, fields):
        return None
    wire: i64 = i64(read_i16_be(header, 0))
    code: i64 = wire
    if flag & RESPONSE_FLAG == 0:  # request codes above 32767 are cut to 16 bits
        code = wide_request_code(int(wire))
    return RemotingCommand(
        int(code),
        int(read_i32_be(header, 5)),
        int(flag),
        language_name(header[2]),
        int(read_i16_be(header, 3)),
        header[17 : 17 + remark_length].decode("utf-8", "replace") if remark_length else None,
        fields,
        ROCKETMQ,
    )


def _decode_ext_fields(header: bytes, at: i64, end: i64, fields: dict[str, str]) -> bool:
    """Read key length, key, value length, value to the end; return False if they do not fit."""
    while at < end:
        if end - at < 6:
            return False
        key_length: i64 = i64(read_i16_be(header, at))
        key_end: i64 = at + 2 + key_length
        if key_length < 0 or key_end + 4 > end:
            return False
        value_length: i64 = i64(read_i32_be(header, key_end))
        value: i64 = key_end + 4
        if value_length < 0 or value_length > end - value:
            return False
        name = header[at + 2 : key_end].decode("utf-8", "replace")
        at = value + value_length
        fields[name] = header[value:at].decode("utf-8", "replace")
    return True


def encode_header(command: RemotingCommand, serialize_type: int | None = None) -> bytes:
    """Encode a header in the command's serialization or the given one.

    Raise ValueError for values that the binary form cannot carry (a key over 32,767 bytes).
    """
    if serialize_type is None:
        serialize_type = BINARY_TYPE if command.serialize_type == ROCKETMQ else JSON_TYPE
    return _encode_binary(command) if serialize_type == BINARY_TYPE else _encode_json(command)


def _encode_json(command: RemotingCommand) -> bytes:
    members: dict[str, object] = {"code": command.code}
    if command.ext_fields:
        members["extFields"] = command.ext_fields
    members["flag"] = command.flag
    if command.language:
        members["language"] = command.language
    members["opaque"] = command.opaque
    if command.remark is not None:
        members["remark"] = command.remark
    members["serializeTypeCurrentRPC"] = JSON
    members["version"] = command.version
    return _json_encoder.encode(members)


def _encode_binary(command: RemotingCommand) -> bytes:
    fields = bytearray()
    for name, value in command.ext_fields.items():
        key = name.encode("utf-8", "surrogatepass")
        content = value.encode("utf-8", "surrogatepass")
        if len(key) > 32767:
            raise ValueError(f"an ext field name of {len(key)} bytes: at most 32767 fit")
        fields += len(key).to_bytes(2, "big") + key + len(content).to_bytes(4, "big") + content
    remark = (command.remark or "").encode("utf-8", "surrogatepass")
    language = language_code(command.language)
    fixed = _BINARY_FIXED.pack(
        command.code & 0xFFFF,
        language if language is not None else 0,
        command.version & 0xFFFF,
        command.opaque & 0xFFFFFFFF,
        command.flag & 0xFFFFFFFF,
        len(remark),
    )
    return fixed + remark + len(fields).to_bytes(4, "big") + bytes(fields)

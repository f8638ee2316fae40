"""Body of a broker registration (103): JSON, or a zlib stream of lengths and texts.

Both forms give the same value. RocketMQ: RegisterBrokerBody, TopicConfig.decode.
"""

from __future__ import annotations

import zlib
from typing import Final

from ...foreign import integer_of
from ..fastjson.codec import decode_json
from ..messages.compression import decompress
from ..messages.record_layout import CRC_MASK
from .body import Body, BodyInput
from .classes import java_type_of
from .json_body import TypedReader, decode_json_body

REGISTRATION: Final = "RegisterBrokerBody"
REGISTRATION_LIMIT: Final = 16 * 1024 * 1024
"""Maximum bytes of a decompressed registration: 100,000 topics have some ten million."""
REGISTRATION_FREE: Final = 256 * 1024
REGISTRATION_TIMES: Final = 64
"""Maximum expansion: this number of bytes, and a multiple of its size; names compress well."""
ENTRIES_LIMIT: Final = 200_000
"""Maximum topics, and queue mappings, of a compressed registration."""

_ZLIB_FIRST_BYTE: Final = 0x78
_TOPIC_FIELDS: Final = ("readQueueNums", "writeQueueNums", "perm")
_WRAPPER: Final = "topicConfigSerializeWrapper"


class _Stop(Exception):
    """The rest of the registration is unreadable; the text says why."""


class _Cursor:
    """Reads lengths and texts in sequence, and collects notes."""

    __slots__ = ("at", "data", "problem", "reader")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.reader = TypedReader()
        self.problem: str | None = None

    def number(self) -> int:
        if self.at + 4 > len(self.data):
            raise _Stop(f"the registration is cut at {len(self.data)}")
        self.at += 4
        return int.from_bytes(self.data[self.at - 4 : self.at], "big", signed=True)

    def count(self) -> int:
        number = self.number()
        if not 0 <= number <= ENTRIES_LIMIT:
            raise _Stop(f"{number} entries are not from 0 to {ENTRIES_LIMIT}")
        return number

    def text(self) -> bytes:
        size = self.number()
        if size < 0 or self.at + size > len(self.data):
            raise _Stop(f"a text of {size} bytes at {self.at} does not fit the registration")
        self.at += size
        return self.data[self.at - size : self.at]

    def json(self, java_type: str) -> object:
        result = decode_json(self.text())
        if result.problem is not None and self.problem is None:
            self.problem = result.problem
        return self.reader.read(result.value, java_type_of(java_type), java_type)


def decode_registration(source: BodyInput) -> Body:
    """Decode 103 as a RegisterBrokerBody, compressed or not."""
    body = source.body
    notes: tuple[str, ...] = ()
    expected = source.ext_fields.get("bodyCrc32", "0")
    if expected not in ("0", str(zlib.crc32(body) & CRC_MASK)):
        notes = ("bodyCrc32 does not fit the body",)
    # The header does not tell: 5.x brokers set `compressed=false` even when they compress.
    compressed = body[0] == _ZLIB_FIRST_BYTE
    decoded = _decode_compressed(body) if compressed else decode_json_body(source)
    if notes:
        notes += decoded.notes
        return Body(decoded.kind, decoded.value, problem=decoded.problem, notes=notes)
    return decoded


def _decode_compressed(body: bytes) -> Body:
    most = min(REGISTRATION_LIMIT, REGISTRATION_FREE + REGISTRATION_TIMES * len(body))
    output = decompress(body, "zlib", most)
    cursor = _Cursor(output.data)
    wrapper: dict[str, object] = {}
    value: dict[str, object] = {"filterServerList": [], _WRAPPER: wrapper}
    problem = output.problem
    if output.truncated:
        problem = f"more than {most} bytes when decompressed"
    try:
        _read_parts(cursor, value, wrapper)
    except _Stop as stop:
        problem = problem or str(stop)
    if problem is None and cursor.at < len(cursor.data):
        problem = f"{len(cursor.data) - cursor.at} bytes follow the registration"
    return Body(REGISTRATION, value, problem=problem or cursor.problem, notes=cursor.reader.notes)


def _read_parts(cursor: _Cursor, value: dict[str, object], wrapper: dict[str, object]) -> None:
    wrapper["dataVersion"] = cursor.json("DataVersion")
    topics: dict[str, object] = {}
    wrapper["topicConfigTable"] = topics
    for _ in range(cursor.count()):
        config = decode_topic_config(cursor.text().decode("utf-8", "replace"))
        if config is None:
            raise _Stop(f"a topic before {cursor.at} has not its five fields")
        topics[str(config["topicName"])] = config
    value["filterServerList"] = cursor.json("List<String>")
    if cursor.at == len(cursor.data):
        return  # a 4.x broker has no queue mappings
    mappings: dict[str, object] = {}
    wrapper["topicQueueMappingInfoMap"] = mappings
    for _ in range(cursor.count()):
        mapping = cursor.json("TopicQueueMappingInfo")
        topic = mapping.get("topic") if isinstance(mapping, dict) else None
        mappings[str(topic)] = mapping


def decode_topic_config(text: str) -> dict[str, object] | None:
    """Decode `name readQueues writeQueues perm filterType [attributes]`, or return None."""
    parts = text.split(" ", 5)
    if len(parts) < 5:
        return None
    config: dict[str, object] = {"topicName": parts[0]}
    for name, number in zip(_TOPIC_FIELDS, parts[1:4], strict=True):
        value = integer_of(number)
        if value is None or len(number) > 11:  # a Java int has at most 10 digits and a sign
            return None
        config[name] = value
    config["topicFilterType"] = parts[4]
    if len(parts) > 5 and parts[5]:
        attributes = decode_json(parts[5].encode())
        config["attributes"] = TypedReader().read(
            attributes.value, java_type_of("Map<String, String>"), "TopicConfig.attributes"
        )
    return config

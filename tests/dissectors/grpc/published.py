"""The definitions of `apache.rocketmq.v2` as Maven's rocketmq-proto has them, for comparison.

Java's generated classes hold each `.proto` file as a FileDescriptorProto, in string constants.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dissectors.grpc.wire import fields_of

HOLDERS = ("MQDomain", "MQService", "MQAdmin")
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4}
"""tag of a constant → its bytes; RocketMQ's classes have no others but texts"""
TYPES = {2: "float", 3: "int64", 5: "int32", 8: "bool", 9: "string", 11: "message", 12: "bytes"}
TYPES |= {14: "enum"}


class Published(NamedTuple):
    """What the definitions say."""

    messages: dict[str, dict[int, tuple[str, str, str, bool]]]
    """message → number → name, kind, type within the package, whether there may be many"""
    enums: dict[str, dict[int, str]]
    methods: dict[str, tuple[str, bool, str, bool]]
    """`Service/Method` → what it takes, whether many, what it gives, whether many"""


def published(jar: Path) -> Published:
    """Return the definitions in a jar."""
    found = Published({}, {}, {})
    with zipfile.ZipFile(jar) as archive:
        for holder in HOLDERS:
            data = archive.read(f"apache/rocketmq/v2/{holder}.class")
            texts = [text for text in _texts(data) if len(text) > 200 or "\n\x0c" in text[:3]]
            _read_file("".join(texts).encode("latin-1"), found)
    return found


def _texts(data: bytes) -> Iterator[str]:
    """Give the texts among the constants of a class, in their order."""
    (count,) = struct.unpack_from(">H", data, 8)
    at, number = 10, 1
    while number < count:
        tag = data[at]
        if tag == 1:
            (size,) = struct.unpack_from(">H", data, at + 1)
            raw = data[at + 3 : at + 3 + size].replace(b"\xc0\x80", b"\0")
            yield raw.decode("utf-8", "surrogatepass")
            at += 3 + size
        else:
            at += 1 + _SIZES[tag]
        number += 2 if tag in (5, 6) else 1


def _read_file(data: bytes, found: Published) -> None:
    for number, value in _parts(data):
        if number == 4:
            _read_message(value, "", found)
        elif number == 5:
            _read_enum(value, "", found)
        elif number == 6:
            _read_service(value, found)


def _read_message(data: bytes, outer: str, found: Published) -> None:
    parts = list(_parts(data))
    name = outer + next(value.decode() for number, value in parts if number == 1)
    fields: dict[int, tuple[str, str, str, bool]] = {}
    for number, value in parts:
        if number == 2:
            one = {field: content for field, _, content, _ in fields_of(value)}
            kind = TYPES[_number(one[5])]
            fields[_number(one[3])] = (_text(one[1]), kind, _short(one.get(6)), one[4] == 3)
        elif number == 3:
            _read_message(value, f"{name}.", found)
        elif number == 4:
            _read_enum(value, f"{name}.", found)
    found.messages[name] = fields


def _read_enum(data: bytes, outer: str, found: Published) -> None:
    name, values = "", {}
    for number, value in _parts(data):
        if number == 1:
            name = outer + value.decode()
        elif number == 2:
            one = {field: content for field, _, content, _ in fields_of(value)}
            values[_number(one.get(2, 0))] = _text(one[1])
    found.enums[name] = values


def _read_service(data: bytes, found: Published) -> None:
    parts = list(_parts(data))
    service = next(value.decode() for number, value in parts if number == 1)
    for number, value in parts:
        if number == 2:
            one = {field: content for field, _, content, _ in fields_of(value)}
            found.methods[f"{service}/{_text(one[1])}"] = (
                *(_short(one[2]), one.get(5) == 1),
                *(_short(one[3]), one.get(6) == 1),
            )


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    for number, _, value, _ in fields_of(data):
        if isinstance(value, bytes):
            yield number, value


def _number(value: int | bytes) -> int:
    assert isinstance(value, int)
    return value


def _text(value: int | bytes) -> str:
    assert isinstance(value, bytes)
    return value.decode()


def _short(value: int | bytes | None) -> str:
    name = "" if value is None else _text(value)
    return name.removeprefix(".").removeprefix("apache.rocketmq.v2.")

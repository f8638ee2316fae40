"""Headers in both serializations: what Java writes, what other clients write, damage, limits."""

from __future__ import annotations

import json
import struct
import time
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.codes import RequestCode
from dissectors.remoting.command import JSON, ROCKETMQ, RemotingCommand
from dissectors.remoting.header_codec import (
    BINARY_TYPE,
    JSON_TYPE,
    decode_header,
    encode_header,
    is_header,
)
from tests.traffic.commands import Command, send
from tests.traffic.scripts import commands

from .protocol_facts import table


def _same(found: RemotingCommand | None, wanted: Command) -> None:
    assert found is not None
    assert (found.code, found.opaque, found.flag) == (wanted.code, wanted.opaque, wanted.flag)
    assert (found.language, found.version) == (wanted.language, wanted.version)
    assert (found.remark, found.ext_fields) == (wanted.remark, wanted.ext)
    assert found.serialize_type == (ROCKETMQ if wanted.binary else JSON)


def _vectors() -> list[dict[str, str]]:
    frames = table("vectors.json")["frames"]
    assert isinstance(frames, list)
    return frames


def test_the_frames_that_the_java_classes_wrote() -> None:
    """Both serializations of each: the same command, and is written back to the same meaning."""
    for vector in _vectors():
        data = bytes.fromhex(vector["hex"])
        total, word = struct.unpack_from(">II", data)
        assert total == len(data) - 4
        kind, size = word >> 24, word & 0xFFFFFF
        assert kind == (vector["serialize_type"] != "JSON")
        header = data[8 : 8 + size]
        command = decode_header(kind, header)
        assert command is not None
        assert is_header(kind, header)
        expected = int(vector["true_code"])
        assert command.code == expected, vector["name"]
        assert command.wire_code == int(vector["decoded_code"])
        assert command.serialize_type == vector["serialize_type"]
        again = encode_header(command)
        assert decode_header(kind, again) == command
        if kind == BINARY_TYPE:
            assert sorted(again) == sorted(header)  # the order of ext fields is Java's hash order
        else:
            assert json.loads(again) == json.loads(header)


@given(st.data())
def test_any_command(data: st.DataObject) -> None:
    wanted = data.draw(commands(data.draw(st.integers(-(2**31), 2**31 - 1)), False))
    found = decode_header(int(wanted.binary), wanted.header)
    assert found is not None
    if wanted.remark == "":
        wanted = replace(wanted, remark=found.remark)
    _same(found, wanted)
    assert is_header(int(wanted.binary), wanted.header)
    for kind in (JSON_TYPE, BINARY_TYPE):
        again = decode_header(kind, encode_header(found, kind))
        assert again is not None
        _same(again, replace(wanted, binary=kind == BINARY_TYPE))


@pytest.mark.parametrize("code", [code for code in RequestCode if code > 0x7FFF])
def test_codes_that_a_binary_header_cuts(code: int) -> None:
    """The real request code comes back; a response's code is left as it is."""
    request = decode_header(BINARY_TYPE, Command(code, 1, binary=True).header)
    assert request is not None
    assert request.code == code
    wire = struct.unpack(">h", struct.pack(">H", code & 0xFFFF))[0]
    assert request.wire_code == wire
    response = decode_header(BINARY_TYPE, Command(code, 1, 1, binary=True).header)
    assert response is not None
    assert response.code == wire
    assert decode_header(JSON_TYPE, Command(code, 1).header).code == code  # type: ignore[union-attr]


TOLERATED = {
    "numbers": '{"code":11,"extFields":{"queueId":3,"ok":true,"d":1.5,"n":null},"opaque":7}',
    "unquoted": "{code:11,extFields:{queueId:'3',ok:'true',d:'1.5'},opaque:7}",
    "spaces": ' { "code" : 11 , "opaque" : 7,\n "extFields": {"queueId":3,"ok":true,"d":1.5} } ',
    "quoted code": '{"code":"11","opaque":"7","extFields":{"queueId":3,"ok":true,"d":1.5}}',
    "twice": '{"code":1,"opaque":7,"extFields":{"queueId":3,"ok":true,"d":1.5},"code":11}',
    "others": '{"x":[1,{}],"code":11,"opaque":7,"extFields":{"queueId":3,"ok":true,"d":1.5}}',
}


@pytest.mark.parametrize("name", sorted(TOLERATED))
def test_what_only_javas_reader_takes(name: str) -> None:
    found = decode_header(JSON_TYPE, TOLERATED[name].encode())
    assert found is not None
    assert (found.code, found.opaque, found.flag, found.version) == (11, 7, 0, 0)
    assert found.ext_fields == {"queueId": "3", "ok": "true", "d": "1.5"}
    assert found.serialize_type == JSON


def test_absent_members_have_defaults() -> None:
    found = decode_header(JSON_TYPE, b'{"code":1,"opaque":2,"extFields":null,"remark":null}')
    assert found == RemotingCommand(code=1, opaque=2)
    assert decode_header(JSON_TYPE, b'{"code":1,"opaque":2,"remark":5}').remark == "5"  # type: ignore[union-attr]
    assert decode_header(JSON_TYPE, b'{"opaque":2}') == RemotingCommand(code=0, opaque=2)


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    for binary in (False, True):
        header = Command(1, 2, remark="xxx", ext={"yyy": "zzz"}, binary=binary).header
        header = header.replace(b"xxx", b"\xff\xfe\x80").replace(b"zzz", b"\xc3\x28z")
        found = decode_header(int(binary), header)
        assert found is not None
        assert found.remark == "\ufffd\ufffd\ufffd"
        assert found.ext_fields == {"yyy": "\ufffd(z"}


def test_how_a_header_is_written_is_seen_not_said() -> None:
    for name in ("serializeTypeCurrentRPC", "", "serialize_type", "serializeType"):
        header = json.dumps({"code": 40000, "opaque": 1, name: "ROCKETMQ"}).encode()
        found = decode_header(JSON_TYPE, header)
        assert found is not None
        assert found.serialize_type == JSON
        assert found.wire_code == 40000


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"{}",
        b"[]",
        b"null",
        b'"code"',
        b"{not json at all",
        b'{"code":1,"opaque":2',
        b'{"code":1,"opaque":2}trailing',
        b'{"code":' + b"[" * 100_000,
        b'{"code":1,"opaque":1,"x":' + b"[" * 100_000,
        b'{"code":1,"opaque":1,"x":' + b'{"a":' * 100_000,
    ],
)
def test_what_is_no_header(header: bytes) -> None:
    for kind in (JSON_TYPE, BINARY_TYPE):
        assert decode_header(kind, header) is None
        assert not is_header(kind, header)
    assert decode_header(JSON_TYPE, bytes(40)) is None
    assert not is_header(BINARY_TYPE, bytes(40))  # Java would pass over what is behind the fields


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4294967296", None), ("-99999999999", None), ("9" * 5000, None), ('"x"', None),
        ('"9e99999"', 2**31 - 1), ("-1e400", -(2**31)), ("NaN", 0), ("[1]", 1), ("[1,1]", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["code", "opaque", "flag", "version"])
@pytest.mark.parametrize("response", [False, True])
def test_numbers_over_32_bits(text: str, number: int | None, name: str, response: bool) -> None:
    """A number that is none never becomes 0, with which a response might be paired."""
    members = {"code": "5", "opaque": "6", "flag": str(int(response)), "version": "7"} | {
        name: text
    }
    header = "{" + ",".join(f'"{key}":{value}' for key, value in members.items()) + "}"
    found = decode_header(JSON_TYPE, header.encode())
    assert (None if found is None else getattr(found, name)) == number


def test_every_cut_of_a_binary_header() -> None:
    header = send(1, binary=True, remark="why").header
    for size in range(len(header)):
        assert decode_header(BINARY_TYPE, header[:size]) is None
        assert not is_header(BINARY_TYPE, header[:size])
    assert is_header(BINARY_TYPE, header)
    assert not is_header(BINARY_TYPE, header + b"\0")


@given(st.data())
def test_damaged_binary_headers(data: st.DataObject) -> None:
    header = bytearray(send(1, binary=True, remark="why").header)
    for _ in range(data.draw(st.integers(1, 5))):
        header[data.draw(st.integers(0, len(header) - 1))] = data.draw(st.integers(0, 255))
    certain = is_header(BINARY_TYPE, bytes(header))
    found = decode_header(BINARY_TYPE, bytes(header))
    assert found is not None or not certain


@given(st.binary(max_size=200), st.booleans())
def test_arbitrary_bytes(data: bytes, json_like: bool) -> None:
    header = b'{"code":1,"opaque":2,' + data + b"}" if json_like else data
    for kind in (JSON_TYPE, BINARY_TYPE):
        found = decode_header(kind, header)
        assert found is None or isinstance(found, RemotingCommand)
        if is_header(kind, header):
            assert found is not None


def test_what_a_binary_header_cannot_carry() -> None:
    with pytest.raises(ValueError, match="at most 32767"):
        encode_header(RemotingCommand(1, 1, ext_fields={"k" * 32768: "v"}), BINARY_TYPE)


@pytest.mark.slow
def test_nested_candidates_take_linear_time() -> None:
    """Headers within ext fields of headers, each up to the end: only lengths are looked at."""
    unit = 35
    count = 60_000 // unit
    parts = []
    for index in range(count):
        rest = (count - index - 1) * unit + 6 + 3
        fixed = struct.pack(">HBHiiII", 1, 0, 0, 1, 0, 0, rest)
        parts.append(bytes(8) + fixed + struct.pack(">HI", 0, 29 if index < count - 1 else 99))
    data = b"".join(parts) + b"end"
    began = time.process_time()
    for index in range(count):
        assert not is_header(BINARY_TYPE, data[index * unit + 8 :])
    assert time.process_time() - began < 10


def test_judging_a_binary_header_makes_no_fields() -> None:
    fields = b"".join(struct.pack(">H5sI5s", 5, b"%05d" % n, 5, b"%05d" % n) for n in range(4_000))
    fixed = struct.pack(">HBHiiII", 1, 0, 0, 1, 0, 0, len(fields))
    tracemalloc.start()
    try:
        assert is_header(BINARY_TYPE, fixed + fields)
        assert not is_header(BINARY_TYPE, fixed + fields[:-1])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3 * len(fields)  # two headers; the fields would take nine times as much

"""tshark, given the published definitions, takes calls apart as we do: frames of HTTP/2 and their
headers where each was complete, and every field of every message.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from dissectors.decode.pipeline import CommandSeen, Decode
from dissectors.grpc.bodies import call_trees
from dissectors.grpc.command import CallCommand
from dissectors.grpc.names import OPERATIONS, TELEMETRY, TELEMETRY_COMMANDS
from dissectors.http2 import connection
from dissectors.http2.frame import END_STREAM, RST_STREAM, Http2Frame
from dissectors.tcp.capture import packet_number
from tests.cluster.fixtures import require_jars
from tests.cluster.servers.artifacts import PROXY_5, Unavailable, fetch
from tests.dissectors.wireshark.tshark import Layer, layer_of, text_of
from tests.expected import SAMPLES, WITHOUT_CALLS

from .proto_text import write_proto_files
from .published import published

PROTOCOLS = {".pcap": "http2", ".pcapng": "tls"}
"""Suffix of a sample → what its TCP carries: those with secrets are pcapng."""
CALLS = sorted(
    path
    for path in SAMPLES.glob("grpc-*.pcap*")
    if path.suffix in PROTOCOLS and path.stem not in WITHOUT_CALLS
)
PACKAGE = "apache.rocketmq.v2."
ENUM = 14
"""number of the type of a field that is an enum"""
MASKED = ("authorization",)
"""headers that we show masked"""

pytestmark = pytest.mark.tshark
of_each_sample = pytest.mark.parametrize("path", CALLS, ids=lambda path: path.stem)

Key = tuple[int, int, int]
"""connection, stream of HTTP/2, port of the sender"""
Fields = list[tuple[str, object]]
"""path of names to a value, and the value, in order of the paths"""


class FrameSeen(NamedTuple):
    """A frame as either side sees it."""

    type: int
    stream: int
    flags: int
    length: int
    headers: list[tuple[str, str]]


@dataclass
class Seen:
    """A capture as one of the two sees it."""

    frames: dict[int, list[FrameSeen]] = field(default_factory=lambda: defaultdict(list))
    """by the packet that completed them"""
    messages: dict[Key, list[tuple[str, Fields]]] = field(default_factory=lambda: defaultdict(list))
    """type and fields of each message"""
    lengths: dict[Key, list[int]] = field(default_factory=lambda: defaultdict(list))
    """bytes of each message"""
    headers: dict[Key, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    """all headers that an end sent on a stream"""
    ended: set[tuple[int, int]] = field(default_factory=set)
    """connection and stream on which a server has said all"""


# -- tshark -------------------------------------------------------------------------------------


@cache
def _theirs(path: Path) -> Seen:
    ports = {text.rpartition(":")[2] for text in _proxies(path)}
    options = [
        part for port in ports for part in ("-d", f"tcp.port=={port},{PROTOCOLS[path.suffix]}")
    ]
    with tempfile.TemporaryDirectory() as folder:
        try:
            (jar,) = fetch(PROXY_5).glob("rocketmq-proto-*.jar")
            write_proto_files(published(jar), Path(folder))
        except Unavailable:
            pass  # frames are compared all the same
        command = ["tshark", "-n", "-r", str(path), *options, "-Y", "http2"]
        command += ["-o", f'uat:protobuf_search_paths:"{folder}","TRUE"']
        command += ["-T", "json", "-J", "frame tcp http2 grpc protobuf"]
        out = subprocess.run(command, capture_output=True, check=True).stdout
    seen = Seen()
    for packet in json.loads(out, object_pairs_hook=list):
        _take_packet(layer_of(layer_of(packet, "_source"), "layers"), ports, seen)
    return seen


def _take_packet(layers: Layer, ports: set[str], seen: Seen) -> None:
    number = int(text_of(layer_of(layers, "frame"), "frame.number"))
    tcp = layer_of(layers, "tcp")
    number_of_tcp, port = int(text_of(tcp, "tcp.stream")), text_of(tcp, "tcp.srcport")
    stream = 0
    for name, layer in layers:
        if not isinstance(layer, list):
            continue
        key = (number_of_tcp, stream, int(port))
        if name == "http2":
            frame = layer_of(layer, "http2.stream")
            if not text_of(frame, "http2.type"):
                continue  # what a client says first
            one = _frame_of(frame)
            stream = one.stream
            seen.frames[number].append(one)
            seen.headers[number_of_tcp, stream, int(port)] += one.headers
            if port in ports and one.type < RST_STREAM and one.flags & END_STREAM:
                seen.ended.add((number_of_tcp, stream))
        elif name == "grpc":
            seen.lengths[key].append(int(text_of(layer, "grpc.message_length")))
        elif name == "protobuf":
            ((title, content),) = layer
            assert isinstance(content, list)
            type_name = title.removeprefix("Message: ").removeprefix(PACKAGE)
            seen.messages[key].append((type_name, _ordered(_fields(content))))


def _frame_of(layer: Layer) -> FrameSeen:
    headers = [
        (text_of(one, "http2.header.name"), text_of(one, "http2.header.value"))
        for name, one in layer
        if name == "http2.header" and isinstance(one, list)
    ]
    return FrameSeen(
        int(text_of(layer, "http2.type")),
        int(text_of(layer, "http2.streamid")),
        int(text_of(layer, "http2.flags"), 16),
        int(text_of(layer, "http2.length")),
        headers,
    )


def _fields(layer: Layer, outer: str = "") -> Iterator[tuple[str, object]]:
    """The fields of a message and of those within it."""
    for title, content in layer:
        if not title.startswith("Field("):
            continue
        assert isinstance(content, list)
        named = dict(content)
        path = f"{outer}.{named['protobuf.field.name']}"
        inner = [one for name, one in content if name.startswith("Message: ")]
        if inner:
            for one in inner:
                assert isinstance(one, list)
                yield path, "message"
                yield from _fields(one, path)
        elif int(str(named["protobuf.field.type"])) == ENUM:
            for name in re.findall(r"(\w+)\(\d+\)", title.partition(" = ")[2]):
                yield path, name
        else:
            yield path, _value_of(named)


def _value_of(named: dict[str, object]) -> object:
    tree = named.get("protobuf.field.value_tree")
    if not isinstance(tree, list):
        return bytes.fromhex(str(named.get("protobuf.field.value", "")).replace(":", ""))
    ((name, value),) = tree
    readers: dict[str, Callable[[str], object]] = {"string": str, "float": float, "bool": _is_one}
    return readers.get(name.removeprefix("protobuf.field.value."), int)(str(value))


def _is_one(text: str) -> bool:
    return text == "1"


def _ordered(fields: Iterator[tuple[str, object]]) -> Fields:
    return sorted(fields, key=lambda one: one[0])


# -- we -----------------------------------------------------------------------------------------


@cache
def _commands(path: Path) -> list[CommandSeen]:
    return [
        seen
        for batch in Decode([str(path)]).commands()
        for seen in batch
        if isinstance(seen.pdu.command, CallCommand)
    ]


def _proxies(path: Path) -> set[str]:
    """Addresses that answer calls."""
    return {seen.pdu.dst for seen in _commands(path) if _call(seen).name in _ASKED_BY_CLIENTS}


_ASKED_BY_CLIENTS = {*OPERATIONS} - {*TELEMETRY_COMMANDS.values(), TELEMETRY}


def _call(seen: CommandSeen) -> CallCommand:
    assert isinstance(seen.pdu.command, CallCommand)
    return seen.pdu.command


def _key(seen: CommandSeen) -> Key:
    return seen.pdu.conversation, seen.pdu.opaque, int(seen.pdu.src.rpartition(":")[2])


@cache
def _ours(path: Path) -> Seen:
    seen = Seen()
    for one in _commands(path):
        command, key = _call(one), _key(one)
        for type_name, tree, problem in call_trees(command, one.pdu.body):
            assert problem is None
            if tree:  # tshark shows no message without fields
                seen.messages[key].append((type_name, _ordered(_leaves(tree))))
        at, body = 0, one.pdu.body
        while at < len(body):
            length = int.from_bytes(body[at + 1 : at + 5])
            seen.lengths[key].append(length)
            at += 5 + length
    return seen


def _leaves(tree: object, path: str = "") -> Iterator[tuple[str, object]]:
    """The fields of a message and of those within it."""
    if isinstance(tree, dict):
        if path:
            yield path, "message"
        for name, value in tree.items():
            for one in value if isinstance(value, list) else [value]:
                yield from _leaves(one, f"{path}.{name}")
    else:
        yield path, tree


# -- both ---------------------------------------------------------------------------------------


@of_each_sample
def test_frames_and_headers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Type, stream, flags, length and headers of each frame, in the packet that completed it."""
    theirs = _theirs(path).frames
    ours: dict[int, list[FrameSeen]] = defaultdict(list)

    class Noting(connection.Http2End):
        def _take(self, frame: Http2Frame, out: list[connection.StreamEvent]) -> None:
            before = len(out)
            super()._take(frame, out)
            headers = [header for event in out[before:] for header in event.headers]
            length = len(frame.payload) + frame.missing
            ours[packet_number(frame.place.packet)].append(
                FrameSeen(frame.type, frame.stream, frame.flags, length, headers)
            )

    monkeypatch.setattr(connection, "Http2End", Noting)
    for _ in Decode([str(path)]).commands():
        pass
    assert ours == theirs


@of_each_sample
def test_fields(path: Path) -> None:
    """Names and values of all fields of all messages; what is left out is of calls not ended."""
    require_jars([PROXY_5])
    ours, theirs = _ours(path), _theirs(path)
    _compare(ours.messages, theirs.messages, theirs.ended)
    assert len(ours.messages) > len(theirs.messages) // 2


@of_each_sample
def test_lengths(path: Path) -> None:
    """Bytes of all messages."""
    theirs = _theirs(path)
    _compare(_ours(path).lengths, theirs.lengths, theirs.ended)


def _compare(
    ours: Mapping[Key, object], theirs: Mapping[Key, object], ended: set[tuple[int, int]]
) -> None:
    assert ours.keys() <= theirs.keys()
    for key, found in theirs.items():
        if key in ours:
            assert ours[key] == found, key
        else:
            assert key[:2] not in ended, key


@of_each_sample
def test_headers_of_commands(path: Path) -> None:
    """What a command shows as metadata is what its end sent."""
    theirs = _theirs(path).headers
    for seen in _commands(path):
        shown = _call(seen).ext_fields
        sent = dict(theirs[_key(seen)])
        for name in shown:
            assert name in MASKED or shown[name] == sent[name]


_WITH_RESETS = {"grpc-too-many-5x", "grpc-calls-lost-5x", "grpc-responses-lost-5x"}


@of_each_sample
def test_resets(path: Path) -> None:
    """A call that was reset stands where tshark sees RST_STREAM, with the stream's number."""
    theirs = {
        (packet, frame.stream)
        for packet, frames in _theirs(path).frames.items()
        for frame in frames
        if frame.type == RST_STREAM
    }
    ours = {
        (packet_number(seen.pdu.packet), seen.pdu.opaque)
        for seen in _commands(path)
        if _call(seen).name == "RST_STREAM"
    }
    assert ours <= theirs
    assert bool(ours) == (path.stem in _WITH_RESETS)

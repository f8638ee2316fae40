"""Bodies in the Lua dissector: JSON as Java's classes wrote it, and as only their reader takes it.

What our own reader says of the same text is expected.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from dissectors.remoting.code_names import OPERATIONS
from dissectors.remoting.fastjson.reader import FastjsonReader
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command
from tests.traffic.talk import Talk

from .test_samples import leaves_of, same_leaf
from .tshark import Layer, commands_of, experts_of, run_tshark, text_of, texts_of

pytestmark = pytest.mark.tshark

VECTORS = Path(__file__).resolve().parents[4] / "shared" / "protocol" / "vectors.json"
GET_BROKER_CLUSTER_INFO = 106
DIALECT = [
    '{0:"x",-1:[1,2.50,1e3,.5,7L]}',
    "{'single':'quo\"tes',bare:true,$x:null}",
    '{{"topic":"T","queueId":1}:{"offset":9223372036854775807},{"topic":"U"}:-5}',
    '{"a":{"$ref":"$.b"},"b":[{"c":"d"},{"$ref":".."}]}',
    ' { "blank" : [ 1 , 2 ,, 3 ] , } ',
    '/* comment */{"a":1,// to the end\n"b":Set["x","y"]}',
    '{"esc":"\\u4E2D\\uD83D\\uDE00\\n\\t\\"\\\\\\/\\x41\\0","half":"\\uD83D"}',
    "[]",
    "{}",
    '[[1,[2,{"k":[3]}]],"x"]',
    '"text"',
    "17",
    "true",
]
BROKEN = ['{"a":1,"b":', '{"a":"cut', '{"a" 1}', "[1,2", '{"a":1}}', '{"a":wrong}', "{" * 100]


def answered(bodies: Iterable[bytes], code: int = GET_BROKER_CLUSTER_INFO) -> Talk:
    """A request of that code for each body, which is its answer's."""
    talk = Talk(mss=60_000).open()
    for opaque, body in enumerate(bodies):
        talk.say(0, Command(code, opaque).frame)
        talk.say(1, Command(0, opaque, 1, body=body).frame)
    return talk


def answers(dissector: Path, folder: Path, talk: Talk, *options: str) -> list[Layer]:
    path = folder / "bodies.pcap"
    path.write_bytes(pcap_of(talk.segments))
    found = commands_of(dissector, path, *options)
    layers = [layer for number in sorted(found) for layer in found[number]]
    return [layer for layer in layers if text_of(layer, "rocketmq.kind") == "response"]


def assert_same(text: str, layer: Layer) -> None:
    ours = list(leaves_of(FastjsonReader(text).read()))
    theirs = [tuple(leaf.split("=", 1)) for leaf in texts_of(layer, "rocketmq.json")]
    ours = [(path, value.replace("\0", "␀")) for path, value in ours]
    assert len(ours) == len(theirs), text
    for one, other in zip(ours, theirs, strict=True):
        assert same_leaf(one, other), (text, one, other)  # type: ignore[arg-type]


def test_what_java_wrote(dissector: Path, tmp_path: Path) -> None:
    if not VECTORS.exists():
        pytest.skip("the shared vectors are not here")
    texts = [row["text"] for row in json.loads(VECTORS.read_text())["json_bodies"]]
    texts = [text for text in texts if text[0] in "{["]
    assert len(texts) > 40
    found = answers(dissector, tmp_path, answered(text.encode() for text in texts))
    for text, layer in zip(texts, found, strict=True):
        assert_same(text, layer)
        assert "bad_body" not in experts_of(layer), text


def test_the_dialect(dissector: Path, tmp_path: Path) -> None:
    found = answers(dissector, tmp_path, answered(text.encode() for text in DIALECT))
    for text, layer in zip(DIALECT, found, strict=True):
        assert_same(text, layer)
        assert "bad_body" not in experts_of(layer), text


def test_what_breaks_off(dissector: Path, tmp_path: Path) -> None:
    """What was read before the problem is shown."""
    found = answers(dissector, tmp_path, answered(text.encode() for text in BROKEN))
    for text, layer in zip(BROKEN, found, strict=True):
        assert FastjsonReader(text).read() is not None
        assert "bad_body" in experts_of(layer), text
    assert texts_of(found[0], "rocketmq.json") == ["a=1"]


def test_a_tree_has_an_end(dissector: Path, tmp_path: Path) -> None:
    text = json.dumps({"list": list(range(20_000))})
    talk = answered([text.encode()])
    assert len(texts_of(answers(dissector, tmp_path, talk)[0], "rocketmq.json")) == 4999
    option = ("-o", "rocketmq.json_limit:100")
    assert len(texts_of(answers(dissector, tmp_path, talk, *option)[0], "rocketmq.json")) == 99


def test_other_forms(dissector: Path, tmp_path: Path) -> None:
    lines = answers(dissector, tmp_path, answered([b"a=1\r\nb = 2\n\nlast"], 26))[0]
    assert texts_of(lines, "rocketmq.text") == ["a=1", "b = 2", "last"]
    numbers = struct.pack(">7q", *range(1, 6), -1, 2**40)
    checkpoint = answers(dissector, tmp_path, answered([numbers, numbers[:20]], 60))
    assert texts_of(checkpoint[0], "rocketmq.json")[::6] == [
        "lastReadTimeMs=1",
        f"dataVersionCounter={2**40}",
    ]
    assert "bad_body" in experts_of(checkpoint[1])
    unknown = answers(dissector, tmp_path, answered([b"\0\1\2", b"words", b'{"a":1}'], 9999))
    assert texts_of(unknown[0], "rocketmq.data") == ["00:01:02"]
    assert texts_of(unknown[1], "rocketmq.text") == ["words"]
    assert texts_of(unknown[2], "rocketmq.json") == ["a=1"]


def test_every_operation_has_a_form(dissector: Path, tmp_path: Path) -> None:
    """The class or form that our tables name, in both directions."""
    talk = Talk(mss=60_000).open()
    expected = []
    for opaque, (code, operation) in enumerate(sorted(OPERATIONS.items())):
        talk.say(0, Command(code, opaque, body=b"{}").frame)
        talk.say(1, Command(0, opaque, 1, body=b"{}").frame)
        expected += [operation.request_body or "json", operation.response_body or "json"]
    path = tmp_path / "forms.pcap"
    path.write_bytes(pcap_of(talk.segments))
    found = commands_of(dissector, path)
    layers = [layer for number in sorted(found) for layer in found[number]]
    assert [text_of(layer, "rocketmq.body_kind") for layer in layers] == expected


def test_compressed_registrations(dissector: Path, tmp_path: Path) -> None:
    def text(value: bytes) -> bytes:
        return struct.pack(">i", len(value)) + value

    topics = [b"TopicA 8 8 6 SINGLE_TAG", b"TopicB 4 4 6 SINGLE_TAG {}"]
    body = text(b'{"counter":1,"timestamp":5}') + struct.pack(">i", len(topics))
    body += b"".join(map(text, topics)) + text(b"[]") + struct.pack(">i", 0)
    talk = Talk(mss=60_000).open().say(0, Command(103, 1, body=zlib.compress(body)).frame)
    talk.say(0, Command(103, 2, body=zlib.compress(body)[:-20]).frame)
    talk.say(0, Command(103, 3, body=zlib.compress(body[:40])).frame)
    path = tmp_path / "registrations.pcap"
    path.write_bytes(pcap_of(talk.segments))
    found = commands_of(dissector, path)
    whole, damaged, short = (layer for number in sorted(found) for layer in found[number])
    assert texts_of(whole, "rocketmq.json") == ["counter=1", "timestamp=5"]
    assert texts_of(whole, "rocketmq.text") == [one.decode() for one in topics]
    assert "bad_body" not in experts_of(whole)
    assert "bad_body" in experts_of(damaged) or texts_of(damaged, "rocketmq.json")
    assert "bad_body" in experts_of(short)


def test_one_pass_and_summary_agree(dissector: Path, tmp_path: Path) -> None:
    """What is not asked for is not read, and what is asked for is the same."""
    talk = answered([b'{"a":1}', b'{"b":[2]}'])
    path = tmp_path / "pass.pcap"
    path.write_bytes(pcap_of(talk.segments))
    for wanted, count in (
        ('rocketmq.json == "a=1"', 1),
        ("rocketmq.json", 2),
        ('rocketmq.kind == "response"', 2),
        ("rocketmq.request_in", 2),
        ("rocketmq.time > 0.00005 && rocketmq.time < 0.00015", 2),
        ("rocketmq.body", 2),
        ("rocketmq.ext", 0),
        ("rocketmq.expert.bad_body", 0),
        ('rocketmq.operation == "GET_BROKER_CLUSTER_INFO"', 4),
        ("rocketmq", 4),
    ):
        lines = run_tshark(dissector, path, "-Y", wanted).splitlines()
        assert len(lines) == count, wanted

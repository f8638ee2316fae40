"""The Java oracle agrees with what it recorded before, and tells what it refuses."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from tests.cluster.clients.oracle import JavaCommand, Refusal, decode_frames, reflect
from tests.cluster.fixtures import require_jars
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_5, RELEASES

pytestmark = pytest.mark.cluster

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "protocol"


@pytest.fixture(scope="module", autouse=True)
def _jars() -> None:
    require_jars((NEWEST_5, NEWEST_4))


def frame(header: bytes, body: bytes = b"") -> bytes:
    """A frame with a JSON header."""
    return struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body


def test_decodes_and_encodes_again() -> None:
    given = frame(b'{"code":105,"extFields":{"topic":"T"},"language":"GO","opaque":-3}', b"body")
    for version in (NEWEST_4, NEWEST_5):
        answer = decode_frames([given], version)[0]
        assert isinstance(answer, JavaCommand)
        assert (answer.code, answer.language, answer.opaque) == (105, "GO", -3)
        assert answer.ext_fields == {"topic": "T"}
        assert answer.body == b"body"
        again = decode_frames([answer.encoded], version)[0]
        assert isinstance(again, JavaCommand)
        assert (again.code, again.ext_fields, again.body) == (105, {"topic": "T"}, b"body")


def test_reads_a_custom_header() -> None:
    name = "org.apache.rocketmq.remoting.protocol.header.GetMaxOffsetRequestHeader"
    given = frame(b'{"code":30,"extFields":{"topic":"T","queueId":"3"},"opaque":1}')
    answer = decode_frames([(given, name)])[0]
    assert isinstance(answer, JavaCommand)
    assert answer.header is not None
    assert (answer.header["topic"], answer.header["queueId"]) == ("T", 3)


def test_refuses_what_is_no_frame() -> None:
    good = frame(b'{"code":1,"opaque":1}')
    answers = decode_frames([good[:-1], b"\x00\x00\x00\x02ab", frame(b"{broken"), good])
    assert [isinstance(answer, Refusal) for answer in answers] == [True, True, True, False]


@pytest.mark.skipif(not SHARED.is_dir(), reason="no protocol facts beside the repository")
@pytest.mark.parametrize("version", ["5.3.3"])
def test_reflects_the_codes_of_the_facts(version: str) -> None:
    facts = json.loads((SHARED / "request_codes.json").read_text())
    rows = facts["codes"] if isinstance(facts, dict) else facts
    known = {row["code"] for row in rows}
    assert set(reflect(version)["tables"]["RequestCode"].values()) <= known


def test_reflects_every_release() -> None:
    for version in (name for name, release in RELEASES.items() if not release.programs):
        tables = reflect(version)["tables"]
        assert tables["RequestCode"]["SEND_MESSAGE_V2"] == 310
        assert tables["ResponseCode"]["TOPIC_NOT_EXIST"] == 17
        assert tables["LanguageCode"]["JAVA"] == 0
        headers = reflect(version)["headers"]
        name = next(one for one in headers if one.endswith(".SendMessageRequestHeaderV2"))
        fields = headers[name]["fields"]
        assert isinstance(fields, list)
        assert {"name": "a", "type": "String", "notNull": True} in [
            {key: row[key] for key in ("name", "type", "notNull")} for row in fields
        ]

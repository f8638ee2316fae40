"""RocketMQ inside TLS, decoded with the key log of one end."""

from __future__ import annotations

import functools
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.decode.stages import ExchangeStages
from dissectors.findings import FindingKind
from dissectors.processes.choice import decode_of
from dissectors.remoting.framing.frame_decoder import KEEP_ALL
from dissectors.tcp.formats import reader_of
from dissectors.tcp.pcapng_writer import PcapngWriter
from dissectors.tcp.source import CaptureError
from dissectors.tls import key_log
from dissectors.tls.key_log import KeyLog
from tests.profiles import examples
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send, sent
from tests.traffic.decoded import (
    Outcome,
    command_of,
    decode,
    decode_bytes,
    decode_segments,
    multiset,
)
from tests.traffic.encrypted import TLS_1_2, TLS_1_3, Secured
from tests.traffic.encrypted_12 import OPENED, apart
from tests.traffic.network import packets
from tests.traffic.scripts import disturbed
from tests.traffic.talk import BROKER, CLIENT, End, Talk, Tcp

COUNT = 8
SUITES_12 = (
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-AES128-CCM",
    "ECDHE-ECDSA-AES256-CCM8",
)


def filled(one: Secured, first: int = 0) -> Secured:
    """Sends and their answers, bodies of many sizes."""
    for number in range(first, first + COUNT):
        one.say(0, send(number, bytes(number * 3000)).frame)
        one.say(1, sent(number, number).frame)
    return one


def in_the_clear() -> Outcome:
    talk = Talk().open()
    for number in range(COUNT):
        talk.say(0, send(number, bytes(number * 3000)).frame).say(1, sent(number, number).frame)
    return decode_segments(talk.segments)


def opened(one: Secured, segments: list[Tcp], tmp_path: Path, **options: object) -> Outcome:
    path = tmp_path / "keys.log"
    path.write_bytes(one.key_log)
    return decode_bytes(pcap_of(segments), DecodeOptions(tls_keylog=str(path), **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("version", "suite"),
    [*((TLS_1_2, suite) for suite in SUITES_12), (TLS_1_3, "")],
    ids=[*SUITES_12, "1.3"],
)
def test_it_is_decoded_as_in_the_clear(version: ssl.TLSVersion, suite: str, tmp_path: Path) -> None:
    one = filled(Secured(version, suite=suite)).close(0).close(1)
    assert not suite or one.suite == suite
    outcome = opened(one, one.talk().close().segments, tmp_path)
    assert multiset(outcome.exchanges) == multiset(in_the_clear().exchanges)
    assert outcome.findings == []
    assert outcome.stats.rocketmq_conversations == 1
    assert outcome.stats.not_decoded == {}


@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3])
def test_a_session_that_goes_on_in_another_connection(
    version: ssl.TLSVersion, tmp_path: Path
) -> None:
    first = Secured(version).say(0, b"x").say(1, b"y")
    one = filled(Secured(again=first))
    assert one.ends[0].session_reused
    outcome = opened(one, one.talk().segments, tmp_path)
    assert multiset(outcome.exchanges) == multiset(in_the_clear().exchanges)


@pytest.mark.parametrize("name", OPENED)
@pytest.mark.slow
def test_what_is_opened_by_other_lines(name: str, tmp_path: Path) -> None:
    opens = OPENED[name](filled)
    path = tmp_path / "keys.log"
    path.write_bytes(opens.key_log)
    options = DecodeOptions(tls_keylog=str(path))
    outcome = decode_bytes(pcap_of(apart(opens.sessions)), options)
    client = End(CLIENT.address, CLIENT.port + len(opens.sessions) - 1)
    talk = Talk(client).open()
    for number in range(COUNT):
        talk.say(0, send(number, bytes(number * 3000)).frame).say(1, sent(number, number).frame)
    assert multiset(outcome.exchanges) == multiset(decode_segments(talk.segments).exchanges)
    assert outcome.kinds.keys() <= {FindingKind.NOT_ROCKETMQ}


@pytest.mark.slow
def test_sessions_that_go_on_by_several_processes(tmp_path: Path) -> None:
    opens = OPENED["goes on by a ticket"](filled)
    path, capture = tmp_path / "keys.log", tmp_path / "a.pcap"
    path.write_bytes(opens.key_log)
    capture.write_bytes(pcap_of(apart(opens.sessions)))
    options = DecodeOptions(tls_keylog=str(path))
    alone = [row for rows in Decode([str(capture)], options).records() for row in rows]
    together = [row for rows in decode_of([str(capture)], options, 3).records() for row in rows]
    assert together == alone
    assert len(alone) == COUNT


def test_a_session_of_which_the_beginning_is_unknown(tmp_path: Path) -> None:
    opens = OPENED["goes on by a ticket"](filled)
    path = tmp_path / "keys.log"
    path.write_bytes(opens.key_log)
    options = DecodeOptions(tls_keylog=str(path))
    outcome = decode_bytes(pcap_of(apart(opens.sessions[1:])), options)
    assert outcome.kinds[FindingKind.TLS_SECRET_MISSING] == 1
    assert outcome.exchanges == []


def test_cut_into_single_bytes(tmp_path: Path) -> None:
    one = Secured().say(0, send(1).frame).say(1, sent(1).frame)
    talk = Talk(mss=1).open()
    for side, data in one.said:
        talk.say(side, data)
    outcome = opened(one, talk.segments, tmp_path)
    assert outcome.statuses == {"answered": 1}
    assert outcome.findings == []


def test_packets_are_those_that_complete_the_records(tmp_path: Path) -> None:
    one = Secured()
    before = len(one.said)
    one.say(0, send(1, bytes(40_000)).frame).say(1, sent(1).frame)
    talk = Talk(mss=60_000).open()
    for side, data in one.said:
        talk.say(side, data)
    (exchange,) = opened(one, talk.segments, tmp_path).exchanges
    assert exchange.request is not None
    assert exchange.response is not None
    request, response = talk.segments[3 + before : 5 + before]
    assert (exchange.request.packet, exchange.request.ts) == (4 + before, request.ts)
    assert (exchange.response.packet, exchange.response.ts) == (5 + before, response.ts)
    assert exchange.response.offset == 0  # in the plaintext


@pytest.mark.slow
def test_by_several_processes_as_by_one(tmp_path: Path) -> None:
    one = filled(Secured())
    path = tmp_path / "keys.log"
    path.write_bytes(one.key_log)
    capture = tmp_path / "a.pcap"
    capture.write_bytes(pcap_of(one.talk().segments))
    options = DecodeOptions(tls_keylog=str(path))
    alone = [row for rows in Decode([str(capture)], options).records() for row in rows]
    together = [row for rows in decode_of([str(capture)], options, 2).records() for row in rows]
    assert together == alone
    assert len(alone) == COUNT


def test_a_hole_ends_one_direction(tmp_path: Path) -> None:
    one = filled(Secured())
    segments = one.talk().segments
    lost = next(at for at, one in enumerate(segments) if at > 40 and one.payload)
    del segments[lost]
    outcome = opened(one, segments, tmp_path)
    assert outcome.kinds[FindingKind.TLS_GAP] == 1
    whole = multiset(in_the_clear().exchanges)
    answered = [one for one in outcome.exchanges if one.status == "answered"]
    assert answered
    assert multiset(answered) <= whole


def test_a_record_that_was_changed_ends_its_direction(tmp_path: Path) -> None:
    one = Secured().say(0, send(1).frame).say(1, sent(1).frame)
    side, data = one.said[-1]
    one.said[-1] = (side, data[:-1] + bytes((data[-1] ^ 1,)))
    outcome = opened(one, one.talk().segments, tmp_path)
    assert outcome.kinds == {FindingKind.TLS_BAD_RECORD: 1}
    assert outcome.statuses == {"unanswered": 1}


def test_secrets_of_another_session(tmp_path: Path) -> None:
    one = filled(Secured())
    outcome = opened(Secured(), one.talk().segments, tmp_path)
    assert outcome.kinds == {FindingKind.TLS_SECRET_MISSING: 1, FindingKind.NOT_ROCKETMQ: 1}
    assert outcome.exchanges == []
    assert outcome.stats.not_decoded == {"TLS": 1}


def test_a_connection_joined_in_the_middle(tmp_path: Path) -> None:
    one = filled(Secured())
    outcome = opened(one, one.talk().segments[12:], tmp_path)
    assert outcome.kinds[FindingKind.TLS_MIDSTREAM] == 1
    assert outcome.exchanges == []


def test_without_secrets_nothing_is_said_of_decryption() -> None:
    outcome = decode_segments(filled(Secured()).talk().segments)
    assert outcome.kinds == {FindingKind.NOT_ROCKETMQ: 1}
    assert outcome.stats.not_decoded == {"TLS": 1}


def test_another_protocol_inside(tmp_path: Path) -> None:
    one = (
        Secured()
        .say(0, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        .say(1, b"HTTP/1.1 200 OK\r\n\r\n")
    )
    outcome = opened(one, one.talk().segments, tmp_path)
    assert outcome.stats.not_decoded == {"HTTP": 1}


def test_tls_within_tls_is_not_followed(tmp_path: Path) -> None:
    inner = Secured()
    one = Secured()
    for side, data in inner.said:
        one.say(side, data)
    outcome = opened(one, one.talk().segments, tmp_path)
    assert outcome.stats.not_decoded == {"TLS": 1}


def test_secrets_in_the_capture(tmp_path: Path) -> None:
    one = filled(Secured(TLS_1_2))
    path = tmp_path / "a.pcapng"
    with path.open("wb") as file:
        writer = PcapngWriter(file, 1)
        writer.write_secrets(one.key_log)
        for ts, data in packets(one.talk().segments):
            writer.write(ts, data)
    outcome = decode([path])
    assert multiset(outcome.exchanges) == multiset(in_the_clear().exchanges)
    assert outcome.findings == []


def test_secrets_in_the_capture_behind_what_they_open(tmp_path: Path) -> None:
    """Live: a key log is written while packets are, the first block says that there is one."""
    one = filled(Secured())
    path = tmp_path / "a.pcapng"
    with path.open("wb") as file:
        writer = PcapngWriter(file, 1)
        writer.write_secrets(b"")
        for number, (ts, data) in enumerate(packets(one.talk(mss=60_000).segments)):
            if number == 12:
                writer.write_secrets(one.key_log)
            writer.write(ts, data)
    outcome = decode([path])
    assert multiset(outcome.exchanges) == multiset(in_the_clear().exchanges)
    assert outcome.findings == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [(None, "cannot be read"), (b"nothing\n", "not a TLS key log"), (b"", "not a TLS")],
)
def test_a_key_log_of_no_use_is_refused(text: bytes | None, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(CaptureError, match=reason):
        Decode([__file__], DecodeOptions(tls_keylog=str(path)))


def test_a_key_log_of_which_not_all_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_log, "MAX_SECRETS", 3)
    one = Secured().say(0, send(1).frame)
    outcome = opened(one, one.talk().segments, tmp_path)
    (said,) = [info for info in outcome.findings if info.conversation < 0]
    assert said.kind is FindingKind.TLS_SECRET_MISSING
    assert said.detail.startswith(f"{one.key_log.count(b'TRAFFIC') - 3} secrets of the key log")


@pytest.mark.parametrize("mss", [1448, 1])
@pytest.mark.parametrize("keys", [True, False])
def test_a_port_that_the_user_names_may_speak_tls(keys: bool, mss: int, tmp_path: Path) -> None:
    """So long a header is taken for one only where the user says what it is."""
    odd = replace(send(1), ext={"filler": "x" * (200_000 if mss > 1 else 100)})
    one = Secured().say(0, odd.frame).say(1, sent(1).frame)
    port = frozenset((BROKER.port,))
    segments = one.talk(mss=mss).segments
    outcome = opened(one if keys else Secured(), segments, tmp_path, decode_as=port)
    assert outcome.statuses == ({"answered": 1} if keys else {})
    assert outcome.stats.not_decoded == ({} if keys else {"TLS": 1})


def test_a_key_log_that_comes_later(tmp_path: Path) -> None:
    """Live: packets are there before what opens them was written."""
    one = filled(Secured())
    path = tmp_path / "keys.log"
    stages = ExchangeStages(frozenset(), KEEP_ALL, secrets=KeyLog(str(path), growing=True))
    reader = reader_of(0, pcap_of(one.talk().segments))
    assert reader is not None
    found = reader.receive(b"")
    stages.receive(found[:20])
    assert stages.take_exchanges() == []
    path.write_bytes(one.key_log)
    stages.receive(found[20:])
    stages.finish()
    assert multiset(stages.take_exchanges()) == multiset(in_the_clear().exchanges)


@examples(0.3)
@given(st.data())
def test_whatever_happens_to_the_packets(data: st.DataObject) -> None:
    """Orders, duplicates and cuts change nothing; a loss takes away, and never makes anything."""
    one = _session(data.draw(st.sampled_from([TLS_1_2, TLS_1_3])))
    talk = Talk(mss=data.draw(st.sampled_from([100, 536, 1448]))).open()
    for side, said in one.said:
        talk.say(side, said, acked=data.draw(st.booleans()))
    segments = data.draw(disturbed(talk.segments))
    whole = multiset(_clear().exchanges)
    assert multiset(_decoded(one, segments).exchanges) == whole
    lost = data.draw(st.sets(st.integers(0, len(segments) - 1), min_size=1, max_size=3))
    rest = [segment for at, segment in enumerate(segments) if at not in lost]
    outcome = _decoded(one, rest)
    assert {repr(command_of(pdu)) for pdu in outcome.pdus if not pdu.missing} <= {
        repr(command_of(pdu)) for pdu in _clear().pdus
    }


@examples(0.3)
@given(st.data())
def test_bytes_that_were_changed(data: st.DataObject) -> None:
    """Nothing that its tag does not prove is given, and nothing raises."""
    one = _session(data.draw(st.sampled_from([TLS_1_2, TLS_1_3])))
    said = [(side, bytearray(part)) for side, part in one.said]
    for _ in range(data.draw(st.integers(1, 4))):
        _, part = said[data.draw(st.integers(0, len(said) - 1))]
        part[data.draw(st.integers(0, len(part) - 1))] ^= data.draw(st.integers(1, 255))
    talk = Talk().open()
    for side, part in said:
        talk.say(side, bytes(part))
    outcome = _decoded(one, talk.segments)
    assert {repr(command_of(pdu)) for pdu in outcome.pdus if not pdu.missing} <= {
        repr(command_of(pdu)) for pdu in _clear().pdus
    }


@functools.cache
def _session(version: ssl.TLSVersion) -> Secured:
    one = Secured(version)
    for number in range(4):
        one.say(0, send(number, bytes(number * 500)).frame).say(1, sent(number, number).frame)
    return one


@functools.cache
def _clear() -> Outcome:
    talk = Talk().open()
    for number in range(4):
        talk.say(0, send(number, bytes(number * 500)).frame).say(1, sent(number, number).frame)
    return decode_segments(talk.segments)


def _decoded(one: Secured, segments: Sequence[Tcp]) -> Outcome:
    with tempfile.NamedTemporaryFile() as file:
        file.write(one.key_log)
        file.flush()
        return decode_bytes(pcap_of(segments), DecodeOptions(tls_keylog=file.name))

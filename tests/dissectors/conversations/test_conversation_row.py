"""TCP connections as rows: how they began and ended, what the network took, what was lost.

On the samples tshark is the oracle: `tests/dissectors/tcp/test_tshark.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.rows.conversation_facts import late_in, left_at
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS, ConversationRecord
from dissectors.rows.record import ExchangeRecord
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send as send_command
from tests.traffic.commands import sent as sent_command
from tests.traffic.talk import BROKER, CLIENT, SYN, End, Talk, Tcp, merged

SAMPLES = sorted(
    path
    for path in (Path(__file__).resolve().parents[3] / "samples").glob("*.pcap*")
    if path.suffix in (".pcap", ".pcapng")
)


def decoded(path: Path) -> tuple[list[ExchangeRecord], list[ConversationRecord]]:
    """Rows of both kinds."""
    decode = Decode([str(path)], DecodeOptions(conversations=True))
    exchanges: list[ExchangeRecord] = []
    rows: list[ConversationRecord] = []
    for batch in decode.records():
        exchanges += batch
        rows += decode.take_conversations()
    return exchanges, rows


@pytest.fixture
def rows_of(tmp_path: Path):
    def made(segments: Sequence[Tcp]) -> tuple[list[ExchangeRecord], list[ConversationRecord]]:
        path = tmp_path / "made.pcap"
        path.write_bytes(pcap_of(segments))
        return decoded(path)

    return made


def send(opaque: int, oneway: bool = False) -> bytes:
    return send_command(opaque, flag=2 if oneway else 0).frame


def sent(opaque: int) -> bytes:
    return sent_command(opaque).frame


def asked_and_answered() -> Talk:
    return Talk().open().say(0, send(1)).say(1, sent(1))


def test_a_whole_connection(rows_of) -> None:
    talk = asked_and_answered().close()
    exchanges, (row,) = rows_of(talk.segments)
    assert (row.client_address, row.server_address) == (str(CLIENT), str(BROKER))
    assert (row.protocol, row.start, row.end, row.ended_by) == (
        "ROCKETMQ",
        "handshake",
        "fin",
        "client",
    )
    assert (row.rtt_us, row.syn_rtt_us, row.ack_rtt_us) == (200, 100, 100)
    assert (row.syns, row.directions, row.commands) == (1, "both", 2)
    assert (row.client_packets, row.server_packets) == (3, 3)
    assert (row.client_bytes, row.server_bytes) == (len(send(1)), len(sent(1)))
    assert (row.start_time, row.end_time) == (talk.segments[0].ts, talk.segments[-2].ts)
    assert row.capture.endswith("made.pcap")
    assert [(one.rtt_us, one.end) for one in exchanges] == [(200, None)]


@pytest.mark.parametrize(
    ("segments", "end", "exchange_end"),
    [
        (Talk().open().say(0, send(1)).segments, "open", "open"),
        (Talk().open().say(0, send(1)).fin(1).segments, "fin", "closed"),
        (Talk().open().say(0, send(1)).reset(1).segments, "reset", "reset"),
    ],
    ids=["open", "closed", "reset"],
)
def test_how_the_connection_of_an_unanswered_request_ends(
    rows_of, segments: list[Tcp], end: str, exchange_end: str
) -> None:
    (exchange,), (row,) = rows_of(segments)
    assert (exchange.status, exchange.end, row.end) == ("unanswered", exchange_end, end)
    assert row.ended_by == (None if end == "open" else "server")


def test_an_answered_and_a_oneway_request_have_no_end(rows_of) -> None:
    talk = asked_and_answered().say(0, send(2, oneway=True)).reset(1)
    exchanges, _ = rows_of(talk.segments)
    assert [(one.status, one.end) for one in exchanges] == [("answered", None), ("oneway", None)]


def test_a_connection_that_is_refused(rows_of) -> None:
    talk = Talk()
    talk.add(0, SYN)
    talk.reset(1)
    _, (row,) = rows_of(talk.segments)
    assert (row.start, row.end, row.ended_by) == ("syn", "refused", "server")
    assert (row.protocol, row.rtt_us, row.commands) == ("no payload", None, 0)


def test_a_connection_that_nobody_answers(rows_of) -> None:
    talk = Talk()
    talk.add(0, SYN)
    repeated = replace(talk.segments[0], ts=talk.segments[0].ts + 10**9)
    _, (row,) = rows_of([*talk.segments, repeated])
    assert (row.end, row.syns, row.directions, row.ended_by) == ("no_response", 2, "client", None)
    assert row.end_time - row.start_time == 10**9


def test_a_repeated_syn_makes_the_round_trip_unknown(rows_of) -> None:
    talk = asked_and_answered()
    first = talk.segments[0]
    again = replace(first, ts=first.ts + 50_000)
    exchanges, (row,) = rows_of([first, again, *talk.segments[1:]])
    assert (row.syns, row.rtt_us, row.syn_rtt_us) == (2, None, None)
    assert exchanges[0].rtt_us is None


def test_a_handshake_without_duration_has_no_round_trip(rows_of) -> None:
    talk = asked_and_answered()
    begin = talk.segments[0].ts
    made = [replace(one, ts=begin) for one in talk.segments[:3]]
    exchanges, (row,) = rows_of([*made, *talk.segments[3:]])
    assert (row.start, row.rtt_us, row.syn_rtt_us, row.ack_rtt_us) == ("handshake", *[None] * 3)
    assert exchanges[0].rtt_us is None


def test_without_the_acknowledgement_of_the_handshake(rows_of) -> None:
    talk = asked_and_answered()
    del talk.segments[2]
    late = Talk(End("10.0.0.6", 4711), at=talk.now).open()
    late.ack(0)
    _, rows = rows_of(merged(talk, late))
    assert [(row.rtt_us, row.syn_rtt_us, row.ack_rtt_us) for row in rows] == [
        (None, 100, None),
        (200, 100, 100),
    ]


def test_windows_of_zero_and_retransmissions(rows_of) -> None:
    talk = asked_and_answered().ack(0)
    talk.segments[-1] = replace(talk.segments[-1], window=0)
    request = next(one for one in talk.segments if one.payload)
    talk.segments.append(replace(request, ts=talk.now))
    _, (row,) = rows_of(talk.segments)
    assert (row.client_zero_windows, row.server_zero_windows) == (1, 0)
    assert (row.client_retransmissions, row.server_retransmissions) == (1, 0)
    assert row.client_bytes == 2 * len(send(1))


def test_a_reset_with_window_zero_is_no_full_buffer(rows_of) -> None:
    talk = asked_and_answered().reset(1)
    talk.segments[-1] = replace(talk.segments[-1], window=0)
    _, (row,) = rows_of(talk.segments)
    assert (row.server_zero_windows, row.end) == (0, "reset")


def test_midstream_the_one_that_asks_is_the_client(rows_of) -> None:
    talk = Talk().say(1, sent(7)).say(0, send(8)).say(1, sent(8))
    _, (row,) = rows_of(talk.segments)
    assert (row.start, row.client_address, row.server_address) == (
        "midstream",
        str(CLIENT),
        str(BROKER),
    )


def test_connections_that_follow_each_other_on_the_same_ports(rows_of) -> None:
    first = asked_and_answered().reset(1)
    second = Talk(isn=(90_000, 80_000), at=first.now + 10**6).open().say(0, send(5))
    exchanges, rows = rows_of(merged(first, second))
    assert [(row.conversation, row.end) for row in rows] == [(0, "reset"), (1, "open")]
    assert [one.end for one in exchanges] == [None, "open"]


def test_nothing_is_kept_where_nobody_asks(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_of(asked_and_answered().close().segments))
    decode = Decode([str(path)])
    assert decode.take_conversations() == []
    assert sum(map(len, decode.records())) == 1
    assert decode.take_conversations() == []


def test_the_columns_are_the_fields() -> None:
    names = [column.name for column in CONVERSATION_COLUMNS]
    assert names == list(ConversationRecord.__struct_fields__)


def test_a_connection_that_was_idle_before_its_end_says_how_long(rows_of) -> None:
    talk = asked_and_answered()
    talk.now += 120_000_000_000
    _, (row,) = rows_of(talk.fin(1).segments)
    assert [one.split("=")[0] for one in row.facts] == ["idle_ms"]
    assert 120_000 <= int(row.facts[0].split("=")[1]) < 121_000


def test_first_bytes_of_what_nobody_knows_and_a_length_that_cannot_be(rows_of) -> None:
    _, (row,) = rows_of(Talk().open().say(0, b"\x7f\xff\xff\xff too long").close().segments)
    assert row.facts[0] == "first_bytes=7fffffff20746f6f206c6f6e67"


def test_what_an_end_sends_after_the_fin_of_the_other_one_is_counted(rows_of) -> None:
    talk = asked_and_answered().fin(1).say(0, send(2))
    _, (row,) = rows_of(talk.segments)
    assert row.facts == ["after_fin=1"]
    _, (row,) = rows_of(asked_and_answered().close().segments)
    assert row.facts == []


def test_how_long_a_connection_was_closing_where_the_other_end_was_late(rows_of) -> None:
    talk = asked_and_answered().fin(0)
    closed = talk.now
    talk.now += 3_000_000_000
    _, (row,) = rows_of(talk.fin(1).segments)
    (fact,) = row.facts
    assert fact.startswith("closing_us=30")
    assert closed - 1_000_000 < left_at(row) <= closed


def test_a_segment_that_the_other_end_had_not_received_a_while_later_is_late(rows_of) -> None:
    talk = Talk().open().say(0, send(1)).wait(80_000_000).say(1, sent(1)).say(0, send(2))
    talk.say(1, sent(2)).close()
    segments = list(talk.segments)
    data = [at for at, one in enumerate(segments) if one.payload]
    asked, answered = segments[data[0]], segments[data[1]]
    _, (row,) = rows_of(segments)
    assert late_in(row) == [], "its answer took long, and acknowledges it"
    segments[data[1]] = replace(answered, ack=asked.seq)
    _, (row,) = rows_of(segments)
    (late,) = late_in(row)
    assert (late.sender, late.number) == ("client", 1)
    assert late.most == (answered.ts - asked.ts) // 1000 * 1000

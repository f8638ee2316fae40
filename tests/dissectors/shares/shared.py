"""Captures decoded by ranges and shares, as a cluster does it, in this process; and by one."""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.expert import ExpertInfo
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.message_record import MessageRecord
from dissectors.rows.record import ExchangeRecord
from dissectors.shares.packed import PIECE
from dissectors.shares.range_reader import RangeReader
from dissectors.shares.ranges import CaptureRange
from dissectors.shares.share_decode import RangeBytes, ShareDecode, joined
from dissectors.shares.summary import RunLayout

Found = tuple[list[ExchangeRecord], list[ConversationRecord], list[ExpertInfo], list[MessageRecord]]
OPTIONS = DecodeOptions(conversations=True, messages=True)


def records_in(data: bytes) -> list[int]:
    """Return where the packets of a little-endian pcap or pcapng begin."""
    is_pcap = data[:4] != b"\x0a\x0d\x0d\x0a"
    header = 24 if data[:4] == b"\x34\xcd\xb2\xa1" else 16
    at, found = 24 if is_pcap else 0, []
    while at < len(data):
        if is_pcap or data[at] == 6:
            found.append(at)
        at += (
            header + struct.unpack_from("<I", data, at + 8)[0]
            if is_pcap
            else struct.unpack_from("<I", data, at + 4)[0]
        )
    return found


def ranges_at(captures: Sequence[Path], cuts: Sequence[Sequence[int]]) -> list[CaptureRange]:
    """Return ranges that begin at these places of each capture, and at its start."""
    found = []
    for index, (capture, inside) in enumerate(zip(captures, cuts, strict=True)):
        starts = [0, *sorted(set(inside))]
        data = capture.read_bytes()
        head = data[:24] if data[:4] != b"\x0a\x0d\x0d\x0a" else data[: records_in(data)[0]]
        for place, start in enumerate(starts):
            found.append(
                CaptureRange(
                    name=str(capture),
                    capture=index,
                    start=start,
                    ends=starts[place + 1 :],
                    head=head,
                    is_whole=len(starts) == 1,
                    is_alone=len(captures) == 1,
                )
            )
    return found


def by_shares(ranges: Sequence[CaptureRange], shares: int, by_hosts: bool = False) -> Found:
    """Return what the shares find together, connections numbered by their first packets."""
    streams: dict[int, list[RangeBytes]] = defaultdict(list)
    summaries = []
    for one in ranges:
        reader = RangeReader(one, shares, by_hosts)
        for share, piece in reader.pieces():
            assert len(piece) <= PIECE
            streams[share].append(((one.capture, one.start), piece))
        summaries.append(reader.summary())
    layout = RunLayout(summaries)
    assert not layout.is_split_wrongly
    names = list(dict.fromkeys(one.name for one in ranges))
    whole: Found = ([], [], [], [])
    for share in range(shares):
        stream = joined(streams[share])
        decode = ShareDecode(names, OPTIONS, layout, share, shares, stream)
        for rows, more in zip(whole, found_by(decode), strict=True):
            rows += more  # type: ignore[operator,arg-type]
    numbers = {first: n for n, first in enumerate(sorted(row.conversation for row in whole[1]))}
    for row in (*whole[0], *whole[1], *whole[3]):
        row.conversation = numbers[row.conversation]
    findings = [info._replace(conversation=numbers.get(info.conversation, -1)) for info in whole[2]]
    return whole[0], whole[1], findings, whole[3]


def found_by(decode: Decode) -> Found:
    """Return all that a run gives."""
    whole: Found = ([], [], [], [])
    for rows in decode.records():
        whole[0].extend(rows)
        for carried in decode.take_messages():
            whole[3].extend(carried.messages)
        whole[1].extend(decode.take_conversations())
        whole[2].extend(decode.take_experts())
    return whole


def by_one(captures: Sequence[Path]) -> Found:
    """Return what one process finds."""
    return found_by(Decode([str(capture) for capture in captures], OPTIONS))


def assert_alike(found: Found, expected: Found) -> None:
    """The same rows, in whatever order."""
    for mine, theirs in zip(found, expected, strict=True):
        assert Counter(map(repr, mine)) == Counter(map(repr, theirs))

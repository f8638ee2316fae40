"""Several processes give what one gives: rows, findings and figures, in the same order."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from struct import iter_unpack
from threading import Event, Thread
from typing import Any

import pytest
import zstandard

from dissectors.decode.exchange_row import settled_by
from dissectors.decode.pipeline import Carried, DecodeOptions, DecodeStats
from dissectors.decode.stages import ExchangeStages
from dissectors.findings import Finding
from dissectors.processes import children, choice, shared_decode
from dissectors.processes.children import ChildEnded
from dissectors.processes.choice import decode_of
from dissectors.processes.encoding import exchange_encoder, message_encoder
from dissectors.processes.shared_decode import SharedDecode
from dissectors.processes.task import MostHeld, RowRequest
from dissectors.processes.worker import work
from dissectors.remoting.framing.frame_decoder import KEEP_MESSAGES
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.encoded import Columns, EncodedRows, RowForm
from dissectors.rows.record import ExchangeRecord
from dissectors.tcp import source
from dissectors.tcp.capture import Packet
from dissectors.tcp.formats import reader_of
from dissectors.tcp.source import CaptureError

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
CAPTURES = [
    str(SAMPLES / f"{name}.pcap")
    for name in ("push-consumer-5x", "foreign-5x", "midstream-5x", "one-direction-5x", "removed-5x")
]


HOUR = 3_600_000_000_000
Ordered = list[tuple[tuple[int, int], int]]


@dataclass
class Run:
    """All that a run gives."""

    records: list[ExchangeRecord]
    findings: list[Finding]
    conversations: list[ConversationRecord]
    messages: list[Carried]
    stats: DecodeStats
    bytes_read: int


def run(jobs: int) -> Run:
    decode = decode_of(CAPTURES, DecodeOptions(conversations=True, messages=True), jobs)
    whole = Run([], [], [], [], decode.stats, 0)
    for batch in decode.records():
        whole.records += batch
        whole.findings += decode.take_findings()
        whole.conversations += decode.take_conversations()
        whole.messages += decode.take_messages()
    whole.findings += decode.take_findings()
    whole.conversations += decode.take_conversations()
    whole.bytes_read = decode.bytes_read
    return whole


@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.slow
def test_the_same_as_one_process(jobs: int) -> None:
    alone = run(1)
    assert len(alone.records) > 100
    assert alone.findings
    assert len(alone.messages) > 20
    assert len(alone.conversations) > 20
    assert run(jobs) == alone


@pytest.mark.slow
def test_packets_are_told_while_captures_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "CHUNK", 1000)
    monkeypatch.setattr(children, "has_one_thread", lambda: True)  # forked, they know of it
    decode = decode_of(CAPTURES, jobs=2)
    told = [decode.stats.packets for _ in decode.records()]
    assert told == sorted(told)
    assert len(set(told)) > 10
    assert told[-1] == sum(one.packets for one in decode.stats.captures)


@pytest.mark.slow
def test_what_is_no_capture_is_said(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no capture at all, but some lines of text\n")
    with pytest.raises(CaptureError, match="not a pcap"):
        list(decode_of([str(text)], jobs=2).records())


def test_standard_input_is_read_by_one_process() -> None:
    assert not isinstance(decode_of(["-"], jobs=2), SharedDecode)


def test_places_that_nobody_asks_for_are_not_kept() -> None:
    """A task of Spark decodes a shard as plain records: what it holds must not grow with them."""
    data = Path(CAPTURES[0]).read_bytes()
    reader = reader_of(0, data[:24])
    assert reader is not None
    stages = ExchangeStages(frozenset(), KEEP_MESSAGES, 0, 2)
    found = 0
    for at in range(24, len(data), 4096):
        stages.receive(reader.receive(data[at : at + 4096]))
        found += len(stages.exchanges)
        stages.take_exchanges()
        assert stages.take_ordered() == ([], b"")
    assert found > 10


def shard_of(packets: list[Packet], swept: set[int], shard: int, shards: int) -> Ordered:
    """Return the exchanges of a shard that sweeps behind some packets: (place, request)."""
    stages = ExchangeStages(frozenset(), KEEP_MESSAGES, shard, shards)
    for packet in packets:
        stages.receive([packet], 0, 1)
        if packet.packet in swept:
            stages.sweep(packet.ts + HOUR, packet.packet)
    stages.finish()
    exchanges, packed = stages.take_ordered()
    places = list(iter_unpack("<qq", packed)) or [(settled_by(one), 0) for one in exchanges]
    return [(place, settled_by(one)) for place, one in zip(places, exchanges, strict=True)]


@pytest.mark.parametrize("shards", [2, 3])
def test_a_sweep_comes_behind_the_results_of_its_packet(shards: int) -> None:
    """Here a sweep follows each packet that settles an exchange, and ends what is closed."""
    packets = []
    for number, name in enumerate(("go-client-5x", "outage-5x", "push-rebalance-4x")):
        data = (SAMPLES / f"{name}.pcap").read_bytes()
        reader = reader_of(number, data[:24])
        assert reader is not None
        packets += reader.receive(data[24:])
    swept = {packet for _, packet in shard_of(packets, set(), 0, 1)}
    alone = [packet for _, packet in shard_of(packets, swept, 0, 1)]
    assert alone != sorted(alone), "sweeps give out requests without answer"
    found = [one for shard in range(shards) for one in shard_of(packets, swept, shard, shards)]
    assert [packet for _, packet in sorted(found, key=itemgetter(0))] == alone


ALL_SAMPLES = sorted(str(path) for path in SAMPLES.glob("*.pcap*"))


def encoded(
    sources: list[str], jobs: int, form: RowForm, where: str = ""
) -> tuple[list[object], object, object]:
    """Return what a run says besides rows; its exchanges and messages as they are written."""
    decode = decode_of(sources, DecodeOptions(conversations=True, messages=True), jobs)
    assert isinstance(decode, SharedDecode)
    findings: list[Finding] = []
    conversations: list[ConversationRecord] = []
    rows: list[object] = []
    messages: list[object] = []
    for batch in decode.encoded_rows(RowRequest(form, where)):
        findings += decode.take_findings()
        conversations += decode.take_conversations()
        for found, one in ((rows, batch.rows), (messages, batch.messages)):
            if one is not None:
                found.append(_plain(one))
    findings += decode.take_findings()
    told = [findings, conversations, decode.stats, decode.bytes_read]
    return told, _joined(rows), _joined(messages)


def _joined(plain: Sequence[object]) -> object:
    if isinstance(plain[0], bytes):
        return b"".join(one for one in plain if isinstance(one, bytes))
    return [row for one in plain if isinstance(one, list) for row in one]


def _plain(rows: EncodedRows) -> object:
    return rows.data.to_pylist() if isinstance(rows, Columns) else rows.data


def expected(sources: list[str], form: RowForm) -> tuple[list[object], object, object]:
    """Return the same of one process: findings and the like, the exchanges, the messages."""
    decode = decode_of(sources, DecodeOptions(conversations=True, messages=True))
    findings: list[Finding] = []
    conversations: list[ConversationRecord] = []
    rows, messages = [], []
    for batch in decode.records():
        rows += batch
        messages += [row for one in decode.take_messages() for row in one.messages]
        findings += decode.take_findings()
        conversations += decode.take_conversations()
    findings += decode.take_findings()
    return (
        [findings, conversations, decode.stats, decode.bytes_read],
        _plain(exchange_encoder(form).whole(rows)),
        _plain(message_encoder(form).whole(messages)),
    )


@pytest.mark.slow
def test_every_sample_as_of_one_process() -> None:
    assert encoded(ALL_SAMPLES, 3, RowForm.jsonl) == expected(ALL_SAMPLES, RowForm.jsonl)


def findings_by_batch() -> list[list[Finding]]:
    decode = decode_of(CAPTURES, DecodeOptions(messages=True), 2)
    assert isinstance(decode, SharedDecode)
    rows = decode.encoded_rows(RowRequest(RowForm.jsonl))
    return [found for found in (decode.take_findings() for _ in rows) if found]


@pytest.mark.slow
def test_many_findings_do_not_wait_for_the_rows_of_their_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_group = findings_by_batch()
    monkeypatch.setattr(shared_decode, "MOST_FINDINGS", 1)
    by_chunk = findings_by_batch()
    assert len(by_chunk) > len(by_group) > 1
    found = run(1).findings
    assert [info for some in by_chunk for info in some] == found
    assert [info for some in by_group for info in some] == found


@pytest.mark.parametrize("form", [RowForm.jsonl, RowForm.arrow])
@pytest.mark.slow
def test_compressed_captures_are_read_once_for_all(tmp_path: Path, form: RowForm) -> None:
    names = []
    for number, (name, pack) in enumerate(
        zip(CAPTURES, (gzip.compress, zstandard.compress, bytes, gzip.compress), strict=False)
    ):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(pack(Path(name).read_bytes()))
        names.append(str(path))
    (tmp_path / "0.pcap").write_bytes(Path(names[0]).read_bytes()[:-9])  # its end is missing
    assert encoded(names, 2, form) == expected(names, form)


@pytest.mark.parametrize("limit", range(4))
@pytest.mark.slow
def test_a_limit_of_the_run_is_that_of_one_process(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Where the processes together may have reached it, one goes on alone, from the beginning."""
    most = MostHeld(*(-1 if place == limit else 1 << 60 for place in range(len(MostHeld._fields))))
    monkeypatch.setattr(shared_decode, "LIMITS", most)
    assert run(2) == run(1)
    assert encoded(CAPTURES, 2, RowForm.jsonl) == expected(CAPTURES, RowForm.jsonl)


@pytest.mark.slow
def test_a_filter_is_applied_by_the_processes() -> None:
    everything = run(1)
    where = "status == answered and request_code == 310"
    rows = [one for one in everything.records if one.status == "answered"]
    rows = [one for one in rows if one.request_code == 310]
    assert 0 < len(rows) < len(everything.records)
    numbers = set(map(id, rows))
    carried = [one for one in everything.messages if id(one.exchange) in numbers]
    _, exchanges, messages = encoded(CAPTURES, 2, RowForm.jsonl, where)
    assert exchanges == exchange_encoder(RowForm.jsonl).whole(rows).data
    expected_messages = [row for one in carried for row in one.messages]
    assert messages == message_encoder(RowForm.jsonl).whole(expected_messages).data


@pytest.mark.slow
def test_a_process_that_was_killed_is_said() -> None:
    decode = decode_of(CAPTURES, jobs=2)
    assert isinstance(decode, SharedDecode)
    decode.children[1].kill()
    with pytest.raises(ChildEnded, match="signal 9"):
        list(decode.records())


@pytest.mark.slow
def test_no_process_is_left() -> None:
    decode = decode_of(CAPTURES, jobs=2)
    assert isinstance(decode, SharedDecode)
    numbers = [child.pid for child in decode.children]
    rows = decode.records()
    next(rows)
    assert isinstance(rows, Generator)
    rows.close()
    unused = decode_of(CAPTURES, jobs=2)
    assert isinstance(unused, SharedDecode)
    numbers += [child.pid for child in unused.children]
    del unused
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("failing", "at"), [("fork", 1), ("pipe", 2), ("pipe", 3)])
def test_no_process_is_left_if_another_cannot_be_started(
    monkeypatch: pytest.MonkeyPatch, failing: str, at: int
) -> None:
    calls: dict[str, list[Any]] = {"fork": [], "pipe": []}

    def watched(name: str, real: Callable[[], object]) -> object:
        if name == failing and len(calls[name]) == at:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        calls[name].append(real())
        return calls[name][-1]

    monkeypatch.setattr(children, "has_one_thread", lambda: True)
    for name in calls:
        monkeypatch.setattr(os, name, partial(watched, name, getattr(os, name)))
    before = os.listdir("/proc/self/fd")
    with pytest.raises(BlockingIOError):
        children.start_children(2, work)
    assert os.listdir("/proc/self/fd") == before
    (number,) = calls["fork"]
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


@pytest.mark.slow
def test_beside_another_thread_python_is_started_anew() -> None:
    over = Event()
    other = Thread(target=over.wait)
    other.start()
    try:
        decode = decode_of(CAPTURES, jobs=2)
        assert isinstance(decode, SharedDecode)
        assert all(child.spawned is not None for child in decode.children)
        rows = [row for batch in decode.records() for row in batch]
    finally:
        over.set()
        other.join()
    assert rows == run(1).records


def test_as_many_processes_as_pay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "cores", lambda: 3)
    assert not isinstance(decode_of(CAPTURES, jobs=None), SharedDecode)
    large = tmp_path / "large.pcap"
    with large.open("wb") as file:
        file.truncate(choice.PAYING_BYTES)
    decode = decode_of([str(large)], jobs=None)
    assert isinstance(decode, SharedDecode)
    assert decode.jobs == 3
    monkeypatch.setattr(choice, "cores", lambda: 1)
    assert not isinstance(decode_of([str(large)], jobs=None), SharedDecode)


@pytest.mark.slow
def test_no_module_comes_from_the_folder_that_somebody_works_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "msgspec.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    records = [one for batch in decode_of([CAPTURES[0]], jobs=2).records() for one in batch]
    assert records == [one for batch in decode_of([CAPTURES[0]]).records() for one in batch]
    assert not (tmp_path / "ran").exists()


def message_lines(
    jobs: int, since: int | None = None
) -> tuple[bytes, int, list[Finding], DecodeStats]:
    """Return the messages of a run as lines, how many there are, and what else it says."""
    decode = decode_of(CAPTURES, DecodeOptions(messages=True, since=since), jobs)
    assert isinstance(decode, SharedDecode) == (jobs > 1)
    lines, count, findings = b"", 0, []
    for one in decode.message_lines():
        lines += one.data
        count += sum(one.counts)
        findings += decode.take_findings()
    findings += decode.take_findings()
    return lines, count, findings, decode.stats


@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.slow
def test_messages_as_lines(jobs: int) -> None:
    alone = message_lines(1)
    assert alone[1] == alone[0].count(b"\n") > 20
    assert alone[2]
    assert message_lines(jobs) == alone


@pytest.mark.slow
def test_messages_as_lines_of_a_time() -> None:
    times = sorted(one.request_time for one in run(1).records if one.request_time is not None)
    since = times[len(times) // 2]
    alone = message_lines(1, since)
    assert 0 < alone[1] < message_lines(1)[1]
    assert message_lines(2, since) == alone


@pytest.mark.slow
def test_messages_as_lines_near_a_limit_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = message_lines(1)
    monkeypatch.setattr(shared_decode, "LIMITS", MostHeld(-1, *[1 << 60] * 6))
    assert message_lines(2) == alone

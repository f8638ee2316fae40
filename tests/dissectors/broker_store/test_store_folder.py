"""The files beside a commit log: queues, index, offsets; whole, cut, garbled, and hostile."""

from __future__ import annotations

import gc
import os
import random
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors import budget
from dissectors.broker_store import half_messages
from dissectors.broker_store.commit_log import log_files
from dissectors.broker_store.evidence import StoreEvidence, evidence_in
from dissectors.broker_store.group_offsets import GroupOffset, offsets_of
from dissectors.broker_store.half_messages import ABANDONED, ENDED
from dissectors.broker_store.indexes import key_hash
from dissectors.broker_store.store_decode import StoreDecode
from dissectors.broker_store.store_folder import IN_QUEUE, NOT_IN_INDEX, NOT_IN_QUEUE
from dissectors.broker_store.store_folder import store_in as opened
from dissectors.decode.pipeline import DecodeOptions
from dissectors.remoting.ids.message_ids import encode_offset_id
from dissectors.remoting.messages.batch import BatchItem, encode_batch
from dissectors.remoting.messages.message import StoredMessage
from dissectors.remoting.sysflag import UNWRAP_BITS
from dissectors.remoting.topic_names import CHECKED_OUT_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC
from dissectors.rows.message_record import MessageRecord
from dissectors.tcp.source import CaptureError

from .made_store import HOST, SECOND, commit, half, message, offsets_text, op, store_in, write_index

OFFSETS = {"Orders@billing": {0: 2, 1: 0}, "Audit@x": {0: 9}}
NS = 1_000_000_000


def whole(folder: Path) -> Path:
    """Write a store with all files."""
    return store_in(
        folder,
        *(message("Orders", "a"), message("Orders", "b"), message("Audit", "c", b"x" * 3900)),
        *(half("Orders", "H1"), half("Orders", "H2"), op(3, 4)),
        queues=True,
        index=True,
        offsets=OFFSETS,
    )


def rows_of(store: Path, body_limit: int = 0) -> list[MessageRecord]:
    decode = StoreDecode(opened(str(store)), DecodeOptions(body_limit=body_limit))
    return [row for rows in decode.message_rows() for row in rows]


def evidence(store: Path, **messages: str) -> StoreEvidence:
    found = evidence_in([str(store)])
    found.look_up(messages)
    return found


def outcomes(store: Path, *keys: str) -> dict[str, str | None]:
    halves = evidence(store, **dict.fromkeys(keys, "Orders")).halves
    return {key: one.outcome for key, one in halves.items()}


# What a store says


def test_compressed_bodies_do_not_use_up_the_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each record adds to what may be decompressed, as do the bytes of a capture."""
    monkeypatch.setattr(budget, "FREE_BYTES", 2000)
    body = b"text " * 200
    packed = message("Orders", "a", zlib.compress(body))
    packed = msgspec.structs.replace(packed, sys_flag=packed.sys_flag | 0x301)
    store = store_in(tmp_path, *[packed] * 10)
    assert [row.body for row in rows_of(store, 5000)] == [body.decode()] * 10
    items = encode_batch([BatchItem(b"x" * 900, {"UNIQ_KEY": f"K{one}"}) for one in range(2)])
    batch = message("Orders", "b", zlib.compress(items))
    batch = msgspec.structs.replace(batch, sys_flag=UNWRAP_BITS | 0x301)
    store = store_in(tmp_path / "batches", *[batch] * 5)
    assert len(rows_of(store)) == 10
    assert len(evidence(store, K1="Orders").copies["K1"]) == 5


def test_queue_and_index_of_each_message(tmp_path: Path) -> None:
    store = opened(str(whole(tmp_path)))
    records = [one.entry.message for one in store.records()]
    assert [store.remark_of(one) for one in records if one] == [IN_QUEUE] * 6
    assert [store.indexed(one) for one in records if one] == [True] * 5 + [None]


@pytest.mark.parametrize("size", [0, 10, 20, 30, 40, 120])
def test_a_queue_that_is_cut_shows_what_it_has(tmp_path: Path, size: int) -> None:
    folder = whole(tmp_path)
    path = folder / "consumequeue" / "Orders" / "0" / f"{0:020d}"
    path.write_bytes(path.read_bytes()[:size])
    said = [row.remark for row in rows_of(folder) if row.topic == "Orders"]
    assert said[:2] == [IN_QUEUE if size >= 20 * (one + 1) else NOT_IN_QUEUE for one in range(2)]


def test_a_queue_whose_first_file_is_gone(tmp_path: Path) -> None:
    folder = whole(tmp_path)
    queue = folder / "consumequeue" / "Orders" / "0"
    data = (queue / f"{0:020d}").read_bytes()
    (queue / f"{0:020d}").rename(queue / f"{20:020d}")
    (queue / f"{20:020d}").write_bytes(data[20:])
    assert [row.remark for row in rows_of(folder) if row.topic == "Orders"][:2] == [
        NOT_IN_QUEUE,
        IN_QUEUE,
    ]


def test_a_message_that_the_index_lacks(tmp_path: Path) -> None:
    folder = store_in(tmp_path, message("Orders", "a"), message("Orders", "b"), queues=True)
    first = next(iter(opened(str(folder)).records())).entry.message
    assert first is not None
    write_index(folder, [first])
    assert [row.remark for row in rows_of(folder)] == [IN_QUEUE, f"{IN_QUEUE}; {NOT_IN_INDEX}"]
    shutil.rmtree(folder / "index")
    (folder / "index").mkdir()  # as of a broker that keeps it in RocksDB
    assert [row.remark for row in rows_of(folder)] == [IN_QUEUE] * 2


def test_an_index_of_unknown_layout_says_nothing(tmp_path: Path) -> None:
    folder = whole(tmp_path)
    (path,) = (folder / "index").iterdir()
    path.write_bytes(path.read_bytes()[:-20])
    store = opened(str(folder))
    assert "its layout is unknown" in store.notes[0]
    assert {row.remark for row in rows_of(folder) if row.event == "on_disk"} == {IN_QUEUE}


@pytest.mark.parametrize(
    ("text", "value"),
    # by Math.abs of java.lang.String.hashCode
    [("", 0), ("a#b", 94_400), ("TopicTest#k", 1_247_014_569), ("主题#😀", 1_813_919_255)],
)
def test_the_hash_of_a_key(text: str, value: int) -> None:
    assert key_hash(text) == value


def test_the_smallest_hash_has_no_opposite() -> None:
    assert key_hash("polygenelubricants") == 0  # Java's abs of it is negative


def test_the_index_has_what_the_copied_log_lacks(tmp_path: Path) -> None:
    folder = whole(tmp_path)
    (folder / "commitlog" / f"{0:020d}").unlink()
    found = evidence(folder, AAa="Orders", AAc="Audit", AAz="Orders")
    (copy,) = found.copies_of("AAa", "Orders")
    assert (copy.in_log, copy.time, copy.offset) == (False, SECOND * NS, 0)
    (kept,) = found.copies_of("AAc", "Audit")
    assert kept.in_log
    assert found.copies_of("AAz", "Orders") == []


def test_offsets_of_groups(tmp_path: Path) -> None:
    folder = whole(tmp_path)
    store = opened(str(folder))
    assert offsets_of(store.offsets, "Orders", 0) == [GroupOffset("Orders", 0, "billing", 2)]
    assert offsets_of(store.offsets, "Orders", 7) == []
    found = evidence(folder, AAa="Orders", AAc="Audit")
    (copy,) = found.copies_of("AAa", "Orders")
    assert found.passed_by(copy) == (["billing"], [])
    assert found.passed_by(copy._replace(queue_offset=2)) == ([], ["billing"])


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\0" * 50, b'{"offsetTable":3}'])
def test_the_backup_of_offsets_is_read_instead(tmp_path: Path, damage: bytes) -> None:
    folder = whole(tmp_path)
    (folder / "config" / "consumerOffset.json").write_bytes(damage)
    assert opened(str(folder)).offsets == []
    backup = folder / "config" / "consumerOffset.json.bak"
    backup.write_text(offsets_text(OFFSETS))
    store = opened(str(folder))
    assert len(store.offsets) == 3
    assert "not a table of consumer offsets" in store.notes[0]


# Half messages


def test_a_check_does_not_end_a_half_message(tmp_path: Path) -> None:
    given_up = StoredMessage(CHECKED_OUT_TOPIC, properties={"UNIQ_KEY": "B"})
    folder = store_in(
        *(tmp_path, half("Orders", "A"), half("Orders", "A", 1), half("Orders", "B")),
        *(half("Orders", "A", 2), op(3), given_up),
    )
    assert outcomes(folder, "A", "B") == {"A": "rolled_back", "B": ABANDONED}
    found = evidence(folder, A="Orders")
    assert found.halves["A"].checks == 2
    assert found.halves["A"].time == (SECOND + 4) * NS
    assert len(found.copies_of("A", "Orders")) == 1


def test_damage_between_leaves_the_end_unknown(tmp_path: Path) -> None:
    folder = store_in(tmp_path, half("Orders", "A"), message("Orders", "x"), op(0))
    assert outcomes(folder, "A") == {"A": "rolled_back"}
    path = folder / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    at = next(one.entry.offset for one in opened(str(folder)).records() if one.entry.message
              and one.entry.message.topic == "Orders")  # fmt: skip
    data[at + 4] ^= 1
    path.write_bytes(data)
    assert outcomes(folder, "A") == {"A": ENDED}
    assert [row.event for row in rows_of(folder)] == ["on_disk"] * 2


def test_a_missing_file_leaves_the_end_unknown(tmp_path: Path) -> None:
    big = [message("Orders", str(number), b"x" * 3000) for number in range(3)]
    folder = store_in(tmp_path, half("Orders", "A"), *big, op(0))
    assert outcomes(folder, "A") == {"A": "rolled_back"}
    assert evidence(folder, A="Orders").covers(HOST, SECOND * NS)
    Path(log_files(str(folder))[1]).unlink()
    assert outcomes(folder, "A") == {"A": ENDED}
    assert not evidence(folder, A="Orders").covers(HOST, SECOND * NS)
    assert "bytes of the commit log are missing between" in opened(str(folder)).notes[0]


def test_a_file_that_is_deleted_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    """As a running broker deletes expired ones."""
    messages = [message("Orders", str(number), b"x" * 3000) for number in range(2)]
    store = opened(str(store_in(tmp_path, *messages)))
    records = store.records()
    next(records)
    Path(store.files[0]).unlink()
    with pytest.raises(CaptureError, match="No such file"):
        list(records)


def test_a_half_written_end_hides_nothing_before_it(tmp_path: Path) -> None:
    folder = store_in(tmp_path, *[message("Orders", key) for key in "abc"])
    path = folder / "commitlog" / f"{0:020d}"
    entries = [one.entry for one in opened(str(folder)).records()]
    path.write_bytes(path.read_bytes()[: entries[2].offset + 60])
    found = evidence(folder, AAx="Orders")
    assert found.covers(HOST, (SECOND + 1) * NS)
    data = bytearray(path.read_bytes())
    data[entries[0].offset + 4] ^= 1
    path.write_bytes(data)
    assert not evidence(folder, AAx="Orders").covers(HOST, (SECOND + 1) * NS)


def test_the_commit_of_another_message_does_not_count(tmp_path: Path) -> None:
    folder = store_in(tmp_path, half("Orders", "A"), commit("Orders", "B", 0), op(0))
    assert outcomes(folder, "A", "B") == {"A": "rolled_back"}


def test_half_messages_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half_messages, "MOST_HALVES", 2)
    folder = store_in(tmp_path, *[half("Orders", key) for key in "ABC"], op(0, 1, 2))
    assert outcomes(folder, "A", "B", "C") == {"A": None, "B": "rolled_back", "C": "rolled_back"}


def test_a_delayed_message_is_one_copy(tmp_path: Path) -> None:
    waiting = message(SCHEDULE_TOPIC, "a", REAL_TOPIC="Orders")
    folder = store_in(tmp_path, waiting, message("Orders", "a"), message("%RETRY%g", "a"))
    found = evidence(folder, AAa="Orders")
    assert [one.topic for one in found.copies_of("AAa", "Orders")] == ["Orders"]
    found = evidence(store_in(tmp_path / "waits", waiting), AAa="Orders")
    (copy,) = found.copies_of("AAa", "Orders")
    assert copy.topic == SCHEDULE_TOPIC
    answered = encode_offset_id(copy.broker, copy.offset)
    assert answered is not None
    assert evidence(folder, AAa="Orders").number_stored("AAa", "Orders", {answered}) == 1


def test_a_committed_message_is_one_copy(tmp_path: Path) -> None:
    folder = store_in(
        tmp_path, half("Orders", "A"), half("Orders", "A", 1), commit("Orders", "A", 0)
    )
    found = evidence(folder, A="Orders")
    answered = encode_offset_id(HOST, 0)
    assert answered is not None
    assert found.number_stored("A", "Orders", {answered}) == 1
    assert found.number_stored("A", "Orders", ()) == 1
    elsewhere = encode_offset_id("10.0.0.9:10911", 0)
    assert elsewhere is not None
    assert found.number_stored("A", "Orders", {elsewhere}) == 2


def test_a_timer_stores_a_message_each_time_it_rolls(tmp_path: Path) -> None:
    waiting = message(TIMER_TOPIC, "a", REAL_TOPIC="Orders")
    found = evidence(store_in(tmp_path, waiting, waiting), AAa="Orders")
    assert len(found.copies_of("AAa", "Orders")) == 1
    assert found.number_stored("AAa", "Orders", ()) == 1


def test_what_a_store_covers(tmp_path: Path) -> None:
    found = evidence(whole(tmp_path), AAa="Orders")
    assert found.covers(HOST, SECOND * NS)
    assert found.covers("10.0.0.2:10909", (SECOND + 5) * NS)  # the VIP channel
    assert not found.covers(HOST, (SECOND + 6) * NS)
    assert not found.covers(HOST, (SECOND - 1) * NS)
    assert not found.covers("10.0.0.3:10911", SECOND * NS)
    assert not found.covers("nonsense", SECOND * NS)


# Hostile files


def test_links_pipes_and_devices_are_not_followed(tmp_path: Path) -> None:
    outside = whole(tmp_path / "outside")
    folder = store_in(tmp_path / "inside", message("Orders", "a"))
    log = folder / "commitlog"
    (log / f"{4096:020d}").symlink_to(outside / "commitlog" / f"{4096:020d}")
    os.mkfifo(log / f"{8192:020d}")
    (log / f"{12288:020d}").symlink_to("/dev/zero")
    (folder / "consumequeue").symlink_to(outside / "consumequeue")
    (folder / "index").mkdir()
    os.mkfifo(folder / "index" / "20261118000000000")
    (folder / "config").mkdir()
    os.mkfifo(folder / "config" / "consumerOffset.json")
    (folder / "config" / "consumerOffset.json.bak").symlink_to("/dev/zero")
    store = opened(str(folder))
    assert len(store.files) == 1
    assert store.queues is None
    assert store.offsets == []
    assert [row.remark for row in rows_of(folder)] == [None]
    shutil.rmtree(log)
    log.symlink_to(outside / "commitlog")
    with pytest.raises(CaptureError, match="a symbolic link, which is not followed"):
        opened(str(folder))


@pytest.mark.parametrize("topic", ["..", "../../secret", "a\0b", "x" * 300, "é" * 200, "."])
def test_a_topic_leads_to_no_other_folder(tmp_path: Path, topic: str) -> None:
    (tmp_path / "secret" / "0").mkdir(parents=True)
    folder = store_in(tmp_path, message("Orders", "a"), queues=True)
    found = opened(str(folder))
    record = next(iter(found.records())).entry.message
    assert record is not None
    assert found.queues is not None
    assert not found.queues.has(topic, 0, 0, record.physical_offset)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc here")
def test_files_do_not_stay_open(tmp_path: Path) -> None:
    folder = whole(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        assert len(rows_of(folder)) > 6
        assert evidence(folder, AAa="Orders").copies
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_chain_that_leads_back_ends(tmp_path: Path) -> None:
    folder = whole(tmp_path)
    (path,) = (folder / "index").iterdir()
    data = bytearray(path.read_bytes())
    for entry in range(1, 10):
        struct.pack_into(">i", data, 40 + 4 * 7 + 20 * entry + 16, entry)
    path.write_bytes(data)
    assert len(rows_of(folder)) > 6


FILES: list[Callable[[Path], Path]] = [
    lambda root: root / "commitlog" / f"{0:020d}",
    lambda root: root / "consumequeue" / "Orders" / "0" / f"{0:020d}",
    lambda root: next((root / "index").iterdir()),
    lambda root: root / "config" / "consumerOffset.json",
]


@given(
    st.integers(0, len(FILES) - 1),
    st.integers(0, 5000),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=20),
)
def test_cut_and_garbled_files_never_fail(
    tmp_path_factory: pytest.TempPathFactory,
    file: int,
    size: int,
    changes: list[tuple[int, int]],
) -> None:
    folder = whole(tmp_path_factory.mktemp("store"))
    path = FILES[file](folder)
    data = bytearray(path.read_bytes()[:size])
    for at, value in changes:
        if at < len(data):
            data[at] = value
    path.write_bytes(data)
    intact = rows_of(folder)
    assert all(
        row.event in ("on_disk", "rolled_back", "committed", "acknowledged") for row in intact
    )
    found = evidence(folder, AAa="Orders", H1="Orders")
    for copy in found.copies_of("AAa", "Orders"):
        found.passed_by(copy)


@given(st.integers())
def test_files_of_noise(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    noise = random.Random(seed)
    folder = whole(tmp_path_factory.mktemp("store"))
    for path in FILES[1:]:
        path(folder).write_bytes(noise.randbytes(noise.randrange(3000)))
    assert sum(row.event == "on_disk" for row in rows_of(folder)) == 6


def test_a_queue_offset_beyond_all_files_is_not_in_the_queue(tmp_path: Path) -> None:
    store = whole(tmp_path)
    log = store / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    data[20:28] = b"\x7f" * 8  # the queue offset of the first record
    log.write_bytes(data)
    assert rows_of(store)[0].queue_offset == int.from_bytes(b"\x7f" * 8, "big")
    record = next(opened(str(store)).records()).entry.message
    assert record is not None
    assert opened(str(store)).visible(record) is False

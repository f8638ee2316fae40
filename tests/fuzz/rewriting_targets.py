"""What is fuzzed of code that writes what it read: anonymized captures, a proxy; and broker stores.

The first byte of an input says which of the forms the rest has.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from dissectors.anonymize.capture import CaptureAnonymizer
from dissectors.anonymize.pseudonyms import Pseudonyms
from dissectors.anonymize.rows import RowsError, rewrite_rows
from dissectors.broker_store.evidence import evidence_in
from dissectors.broker_store.store_decode import StoreDecode
from dissectors.broker_store.store_folder import store_in
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.rows.message_record import MessageRecord
from dissectors.tcp.source import CaptureError
from replay.proxy.grpc_relay import GrpcRelay
from replay.sandbox.room import Room
from tests.replay.proxy.test_relay import Sides

from .capture_targets import called, said

STORE_FILES = ("commitlog/{:020d}", "consumequeue/T/0/{:020d}", "index/20261118000000000")
"""files of a store whose sizes an input says, in their order; the offsets of groups are the rest"""
OFFSETS = "config/consumerOffset.json"
_SECRET = b"the same in each run"


def anonymized(data: bytes) -> None:
    """A capture, a call, or what two ends say: its copy is a capture with as many packets."""
    if not data:
        return
    capture = (lambda it: it, called, said)[data[0] % 3](data[1:])
    with TemporaryDirectory() as folder:
        path = Path(folder, "in.pcap")
        path.write_bytes(capture)
        out = BytesIO()
        with suppress(CaptureError):
            done = CaptureAnonymizer(Pseudonyms(_SECRET)).write(str(path), out)
            copy = Path(folder, "out.pcapng")
            copy.write_bytes(out.getvalue())
            run = Decode([str(copy)])
            for _ in run.commands():
                pass
            assert run.stats.packets == done.packets


def stores(data: bytes) -> None:
    """Sizes of three files of a store, then the files and the offsets of groups."""
    if len(data) < 6:
        return
    sizes, at = struct.unpack(">HHH", data[:6]), 6
    with TemporaryDirectory() as folder:
        for name, size in zip(STORE_FILES, sizes, strict=True):
            _write(Path(folder, name.format(0)), data[at : at + size])
            at += size
        _write(Path(folder, OFFSETS), data[at:])
        with suppress(CaptureError):
            run = StoreDecode(store_in(folder), DecodeOptions())
            rows = [row for batch in run.message_rows() for row in batch]
            assert all(isinstance(row, MessageRecord) for row in rows)
            evidence = evidence_in([folder])
            keys = {row.unique_key: row.topic or "T" for row in rows if row.unique_key}
            evidence.look_up(keys or {"KEY": "T"})
            for key, topic in keys.items():
                for copy in evidence.copies_of(key, topic):
                    evidence.passed_by(copy)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def relayed(data: bytes) -> None:
    """What client and server say through a proxy: all bytes of the client arrive, unchanged.

    The proxy knows RocketMQ's protocol, or gRPC if the first byte is odd. Then pieces follow: the
    side, the length, and the bytes.
    """
    if not data:
        return
    sides = Sides(Room())
    relay = (
        GrpcRelay(sides, lambda host, port, dialled: ("127.0.0.1", 1), sides.room)
        if data[0] & 1
        else sides.relay
    )
    asked, at = b"", 1
    while at + 3 <= len(data):
        side, size = struct.unpack_from(">BH", data, at)
        piece = data[at + 3 : at + 3 + size]
        at += 3 + size
        if side & 1:
            relay.from_server(piece)
        else:
            relay.from_client(piece)
            asked += piece
    relay.close()
    assert sides.server == asked
    assert sides.room.used == 0


def rows(data: bytes) -> None:
    """Rows of an exchange or a message as JSON lines, whose texts are replaced."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "rows.jsonl")
        path.write_bytes(data)
        with suppress(RowsError):
            rewrite_rows(path, BytesIO(), Pseudonyms(_SECRET))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "anonymized": anonymized,
    "stores": stores,
    "relayed": relayed,
    "rows": rows,
}
"""name and what takes the bytes"""

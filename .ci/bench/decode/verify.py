"""What a decoder found, read back from its output and compared with the ground truth.

Every output is reduced to the same few figures. An exchange row has the codes, the opaque and the
frame sizes of both commands, and its status tells the flags, so the identity of each command can
be had from it too.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.captures.captures import Capture
from bench.captures.truth import identity_hash

SEPARATOR = "\x1f"
"""Between the values of several commands in one packet, in tshark's output."""


@dataclass(slots=True)
class Found:
    """Figures of one output; None where that output does not have them."""

    commands: int | None = 0
    """Commands, or requests and responses of exchanges."""
    multiset: int = 0
    """Sum of their identity hashes, modulo 2**64."""
    body_bytes: int | None = None
    """Bytes of all bodies."""
    exchanges: Counter[str] | None = None
    """Number of exchanges by status."""
    messages_in_pulls: int | None = None
    """Messages in the bodies of pull responses."""

    def add(self, code: int, opaque: int, flag: int, length: int) -> None:
        """Count one command; `length` is the value of its length prefix."""
        self.commands = (self.commands or 0) + 1
        self.multiset = (self.multiset + identity_hash(code, opaque, flag, length)) % (1 << 64)


def differences(found: Found, capture: Capture) -> list[str]:
    """Return one line for each figure that is not as in the ground truth; empty when all are."""
    pairs: list[tuple[str, object, object]] = []
    if found.commands is not None:
        pairs.append(("commands", found.commands, capture.count("commands")))
        pairs.append(("multiset", f"{found.multiset:016x}", capture.truth["multiset"]))
    for name in ("body_bytes", "messages_in_pulls"):
        value = getattr(found, name)
        if value is not None:
            pairs.append((name, value, capture.count(name)))
    if found.exchanges is not None:
        pairs.append(("exchanges", dict(found.exchanges), capture.table("exchanges")))
    return [f"{name}: {got}, should be {want}" for name, got, want in pairs if got != want]


def found_in_exchanges(rows: Iterable[Mapping[str, object]]) -> Found:
    """Return the figures of rows with the columns of `ExchangeRecord`."""
    found = Found(exchanges=Counter(), messages_in_pulls=0)
    assert found.exchanges is not None
    assert found.messages_in_pulls is not None
    for row in rows:
        status = str(row["status"])
        found.exchanges[status] += 1
        opaque = _number(row, "opaque")
        if status != "orphan":
            flag = 2 if status == "oneway" else 0
            length = _number(row, "request_bytes") - 4
            found.add(_number(row, "request_code"), opaque, flag, length)
        if status in ("answered", "orphan"):
            length = _number(row, "response_bytes") - 4
            found.add(_number(row, "response_code"), opaque, 1, length)
        if row.get("request_code") == 11 and row.get("response_code") == 0:
            found.messages_in_pulls += _number(row, "message_count")
    return found


def found_in_messages(rows: Iterable[Mapping[str, object]]) -> Found:
    """Return the figures of rows with the columns of `MessageRecord`."""
    found = Found(commands=None, messages_in_pulls=0)
    assert found.messages_in_pulls is not None
    for row in rows:
        if row["event"] == "delivered" and row["request_name"] == "PULL_MESSAGE":
            found.messages_in_pulls += 1
    return found


def _number(row: Mapping[str, object], name: str) -> int:
    value = row.get(name)
    return value if isinstance(value, int) else -1


class _CommandRow(msgspec.Struct):
    """What is checked of a row of `--commands`."""

    code: int
    opaque: int
    flag: int
    header_bytes: int
    body_bytes: int
    request_code: int | None = None
    messages: list[msgspec.Raw] | None = None


def found_in_commands(path: Path) -> Found:
    """Return the figures of a JSONL file with one command a line."""
    found = Found(body_bytes=0, messages_in_pulls=0)
    assert found.body_bytes is not None
    assert found.messages_in_pulls is not None
    decoder = msgspec.json.Decoder(_CommandRow)
    with path.open("rb") as file:
        for row in map(decoder.decode, file):
            length = 4 + row.header_bytes + row.body_bytes
            found.add(row.code, row.opaque, row.flag, length)
            found.body_bytes += row.body_bytes
            if row.flag & 1 and row.request_code == 11 and row.code == 0:
                found.messages_in_pulls += len(row.messages or [])
    return found


def json_lines(path: Path) -> Iterator[dict[str, object]]:
    """Yield the rows of a JSONL file."""
    with path.open("rb") as file:
        yield from map(msgspec.json.Decoder(dict[str, object]).decode, file)


def parquet_rows(folder: Path) -> Iterator[dict[str, object]]:
    """Yield the exchanges of a decoded log, with the columns that are checked."""
    import pyarrow.parquet as pq

    columns = [
        "status", "opaque", "request_code", "response_code", "request_bytes", "response_bytes",
        "message_count",
    ]  # fmt: skip
    for path in sorted((folder / "exchanges").glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(columns=columns):
            yield from batch.to_pylist()


def found_in_fields(path: Path) -> Found:
    """Return the figures of tshark's `-T fields` output with the columns of `TSHARK_FIELDS`.

    The columns: frame number, time, code, opaque, flag, ..., header length, body length.
    """
    found = Found(body_bytes=0)
    assert found.body_bytes is not None
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            columns = line.rstrip("\n").split("\t")
            if not columns[2]:
                continue
            chosen = (columns[index].split(SEPARATOR) for index in (2, 3, 4, -2, -1))
            for code, opaque, flag, header, body in zip(*chosen, strict=True):
                found.body_bytes += int(body)
                found.add(int(code), int(opaque), int(flag), 4 + int(header) + int(body))
    return found


def digest_of(path: Path) -> str:
    """Return a digest of a file or of all files of a folder: an output seen before is known."""
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            with file.open("rb") as opened:
                while block := opened.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()

"""The decoded log: a folder with the exchanges of a run, its findings, and a manifest.

``exchanges/part-00000.parquet`` …, ``messages/part-00000.parquet`` …, ``conversations.parquet``,
``findings.parquet``, and ``manifest.json``; or as JSON lines, which need no pyarrow. In a growing
log (`growing_log`) the parts of every table are in folders by date. Rules: a file with its final
name is complete, and only files in the manifest belong to the log.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, NamedTuple

import msgspec

from ..findings import Finding
from ..foreign import Unreadable, converted, json_of
from ..owned_folder import FolderRefused, is_inside
from ..replication.progress import Replication
from ..rows.column import RENAMED, Description, columns_of
from ..rows.tables import encodable, encodable_value
from ..tcp.capture import capture_index, packet_number
from ..times import text_of_time
from .log_parts import SCHEMA_VERSION, PartEntry
from .totals import TOTALS, CaptureStats, DecodeStats

FORMAT = "rmqtool-decoded-log"
KIND = "decoded log"
MANIFEST = "manifest.json"
PARQUET = "parquet"
JSONL = "jsonl"
FORMS = (PARQUET, JSONL)
"""file formats of a log, also used as file extensions"""


class DecodedLogError(Exception):
    """A folder cannot be read or written as a decoded log; the message says why and what to do."""


class LogRefused(DecodedLogError, FolderRefused):
    """A folder has something else than the log that was to be written."""


class CaptureEntry(msgspec.Struct, kw_only=True):
    """A capture in the log."""

    name: str
    """file name as given; `-` is standard input"""
    format: str
    """pcap or pcapng"""
    compression: str | None
    """gzip, zstd, lz4 or xz"""
    packets: int
    """packets in the file"""
    bytes: int
    """bytes read of the file as it is stored"""
    first_time: str | None
    """time of the first packet"""
    last_time: str | None
    """time of the last packet"""
    skipped: dict[str, int]
    """packets that were not decoded, by reason"""


class Manifest(msgspec.Struct, kw_only=True):
    """Contents and coverage of a decoded log."""

    format: str = FORMAT
    """always `rmqtool-decoded-log`"""
    schema_version: int = SCHEMA_VERSION
    """version of the columns"""
    rmqtool: str
    """version of rmqtool that wrote it"""
    created: str
    """when it was written"""
    options: dict[str, object]
    """options that restricted the rows: `where`, `since`, `until`, `limit`; empty: all rows"""
    captures: list[CaptureEntry]
    """captures that were read"""
    exchanges: int = 0
    """rows in all parts"""
    parts: list[PartEntry] = []
    """files with exchanges"""
    messages: int | None = None
    """rows about messages; null: message rows were not requested"""
    message_parts: list[PartEntry] = []
    """files with rows about messages"""
    partition: str | None = None
    """`date` or `hour`: the partition of a log that runs add to; null: one run wrote the log"""
    conversation_parts: list[PartEntry] = []
    """files with TCP connections, in a partitioned log"""
    finding_parts: list[PartEntry] = []
    """files with findings, in a partitioned log"""
    conversations: int
    """TCP connections seen"""
    rocketmq_conversations: int
    """TCP connections that were decoded"""
    not_decoded: dict[str, int]
    """TCP connections that were not decoded, by protocol"""
    replication_conversations: int = 0
    """TCP connections between a slave and its master; their commit log data is not decoded"""
    replications: list[Replication] = []
    """transfers of these connections, times in nanoseconds since the epoch; at most 4096 entries"""
    frames: int
    """frames found"""
    commands: int
    """commands decoded"""
    gaps: int
    """holes in the streams"""
    gap_bytes: int
    """bytes that the captures do not have"""
    findings: dict[str, int]
    """findings by kind; the most frequent ones are counted here and not all listed"""


def manifest_of(
    stats: DecodeStats, rmqtool: str, created: int, options: Mapping[str, object]
) -> Manifest:
    """Return the manifest of a run with `stats`; `created` is nanoseconds since the epoch."""
    return Manifest(
        rmqtool=rmqtool,
        created=text_of_time(created),
        options={name: encodable_value(value) for name, value in options.items()},
        captures=[capture_entry(capture) for capture in stats.captures],
        **{name: getattr(stats, name) for name in TOTALS},
        findings={kind.name: count for kind, count in stats.finding_counts.items()},
    )


def capture_entry(capture: CaptureStats) -> CaptureEntry:
    """Return the manifest entry of a capture."""
    return CaptureEntry(
        name=encodable(capture.name),
        format=capture.format,
        compression=capture.compression,
        packets=capture.packets,
        bytes=capture.bytes,
        first_time=None if capture.first_ts is None else text_of_time(capture.first_ts),
        last_time=None if capture.last_ts is None else text_of_time(capture.last_ts),
        skipped=dict(capture.skipped),
    )


class FindingRecord(NamedTuple):
    """A row of ``findings.parquet``."""

    capture: Annotated[
        str | None,
        Description("name of the capture file; absent: the finding is about no packet"),
    ]
    packet: Annotated[int | None, Description("number of the packet in it")]
    time: Annotated[int | None, Description("time of that packet", type="time")]
    conversation: Annotated[
        int | None, Description("number of the TCP connection, as in the exchanges")
    ]
    kind: Annotated[str, Description("name of the kind of finding, such as `GAP`")]
    severity: Annotated[str, Description("`chat`, `note`, `warning` or `error`")]
    detail: Annotated[str, Description("details of the finding; may quote the input")]
    offset: Annotated[
        int | None,
        Description("offset in the stream, or in the file where the finding is about the file"),
    ]


def finding_of(info: Finding, captures: Sequence[str]) -> FindingRecord:
    """Return the row of a finding; `captures` are names by index."""
    index = capture_index(info.packet)
    has_packet = info.packet != 0
    return FindingRecord(
        captures[index] if has_packet and index < len(captures) else None,
        packet_number(info.packet) if has_packet else None,
        info.ts or None,
        info.conversation if info.conversation >= 0 else None,
        info.kind.name,
        info.kind.severity.name.lower(),
        info.detail,
        info.offset if info.offset >= 0 else None,
    )


FINDING_COLUMNS: Final = columns_of(FindingRecord)
_MANIFEST: Final = msgspec.json.Decoder(dict[str, object])
_RENAMED_MEMBERS: Final = {**RENAMED, "expert_parts": "finding_parts"}
"""manifest member before schema 2 -> current name"""


def file_in(folder: Path, name: str) -> Path:
    """Return the path of a file in a possibly untrusted decoded log.

    Raise DecodedLogError unless it is a regular file inside the folder (no path outside, link,
    device, or pipe). Raise OSError if it does not exist.
    """
    if not is_inside(name):
        raise DecodedLogError(f"{folder}/{MANIFEST} names {name!r}, which is not a file of the log")
    path = folder
    parts = PurePosixPath(name).parts
    for number, part in enumerate(parts, 1):
        path /= part
        # A link could lead out of the log, and opening a pipe could block forever.
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) if number == len(parts) else stat.S_ISDIR(mode)):
            raise DecodedLogError(f"{path} is not a regular file inside the decoded log")
    return path


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a decoded log; raise DecodedLogError if `folder` is not one."""
    path = folder / MANIFEST
    try:
        data = file_in(folder, MANIFEST).read_bytes()
    except FileNotFoundError:
        reason = "there is no such folder" if not folder.exists() else f"it has no {MANIFEST}"
        raise DecodedLogError(f"{folder} is not a decoded log: {reason}") from None
    except OSError as error:
        raise DecodedLogError(f"{path} cannot be read: {error}") from None
    return manifest_in(data, str(folder))


def manifest_in(data: bytes, folder: str) -> Manifest:
    """Return the manifest of the log in `folder`; raise DecodedLogError if it is invalid."""
    try:
        document = json_of(_MANIFEST, data)
        members = {_RENAMED_MEMBERS.get(name, name): value for name, value in document.items()}
        manifest = converted(members, Manifest)
    except Unreadable as error:
        raise DecodedLogError(f"{folder}/{MANIFEST} cannot be read: {error}") from None
    if manifest.format != FORMAT:
        raise DecodedLogError(f"{folder} is not a decoded log: its format is {manifest.format!r}")
    if manifest.schema_version > SCHEMA_VERSION:
        raise DecodedLogError(
            f"{folder} was written by rmqtool {manifest.rmqtool}, whose columns (schema "
            f"{manifest.schema_version}) are newer than those known here ({SCHEMA_VERSION})"
        )
    return manifest


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest to a new file."""
    encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    path.write_bytes(encoded + b"\n")


def parts_there(folder: Path, parts: Sequence[PartEntry]) -> list[PartEntry]:
    """Return the parts of a log, without deleted day or hour folders."""
    known: dict[str, bool] = {}
    present = []
    for part in parts:
        place = part.file.rpartition("/")[0]
        # Users may delete old day or hour folders; readers report any other missing part.
        if "/date=" in place:
            if place not in known:
                known[place] = (folder / place).is_dir()
            if not known[place]:
                continue
        present.append(part)
    return present


def is_decoded_log(folder: Path) -> bool:
    """Return whether `folder` is a readable decoded log."""
    try:
        read_manifest(folder)
    except DecodedLogError:
        return False
    return True

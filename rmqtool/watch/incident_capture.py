"""Copy the packets of an incident from the ring and diagnose them, in a separate process.

It reads an `IncidentOrder` from standard input and writes a `KeptIncident`, both JSON. Rules: older
incidents are removed first; the folder gets its name when it is complete. A diagnosis that takes
too long, fails, or that SIGALRM interrupts, is left out: the packets are what nobody can repeat.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from analytics.diagnosis.engine import Diagnosis, Engine
from analytics.diagnosis.problem import as_json
from analytics.diagnosis.registry import rules
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.endpoint import host_of
from dissectors.foreign import json_of
from dissectors.owned_folder import MARKER, FolderRefused, OwnedFolder, check_folder
from dissectors.rows.tables import encodable_value
from dissectors.tcp.capture import Packet
from dissectors.tcp.formats import PCAP_HEADER, reader_of
from dissectors.tcp.pcapng_writer import PcapngWriter
from dissectors.tcp.segment import reversed_key, source_of
from dissectors.tcp.segment_reader import SegmentReader

from ..api.judged import fed
from ..diagnose.text import diagnosis_lines
from ..ui.console import UNLIMITED, Terminal
from ..ui.errors import reason_of
from .incidents import IncidentOrder, KeptIncident

KIND: Final = "kept incident"
CAPTURE: Final = "capture.pcapng"
LONGEST: Final = 180
"""time limit in seconds, of the copy and of the diagnosis each"""
NICENESS: Final = 10
SHARE: Final = 4
"""an incident uses at most a quarter of the space"""
CHUNK: Final = 1 << 20
MOST_FLOWS: Final = 100_000
"""cached decisions, one per direction"""


class _TookTooLong(Exception):
    """No OSError, which a decode would take for the end of its capture."""


def keep_incident(order: IncidentOrder, niceness: int = 0) -> KeptIncident:
    """Write the folder of an incident and return the outcome.

    `niceness` is added to that of this process before the diagnosis.
    """
    kept = KeptIncident()
    folder = Path(order.folder)
    limit = order.size // SHARE
    try:
        # This leaves room for the new incident at its largest size.
        kept.removed = _make_room(folder, order.most - 1, order.size - limit)
        owned = OwnedFolder(_free_name(folder, order.name), KIND, private=True)
    except (OSError, FolderRefused) as error:
        kept.error = _reason(error)
        return kept
    try:
        with _limited():
            _copy(order, owned.path / CAPTURE, limit, kept)
        os.nice(niceness)  # not for the copy: the ring soon removes the packets
        _diagnose(order, owned.path, kept)
        owned.finish()
    except Exception as error:  # also of a bug: it leaves no unfinished folder
        owned.discard()
        kept.error = _reason(error)
        return kept
    kept.path = str(owned.folder)
    return kept


def _reason(error: Exception) -> str:
    return reason_of(error) if isinstance(error, OSError) else str(error) or type(error).__name__


def _free_name(folder: Path, name: str) -> Path:
    path, number = folder / name, 1
    while os.path.lexists(path):
        number += 1
        path = folder / f"{name}-{number}"
    return path


def _make_room(folder: Path, most: int, size: int) -> int:
    """Remove the oldest incidents beyond `most` or `size` bytes; return their number."""
    incidents = []
    for path in sorted(folder.iterdir()):
        with contextlib.suppress(FolderRefused, OSError):  # not ours, or changed: keep it
            marker = check_folder(path, KIND, replace=True)
            if marker is not None:
                names = [*marker.files, MARKER]
                incidents.append((path, names, sum((path / item).stat().st_size for item in names)))
    removed = 0
    while incidents and (len(incidents) > most or sum(item[2] for item in incidents) > size):
        path, names, _ = incidents.pop(0)
        for name in names:
            (path / name).unlink(missing_ok=True)
        path.rmdir()
        removed += 1
    return removed


def _copy(order: IncidentOrder, capture: Path, limit: int, kept: KeptIncident) -> None:
    with capture.open("wb") as file:
        writer: PcapngWriter | None = None
        for packet in _wanted(order, kept):
            writer = writer or PcapngWriter(file, packet.linktype)
            data = packet.data[packet.start : packet.end]
            if file.tell() + len(data) > limit:
                kept.cut = True
                break
            writer.write(packet.ts, data, packet.length)
            kept.packets += 1
        if writer is None:  # a capture without packets is a capture, too
            PcapngWriter(file, 1)
    kept.bytes = capture.stat().st_size


def _diagnose(order: IncidentOrder, folder: Path, kept: KeptIncident) -> None:
    problems: list[dict[str, object]] | None = []
    text = ["no packets: the ring no longer has them, or does not have them yet"]
    if kept.packets:
        try:
            with _limited():
                diagnosis = _diagnosis(order, folder / CAPTURE)
                problems = list(map(as_json, diagnosis.problems))
                plain = Terminal(False, UNLIMITED, False)
                text = diagnosis_lines(diagnosis, CAPTURE, plain, True)
        except _TookTooLong:
            problems = None
            text = [f"not diagnosed: it took too long; run rmqtool diagnose {CAPTURE}"]
        except Exception as error:  # also of a bug: the packets stay
            problems = None
            text = [f"not diagnosed: {_reason(error)}; run rmqtool diagnose {CAPTURE}"]
    kept.diagnosed = problems is not None
    kept.problems = len(problems or ())
    value = {
        "reason": order.problems,
        "problems": problems,
        "packets": kept.packets,
        "cut": kept.cut,
        "missing_files": kept.missing,
    }
    (folder / "diagnosis.json").write_bytes(msgspec.json.encode(encodable_value(value)) + b"\n")
    (folder / "diagnosis.txt").write_text("\n".join(text) + "\n", "utf-8", "replace")


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise _TookTooLong after `LONGEST` seconds, or earlier by a SIGALRM from outside."""
    former = signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


def _give_up(*_: object) -> None:
    raise _TookTooLong(f"it took longer than {LONGEST} s")


def _diagnosis(order: IncidentOrder, capture: Path) -> Diagnosis:
    options = DecodeOptions(
        decode_as=frozenset(order.decode_as), tls_keylog=order.tls_keylog, conversations=True
    )
    engine = Engine(rules())
    before = Path.cwd()
    os.chdir(capture.parent)  # evidence has the file name, not the path
    try:
        for _ in fed(Decode([CAPTURE], options), engine):
            pass
    finally:
        os.chdir(before)
    return engine.diagnosis()


def _wanted(order: IncidentOrder, kept: KeptIncident) -> Iterator[Packet]:
    """Yield the packets within the time range and connections of an order."""
    connections = {frozenset(ends_pair) for ends_pair in order.connections}
    servers, clients, known = set(order.servers), set(order.clients), set(order.known)
    flows: dict[bytes, bool] = {}
    segments = SegmentReader()
    segments.acks_wanted = True  # those without data, too: Wireshark needs them for round trips
    for packet in _packets(order.files, kept):
        if not order.begin <= packet.ts <= order.end:
            continue
        segment = segments.segment_of(packet)
        segments.findings.clear()
        if segment is None:
            continue
        wanted = flows.get(segment.key)
        if wanted is None:
            ends = source_of(segment.key), source_of(reversed_key(segment.key))
            wanted = (
                frozenset(ends) in connections
                or not servers.isdisjoint(ends)
                or any(
                    end in known and host_of(other) in clients for end, other in (ends, ends[::-1])
                )
            )
            if len(flows) >= MOST_FLOWS:
                flows.clear()
            flows[segment.key] = wanted
        if wanted:
            yield packet


def _packets(files: list[str], kept: KeptIncident) -> Iterator[Packet]:
    for index, name in enumerate(files):
        try:
            with open(name, "rb") as file:
                head = file.read(PCAP_HEADER)
                reader = reader_of(index, head) if len(head) == PCAP_HEADER else None
                if reader is None:
                    continue
                while chunk := file.read(CHUNK):
                    yield from reader.receive(chunk)
        except FileNotFoundError:  # the ring removed it
            kept.missing += 1


_ORDER = msgspec.json.Decoder(IncidentOrder)


def main() -> None:
    """Write the incident whose order is on standard input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)  # it ends soon by itself, even after the watch
    order = json_of(_ORDER, sys.stdin.buffer.read())
    sys.stdout.buffer.write(msgspec.json.encode(keep_incident(order, NICENESS)))


if __name__ == "__main__":
    main()

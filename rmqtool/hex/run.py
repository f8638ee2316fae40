"""`decode hex` and `decode stream`: bytes without a capture, decoded like those of one.

Rules: damaged or missing bytes are reported with their offset in the input. An input is an existing
file, standard input for ``-``, or the text itself.
"""

from __future__ import annotations

import io
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from dissectors.budget import Budget
from dissectors.decode.command_row import WHOLE, command_row_of, kind_of, name_of
from dissectors.decode.pipeline import CommandSeen, Decode, DecodeOptions
from dissectors.findings import Finding, Severity
from dissectors.ports import BROKER
from dissectors.quantities import counted
from dissectors.remoting.bodies.custom import decoding_with
from dissectors.remoting.framing.frame import PREFIX, is_prefix, total_of
from dissectors.remoting.headers import shown_remark

from ..decode.options import View
from ..decode.sinks import with_cut
from ..decode.tree import STEP, Tree
from ..ui.common_options import RowFormat
from ..ui.console import Style, one_line, styled, terminal_of
from ..ui.errors import print_note
from ..ui.json_array import rows_output
from ..ui.json_text import json_line
from ..ui.screen.shapes import tree_lines
from ..ui.status import CommandError, ExitStatus
from .options import HexRequest
from .pasted import BytesForm, BytesFormError, SideBytes, decode_input

PORT = BROKER
"""server port in the synthetic packets"""
CHUNK = 16 * 1024
"""payload bytes of a synthetic packet"""
_RAW_IPV4 = 228
_SYN, _ACK, _PUSH = 2, 16, 24
_ADDRESSES = (bytes((127, 0, 0, 1)), bytes((127, 0, 0, 2)))
_PORTS = (40000, PORT)


class PartsSource:
    """Parts as the bytes of a pcap: a `Source` of `Decode`.

    One connection in synthetic packets, from its handshake on, so stream offsets are input offsets.
    Packets, times, and addresses are never shown.
    """

    compression = None
    size = None
    problem: str | None = None

    def __init__(self, name: str, parts: Iterable[SideBytes]) -> None:
        self.name = name
        self.bytes_read = 0
        """bytes of the parts so far"""
        self.head = b""
        """the first bytes, for messages"""
        self._parts = parts
        self._next = [0, 0]

    def chunks(self) -> Iterator[bytes]:
        """Yield a pcap: a handshake, then the parts in order."""
        # pcap 2.4 with microseconds, and the snap length of tcpdump
        head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, _RAW_IPV4)
        yield head + self._packet(0, _SYN) + self._packet(1, _SYN | _ACK)
        for side, data in self._parts:
            self.head = self.head or data[:16]
            for at in range(0, len(data), CHUNK):
                part = data[at : at + CHUNK]
                self.bytes_read += len(part)
                yield self._packet(side, _PUSH, part)

    def close(self) -> None:
        """Do nothing: no file is open."""

    def _packet(self, side: int, flags: int, payload: bytes = b"") -> bytes:
        """Return one record of the pcap: IPv4 and TCP headers without checksums, and payload."""
        sequence, acknowledged = self._next[side], self._next[1 - side]
        # SYN takes a sequence number, as if it were a byte.
        self._next[side] = (sequence + len(payload) + (flags & _SYN) // _SYN) & 0xFFFFFFFF
        ends = _PORTS[side], _PORTS[1 - side]
        # 80 (0x50) and 0x45: headers of five words, without options; 6: TCP
        tcp = struct.pack("!HHIIBBHHH", *ends, sequence, acknowledged, 80, flags, 65535, 0, 0)
        size = 20 + len(tcp) + len(payload)
        ip = struct.pack("!BBHHHBBH", 0x45, 0, size, 0, 0, 64, 6, 0)
        ip += _ADDRESSES[side] + _ADDRESSES[1 - side]
        return struct.pack("<IIII", 0, 0, size, size) + ip + tcp + payload


MOST = 256 * 1024 * 1024
"""most bytes of an input that is not raw"""
_LONGEST_NAME = 255
"""most characters of a text that may be the name of a file"""
_NOT_KNOWN = (
    "packet",
    "time",
    "conversation",
    "client_address",
    "server_address",
    "request_packet",
    "latency_us",
)
"""columns of a command that need a capture"""


def run_hex(request: HexRequest) -> ExitStatus:
    """Decode and print; return FAILURE if there is no command."""
    request.check()
    with decoding_with(request.plugins):
        return _run(request)


def _run(request: HexRequest) -> ExitStatus:
    name, parts = _parts_of(request)
    source = PartsSource(name, parts)
    decode = Decode([source], DecodeOptions(decode_as=frozenset((PORT,))))
    shown = 0
    findings: list[Finding] = []
    view = _View(request, name)
    encoding = ("utf-8" if request.format.is_json else sys.stdout.encoding or "utf-8", "replace")
    batches: Iterable[list[CommandSeen]] = decode.commands()
    if not isinstance(parts, Iterator):  # a response without request comes last
        batches = [sorted((seen for batch in batches for seen in batch), key=_place_of)]
    with rows_output("-", request.format is RowFormat.json) as output:
        for batch in batches:
            for seen in batch:
                shown += 1
                output.write(f"{view(seen)}\n".encode(*encoding))
            findings += decode.take_findings()
            if batch:
                output.flush()
    findings += decode.take_findings()
    if not shown:
        _refuse_missing(request)
    _report_findings(request, findings)
    if cut := with_cut("", view.budget):
        print_note(cut)
    if shown:
        return ExitStatus.OK
    length = source.bytes_read
    raise CommandError(
        f"{name}: no command in {counted(length, 'byte')}", _why(length, source.head)
    )


class _View:
    """Commands as text."""

    def __init__(self, request: HexRequest, name: str) -> None:
        self._request = request
        self.budget = Budget(request.max_output)
        """limit of decompressed bytes"""
        self._terminal = terminal_of(sys.stdout, request.colour)
        self._tree = _OffsetTree([name], self._terminal.colour, request, self.budget)
        self._name = name

    def __call__(self, seen: CommandSeen) -> str:
        """Return the text of a command, without its last line end."""
        if self._request.format.is_json:
            return self._json(seen)
        if self._request.view is View.tree:
            lines = list(self._tree.command(seen))
            if self._terminal.is_terminal:
                lines = tree_lines(lines, len(STEP), self._terminal)
            return "\n".join(lines) + "\n"
        return self._line(seen)

    def _json(self, seen: CommandSeen) -> str:
        limit = self._request.body_limit
        row = msgspec.to_builtins(
            command_row_of(seen, [self._name], WHOLE if limit is None else limit, self.budget)
        )
        kept = {"input": row.pop("capture"), "offset": seen.pdu.offset, "end": end_of(seen)}
        kept |= {name: value for name, value in row.items() if name not in _NOT_KNOWN}
        line = json_line(kept)
        self.budget.spend(len(line))
        return line.decode().rstrip("\n")

    def _line(self, seen: CommandSeen) -> str:
        command, pdu = seen.pdu.command, seen.pdu
        fields = " ".join(
            f"{one_line(name[:60])}={one_line(value[:200])}"
            for name, value in command_row_of(seen, [self._name], 0).ext_fields.items()
        )
        head = f"{pdu.offset:>8}  {end_of(seen)}  {kind_of(pdu):8}  {one_line(name_of(seen))}"
        remark = f"  {one_line(shown_remark(command.remark))}" if command.remark else ""
        sizes = f"opaque {command.opaque}, {counted(pdu.frame_bytes, 'byte')}"
        return f"{head}  {sizes}{remark}  {fields}".rstrip()


class _OffsetTree(Tree):
    """A tree with offsets of the input instead of packets and addresses."""

    def __init__(
        self, names: Sequence[str], colour: bool, request: HexRequest, budget: Budget
    ) -> None:
        super().__init__(names, colour, request.body_limit, budget)
        self._has_colour = colour

    def command(self, seen: CommandSeen) -> Iterator[str]:
        """Yield the lines of a command."""
        lines: list[str] = []
        self._add_command(lines, "Command", seen)
        pdu = seen.pdu
        name = one_line(name_of(seen))
        title = styled(name, Style.BOLD) if self._has_colour else name
        last = pdu.offset + pdu.frame_bytes - pdu.missing - 1
        yield f"{title}: {kind_of(pdu)}, bytes {pdu.offset} to {last}{_end_text(seen)}"
        yield from (line.removeprefix(STEP) for line in lines[1:])  # the first is synthetic


def _place_of(seen: CommandSeen) -> tuple[int, int]:
    return seen.pdu.packet, seen.pdu.offset


def end_of(seen: CommandSeen) -> int:
    """Return the sender of a command: 0, or 1 for the other end of a two-way dump."""
    return 0 if seen.pdu.direction is seen.pdu.direction.conversation.first else 1


def _end_text(seen: CommandSeen) -> str:
    return ", from the other end" if end_of(seen) else ""


def _why(length: int, head: bytes) -> str:
    """Return why an input of this length has no command, or what an empty one needs."""
    if not length:
        return "give hex, base64, a dump or a file"
    prefix = int.from_bytes(head[:PREFIX], "big", signed=True)
    if len(head) >= PREFIX and is_prefix(prefix) and total_of(prefix) + 4 > length:
        whole = total_of(prefix) + 4
        return f"a frame of {whole} bytes begins here, but {whole - length} bytes are missing"
    return (
        f"it begins with {head.hex(' ')}; a frame begins with its length (4 bytes), "
        "its serialization (1) and the length of its header (3)"
    )


def _report_findings(request: HexRequest, findings: Iterable[Finding]) -> None:
    for info in findings:
        severe = info.kind.severity >= Severity.WARNING
        if info.offset < 0 or (request.quiet and not severe):
            continue
        print_note(f"offset {info.offset}: {info.kind.name}: {one_line(info.detail)}")


def _parts_of(request: HexRequest) -> tuple[str, Iterable[SideBytes]]:
    """Return name and bytes of the input."""
    texts = request.texts
    if not texts or list(texts) == ["-"]:
        if sys.stdin.isatty():
            raise CommandError("no input given", _why(0, b""), ExitStatus.USAGE)
        if request.input is BytesForm.raw:
            return "-", _raw_of(sys.stdin.buffer)
        data = sys.stdin.buffer.read(MOST + 1)
        _refuse_large("standard input", len(data))
        return "-", _decoded("standard input", data, request.input)
    if len(texts) == 1 and _is_file(texts[0]):
        path = Path(texts[0])
        if request.input is BytesForm.raw and path.is_file():
            return texts[0], _decoded(texts[0], path.read_bytes(), request.input)
        if request.input is BytesForm.raw:  # a pipe or a device, which may have no end
            return texts[0], _raw_file(path)
        with path.open("rb") as file:
            data = file.read(MOST + 1)  # a pipe does not tell its size
        _refuse_large(texts[0], len(data))
        return texts[0], _decoded(texts[0], data, request.input)
    try:
        return "argument", _decoded(
            "argument", " ".join(texts).encode("utf-8", "surrogateescape"), request.input
        )
    except CommandError:
        _refuse_missing(request)
        raise


def _refuse_missing(request: HexRequest) -> None:
    """Raise CommandError if the text, which is not the bytes of a command, names no file.

    Base64 has slashes, too, so a name is recognized only after decoding has failed.
    """
    (text,) = request.texts if len(request.texts) == 1 else ("",)
    if text == "-" or _is_file(text) or not set(text) & {"/", "."} or len(text.split()) != 1:
        return
    if len(text) <= _LONGEST_NAME:
        raise CommandError(f"{text}: {'not a file' if Path(text).is_dir() else 'no such file'}")


def _refuse_large(name: str, size: int) -> None:
    if size > MOST:
        hint = "name raw bytes with --input raw, or decode the input in parts"
        raise CommandError(f"{name}: more than {MOST >> 20} MiB", hint)


def _is_file(text: str) -> bool:
    try:
        path = Path(text)
        return path.exists() and not path.is_dir()  # also a pipe, as of <(…)
    except (OSError, ValueError):  # far too long for a name
        return False


def _raw_of(stream: BinaryIO) -> Iterator[SideBytes]:
    read = stream.read1 if isinstance(stream, io.BufferedReader) else stream.read
    while data := read(CHUNK):
        yield SideBytes(0, data)


def _raw_file(path: Path) -> Iterator[SideBytes]:
    with path.open("rb") as stream:
        yield from _raw_of(stream)


def _decoded(name: str, data: bytes, form: BytesForm) -> list[SideBytes]:
    try:
        return decode_input(data, form)[1]
    except BytesFormError as error:
        hint = "choose the encoding with --input hex, base64, dump, or raw"
        raise CommandError(f"{name}: {error}", hint, ExitStatus.USAGE) from None

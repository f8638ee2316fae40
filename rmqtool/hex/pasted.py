"""Bytes that somebody pasted: hex, base64, dumps of several tools, or the bytes themselves.

Rules: unless it is given, the form is guessed from the text, most specific first. An invalid
character is reported with its position; nothing is skipped silently.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from dissectors.foreign import base64_of, hex_bytes_of, hexadecimal_of


class BytesForm(StrEnum):
    """The notation of bytes."""

    auto = "auto"
    hex = "hex"
    base64 = "base64"
    dump = "dump"
    raw = "raw"


class BytesFormError(ValueError):
    """A text is not in the expected form."""


class SideBytes(NamedTuple):
    """Bytes that one end sent."""

    side: int
    """0: the first or only sender; 1: the other"""
    data: bytes


class _DumpLine(NamedTuple):
    """A line of a dump."""

    number: int
    side: int
    offset: int
    columns: str
    """the bytes, and text that may resemble them"""


_USUAL: Final = 16
"""bytes of a line in most dumps"""
_WIDEST: Final = 256
"""maximum bytes of a line: `xxd -c` allows no more"""
LEAST_BASE64 = 16
"""shortest plausible base64; a frame has more characters"""
_OFFSET = re.compile(
    r"^(?P<indent>[ \t]*)\|?(?:0x)?(?P<offset>[0-9a-fA-F]{4,16})(?:\|(?=[ ])|:| {1,4}|\t)[ ]*"
    r"(?P<hex>(?:[0-9a-fA-F]{2,16}(?: {1,3}|\t|$))+)"
)
"""a line of xxd, hexdump -C, tcpdump -X, Wireshark or Netty"""
_RULER = re.compile(r"^[ |+\-0-9a-fA-F]*$")
_NOISE = re.compile(r"^0[xX]|0[xX](?=[0-9a-fA-F]{1,2}\b)|\\x|[\s:,;{}\[\]()\"'_-]|^b(?=['\"])")
_HEX = re.compile(r"[0-9a-fA-F]*")
_NOISE_OR_DIGIT = re.compile(f"(?:{_NOISE.pattern}|[0-9a-fA-F])*")
_BASE64_OR_BLANK = re.compile(r"[A-Za-z0-9+/_\s-]*=*\s*")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_PRINTABLE = re.compile(rb"[\x09\x0a\x0d\x20-\x7e]*")


def decode_input(
    data: bytes, form: BytesForm = BytesForm.auto
) -> tuple[BytesForm, list[SideBytes]]:
    """Return the form and the bytes by sender.

    Raise BytesFormError with the position if the text is not in the form.
    """
    if form is BytesForm.auto:
        form = guess(data)
    if form is BytesForm.raw:
        return form, [SideBytes(0, data)]
    text = data.decode("utf-8", "replace")
    if form is BytesForm.dump:
        return form, decode_dump(text)
    decoded = decode_hex(text) if form is BytesForm.hex else decode_base64(text)
    return form, [SideBytes(0, decoded)]


def guess(data: bytes) -> BytesForm:
    """Return the likely form of bytes; raw if they are not text."""
    if not _PRINTABLE.fullmatch(data):
        return BytesForm.raw
    text = data.decode()
    lines = [line for line in text.splitlines() if line.strip()]
    bare = _NOISE.sub("", text.strip())
    is_hex = bool(bare) and _HEX.fullmatch(bare) is not None
    # The first bytes of a line of plain hex look like an offset, but these do not count up.
    if any(_OFFSET.match(line) for line in lines[:8]) and not (is_hex and _is_no_dump(text)):
        return BytesForm.dump
    if is_hex:
        return BytesForm.hex
    joined = "".join(text.split())
    if len(joined) >= LEAST_BASE64 and _BASE64.fullmatch(joined):
        return BytesForm.base64
    return (
        BytesForm.hex
        if "\\x" in text or "0x" in text or len(bare) < LEAST_BASE64
        else BytesForm.raw
    )


def _is_no_dump(text: str) -> bool:
    """Return whether lines start with bytes instead of offsets."""
    try:
        decode_dump(text)
    except BytesFormError:
        return True
    return False


def decode_hex(text: str) -> bytes:
    """Return the bytes of hex digits, with or without ``0x``, ``\\x``, colons, commas, blanks."""
    stripped = text.strip()
    bare = _NOISE.sub("", stripped)
    if _HEX.fullmatch(bare) is None:
        place = text.find(stripped) + _match_end(_NOISE_OR_DIGIT, stripped)
        raise BytesFormError(f"{text[place]!r} at character {place} is not a hex digit")
    if len(bare) % 2:
        raise BytesFormError(f"{len(bare)} hex digits: the last digit is missing")
    return hex_bytes_of(bare) or b""


def _match_end(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.match(text)
    return match.end() if match is not None else 0


def decode_base64(text: str) -> bytes:
    """Return the bytes of base64, also of its URL form and without padding."""
    joined = "".join(text.split()).translate(str.maketrans("-_", "+/")).rstrip("=")
    place = _match_end(_BASE64_OR_BLANK, text)
    if place < len(text):
        raise BytesFormError(f"{text[place]!r} at character {place} is not base64")
    if len(joined) % 4 == 1:
        raise BytesFormError(f"{len(joined)} characters of base64: the end is missing")
    decoded = base64_of(joined + "=" * (-len(joined) % 4))
    if decoded is None:
        raise BytesFormError("not base64")
    return decoded


def decode_dump(text: str) -> list[SideBytes]:
    """Return the bytes of a dump with offset columns.

    Lines with more indentation than the first are from the other end, as in Wireshark's Follow. An
    offset that does not continue the previous one means missing lines.
    """
    parts: list[tuple[int, bytearray]] = []
    expected: dict[int, int] = {}
    lines = _dump_lines(text)
    widths = _widths_of(lines)
    for line, width in zip(lines, widths, strict=True):
        wanted = expected.get(line.side, line.offset)
        if line.offset != wanted and line.offset != 0:
            raise BytesFormError(
                f"line {line.number} starts at {line.offset:#x}, expected {wanted:#x}"
            )
        data = hex_bytes_of(_bytes_of(line.columns, width)) or b""
        expected[line.side] = line.offset + len(data)
        if not parts or parts[-1][0] != line.side:
            parts.append((line.side, bytearray()))
        parts[-1][1].extend(data)
    if not parts:
        raise BytesFormError("no dump lines; a dump line has an offset, then bytes in hex")
    return [SideBytes(side, bytes(data)) for side, data in parts]


def _dump_lines(text: str) -> list[_DumpLine]:
    lines: list[_DumpLine] = []
    first_indent: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        match = _OFFSET.match(line)
        if match is None:
            if line.strip() and not _RULER.match(line):
                raise BytesFormError(f"line {number} is not a dump line: {line.strip()[:40]!r}")
            continue
        indent = len(match["indent"].expandtabs(4))
        first_indent = indent if first_indent is None else first_indent
        offset = hexadecimal_of(match["offset"]) or 0
        lines.append(_DumpLine(number, int(indent > first_indent), offset, match["hex"]))
    return lines


def _widths_of(lines: Sequence[_DumpLine]) -> list[int]:
    """Return the maximum bytes of each line: up to the next line of its side.

    The last line is as long as the one before it at most; a single line may have any length.
    """
    widths = [0] * len(lines)
    following: dict[int, int] = {}
    for place in reversed(range(len(lines))):
        line = lines[place]
        widths[place] = following.get(line.side, 0) - line.offset
        following[line.side] = line.offset
    known: dict[int, int] = {}
    for place, line in enumerate(lines):
        if not 0 < widths[place] <= _WIDEST:
            widths[place] = known.get(line.side, _WIDEST)
        known[line.side] = widths[place]
    return widths


def _bytes_of(columns: str, width: int) -> str:
    """Return the hex digits of a line, without trailing text that resembles them."""
    middles = (0, _USUAL // 2, width // 2)
    digits = ""
    for word in re.split(r"[ \t]", columns.rstrip()):
        if not word:
            if len(digits) // 2 not in middles:
                break  # two blanks outside the middle start the text column
            continue
        if len(word) % 2 or len(digits) // 2 >= width:
            break
        digits += word
    return digits[: 2 * width]


_HEX_WORD: Final = re.compile(r"(?:0x)?[0-9A-Fa-f]{2}[0-9A-Fa-f:]*")
_LEAST_DIGITS: Final = 16
"""Hex digits of a text that is not a file name."""
_HEAD: Final = 4096
"""Bytes of a file that are read to detect its format."""
_GROUP_OPTIONS: Final = ("-h", "--help", "--help-all")


def command_for(arguments: Sequence[str], commands: Collection[str]) -> str:
    """Return `pcap` or `hex`, or an empty text if there is a command or no input."""
    if not arguments or arguments[0] in commands or arguments[0] in _GROUP_OPTIONS:
        return ""
    files = [path for path in map(Path, arguments) if _exists(path)]
    if files:
        return "hex" if files[0].is_file() and _is_text_of_bytes(files[0]) else "pcap"
    text = "".join(argument for argument in arguments if _HEX_WORD.fullmatch(argument))
    if len(text) >= _LEAST_DIGITS:
        return "hex"
    is_typo = arguments[0].isalpha() and get_close_matches(arguments[0], commands)
    return "" if is_typo else "pcap"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # far too long, or a null character
        return False


def _is_text_of_bytes(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:  # reported when the file is decoded
        return False
    if len(head) == _HEAD:  # cut between two lines, not between two digits
        head = head[: head.rfind(b"\n") + 1] or head
    try:
        return bool(head) and decode_input(head, BytesForm.auto)[0] is not BytesForm.raw
    except BytesFormError:
        return False

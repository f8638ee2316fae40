"""Detect the input of `rmqtool decode` without a command: captures, or bytes as text."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from .pasted import BytesForm, BytesFormError, decode_input

_HEX: Final = re.compile(r"(?:0x)?[0-9A-Fa-f]{2}[0-9A-Fa-f:]*")
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
    text = "".join(argument for argument in arguments if _HEX.fullmatch(argument))
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

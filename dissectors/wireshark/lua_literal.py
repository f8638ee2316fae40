"""Python values as Lua source: one row per line, so that the result can be read and searched.

Rules: dicts and sequences become tables, None is left out, text keeps its letters and nothing in it
can end the literal. Lua: section 3.1 of the reference manual.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED: Final = frozenset((
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
    "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
))  # fmt: skip
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_WIDTH: Final = 100


def literal_of(value: object, indent: int = 0) -> str:
    """Return a value (bool, int, float, str, mapping, sequence) as a Lua expression.

    ValueError for what is none of them. A table that fits a line is written on one.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(int(value)) if isinstance(value, int) else repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        rows = [
            f"{_key(key)} = {literal_of(item, indent + 2)}"
            for key, item in value.items()
            if item is not None
        ]
        return _table(rows, indent)
    if isinstance(value, Sequence):
        return _table([literal_of(item, indent + 2) for item in value], indent)
    raise ValueError(f"{type(value).__name__} has no form in Lua")


def _text(value: str) -> str:
    value = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_CONTROL.sub(lambda match: f"{chr(92)}{ord(match[0]):03d}", value)}"'


def _key(key: object) -> str:
    if isinstance(key, str) and _NAME.fullmatch(key) and key not in _RESERVED:
        return str(key)
    return f"[{literal_of(key)}]"


def _table(rows: list[str], indent: int) -> str:
    line = f"{{ {', '.join(rows)} }}" if rows else "{}"
    if indent and len(line) + indent <= _WIDTH and "\n" not in line:
        return line
    blanks = " " * (indent + 2)
    body = "".join(f"{blanks}{row},\n" for row in rows)
    return f"{{\n{body}{' ' * indent}}}"

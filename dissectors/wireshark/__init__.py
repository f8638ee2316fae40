"""A dissector for Wireshark and tshark 4.x, written out in Lua from the tables of `remoting`.

The Lua parts beside this file are joined with the tables to one file without dependencies, so
Wireshark names things as rmqtool does. The text is the same for the same tables. Wireshark: Lua API
of 4.0; Lua: section 3.1 of the reference manual.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final

from .lua_tables import tables

__all__ = ["FILE_NAME", "SIGNATURE", "lua_text"]

FILE_NAME: Final = "rocketmq.lua"
"""What the file is called among Wireshark's plugins."""
SIGNATURE: Final = "-- RocketMQ dissector for Wireshark and tshark 4.x, written by rmqtool"
"""How the first line begins: files that begin otherwise are somebody else's."""

_PARTS: Final = (
    "fields",
    "text",
    "lz4",
    "header",
    "pairing",
    "message",
    "records",
    "body",
    "command",
    "stream",
)
"""The Lua parts in their order: each uses what those before it declare."""
_PREAMBLE: Final = """\
{signature} {version}
-- SPDX-License-Identifier: Apache-2.0
--
-- Not to be edited: `rmqtool wireshark` writes it again. Put it into the folder that
-- `tshark -G folders` calls Personal Lua Plugins (`rmqtool wireshark --install` does), or try it
-- with `tshark -X lua_script:rocketmq.lua`. Documentation: rmqtool help wireshark.

if set_plugin_info then
  set_plugin_info({{ version = "{version}", description = "Apache RocketMQ remoting protocol" }})
end
"""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED: Final = frozenset((
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
    "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
))  # fmt: skip
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_WIDTH: Final = 100


def lua_text(version: str) -> str:
    """Return the whole dissector as Lua source; `version` is the release of rmqtool that is named.

    ValueError where the version is not plain text.
    """
    if not version.isprintable() or any(char in version for char in "\"\\'"):
        raise ValueError(f"not a version: {version!r}")
    folder = files(__package__)
    parts = [
        _PREAMBLE.format(signature=SIGNATURE, version=version),
        f"local tables = {literal_of(tables())}\n",
    ]
    parts += [folder.joinpath(f"{name}.lua").read_text("utf-8") for name in _PARTS]
    return "\n".join(parts)


def literal_of(value: object, indent: int = 0) -> str:
    """Return a value (bool, int, float, str, mapping, sequence) as a Lua expression.

    ValueError for what is none of them. None is left out of tables; a table that fits a line is
    written on one. Text keeps its letters, and nothing in it can end the literal.
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

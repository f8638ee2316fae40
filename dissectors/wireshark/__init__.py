"""A dissector for Wireshark and tshark 4.x, written out in Lua from the tables of `remoting`.

The Lua parts beside this file are joined with the tables to one file without dependencies: what
`remoting` knows of codes, headers, properties and limits is spelled there and nowhere else, and
Wireshark names it as rmqtool does. The text is the same for the same tables.
RocketMQ: RemotingCommand, NettyDecoder, MessageDecoder; Wireshark: Lua API of 4.0.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from .lua_literal import literal_of
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

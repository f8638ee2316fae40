"""A store of some 100 kB that has 10^8 rows: its pages have the same child many times."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing
from pathlib import Path

PAGE = 4096


def link_pages(path: Path) -> None:
    """Let each cell of the index of messages have the same child, on three levels.

    The store must have so many messages that the index has more than one page.
    """
    with closing(sqlite3.connect(path)) as connection:
        statement = "SELECT rootpage FROM sqlite_master WHERE name = 'message_offset'"
        root = connection.execute(statement).fetchone()[0]
        connection.execute("PRAGMA journal_mode = DELETE")
    data = bytearray(path.read_bytes())
    page = data[(root - 1) * PAGE : root * PAGE]
    assert page[0] == 2, "an index page with children"
    (leaf,) = struct.unpack(">I", page[8:12])
    last = len(data) // PAGE
    for level, child in ((0, last + 1), (1, last + 2), (2, leaf)):
        copy = bytearray(page)
        cells = struct.unpack(">H", copy[3:5])[0]
        places = struct.unpack(f">{cells}H", copy[12 : 12 + 2 * cells])
        for place in (8, *places):
            copy[place : place + 4] = struct.pack(">I", child)
        if level:
            data += copy
        else:
            data[(root - 1) * PAGE : root * PAGE] = copy
    data[28:32] = struct.pack(">I", len(data) // PAGE)
    path.write_bytes(data)

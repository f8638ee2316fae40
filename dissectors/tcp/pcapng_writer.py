"""Packets to a pcapng file: one section, one interface, times to the nanosecond.

Rules: little-endian, a packet is one enhanced packet block, written with one call, so that a file
that is cut off ends between packets or inside the last one. What the reader of this package would
not take for a packet is refused. Format: draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import struct
from typing import BinaryIO, Final

from .capture import MAX_PACKET
from .pcapng import (
    BYTE_ORDER_MAGIC,
    DECRYPTION_SECRETS,
    ENHANCED_PACKET,
    INTERFACE_DESCRIPTION,
    MAX_TIME,
    SECTION_HEADER,
    TLS_KEY_LOG,
)

APPLICATION: Final = "rmqtool"
"""what a section header says that wrote the file"""
INTERFACE_STATISTICS: Final = 5

_APPLICATION_OPTION: Final = 4
_NAME_OPTION: Final = 2
_FILTER_OPTION: Final = 11
_RESOLUTION_OPTION: Final = 9
_RECEIVED_OPTION: Final = 4
_DROPPED_OPTION: Final = 5
_NANOSECOND: Final = bytes((9,))
"""if_tsresol: 10⁻⁹ seconds"""
_PACKET: Final = struct.Struct("<IIIIIII")
_UNKNOWN_LENGTH: Final = (1 << 64) - 1


class PcapngWriter:
    """Writes packets of one link type to an open file, which stays open."""

    def __init__(
        self,
        file: BinaryIO,
        linktype: int,
        snaplen: int = 0,
        *,
        interface: str = "",
        filter_text: str = "",
        application: str = APPLICATION,
    ) -> None:
        """Write the head of the file.

        `linktype` is a LINKTYPE_ number, `snaplen` the bytes that a packet is cut to, 0: none.
        `interface` and `filter_text` are its name and the capture filter, where there are any.
        Raises ValueError for a link type that is no 16-bit number.
        """
        if not 0 <= linktype <= 0xFFFF:
            raise ValueError(f"link type {linktype}: 0 to 65535 are possible")
        self._file = file
        self.packets = 0
        """packets written"""
        self.last_ts = 0
        """time of the last packet, nanoseconds since the epoch"""
        file.write(_section(application) + _interface(linktype, snaplen, interface, filter_text))

    def write(self, ts_ns: int, data: bytes, length: int | None = None) -> None:
        """Write a packet seen at `ts_ns`, nanoseconds since the epoch.

        `length` is its length on the wire, where that is more than `data`. Raises ValueError for a
        time before 1970 or after 2116 and for more than a mebibyte: no reader would take them.
        """
        captured = len(data)
        if not 0 <= ts_ns < MAX_TIME or captured > MAX_PACKET:
            raise ValueError(f"a packet of {captured} bytes at {ts_ns} ns cannot be written")
        padding = -captured & 3
        total = 32 + captured + padding
        on_wire = captured if length is None else max(length, captured)
        head = _PACKET.pack(
            ENHANCED_PACKET, total, 0, ts_ns >> 32, ts_ns & 0xFFFFFFFF, captured, on_wire
        )
        self._file.write(head + data + bytes(padding) + total.to_bytes(4, "little"))
        self.packets += 1
        self.last_ts = ts_ns

    def write_secrets(self, key_log: bytes) -> None:
        """Write secrets of TLS, text in the key log format, before the packets they open.

        Whoever gets the file can read what is encrypted in it.
        """
        body = struct.pack("<II", TLS_KEY_LOG, len(key_log)) + key_log
        self._file.write(_block(DECRYPTION_SECRETS, body + bytes(-len(key_log) & 3)))

    def write_statistics(self, ts_ns: int, received: int, dropped: int) -> None:
        """Write how many packets the interface gave and how many of them were lost, at the end."""
        options = _option(_RECEIVED_OPTION, received.to_bytes(8, "little"))
        options += _option(_DROPPED_OPTION, dropped.to_bytes(8, "little"))
        body = struct.pack("<III", 0, ts_ns >> 32, ts_ns & 0xFFFFFFFF)
        self._file.write(_block(INTERFACE_STATISTICS, body + options + _option(0, b"")))


def _section(application: str) -> bytes:
    body = struct.pack("<IHHQ", BYTE_ORDER_MAGIC, 1, 0, _UNKNOWN_LENGTH)
    options = _option(_APPLICATION_OPTION, application.encode()) + _option(0, b"")
    return _block(SECTION_HEADER, body + options)


def _interface(linktype: int, snaplen: int, name: str, filter_text: str) -> bytes:
    options = _option(_NAME_OPTION, name.encode("utf-8", "replace")) if name else b""
    options += _option(_RESOLUTION_OPTION, _NANOSECOND)
    if filter_text:  # a byte before it says that it is a text, not a program
        options += _option(_FILTER_OPTION, b"\0" + filter_text.encode("utf-8", "replace"))
    body = struct.pack("<HHI", linktype, 0, snaplen)
    return _block(INTERFACE_DESCRIPTION, body + options + _option(0, b""))


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) & 3)


def _block(kind: int, body: bytes) -> bytes:
    total = (12 + len(body)).to_bytes(4, "little")
    return kind.to_bytes(4, "little") + total + body + total

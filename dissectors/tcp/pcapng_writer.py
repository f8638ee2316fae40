"""pcapng writer: one little-endian section, nanosecond timestamps.

Packets that this package's reader would reject are refused.
Format: draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import BinaryIO, Final

from .capture import MAX_PACKET
from .pcapng import (
    BYTE_ORDER_MAGIC,
    COMMENT,
    DECRYPTION_SECRETS,
    ENHANCED_PACKET,
    FAULT_MARK,
    INTERFACE_DESCRIPTION,
    MAX_MARK,
    MAX_TIME,
    SECTION_HEADER,
    TIME_RESOLUTION,
    TLS_KEY_LOG,
)

APPLICATION: Final = "rmqtool"
"""application name in the section header"""
INTERFACE_STATISTICS: Final = 5

_APPLICATION_OPTION: Final = 4
_NAME_OPTION: Final = 2
_FILTER_OPTION: Final = 11
_RECEIVED_OPTION: Final = 4
_DROPPED_OPTION: Final = 5
_NANOSECOND: Final = bytes((9,))
"""if_tsresol: 10⁻⁹ seconds"""
_PACKET: Final = struct.Struct("<IIIIIII")
_ENDS: Final = tuple(struct.Struct(f"<{padding}xI").pack for padding in range(4))
"""packers of the end of a packet block, by padding"""
_UNKNOWN_LENGTH: Final = (1 << 64) - 1


class PcapngWriter:
    """Writes packets to an open file, which stays open."""

    def __init__(
        self,
        file: BinaryIO,
        linktype: int,
        snaplen: int = 0,
        *,
        interface: str = "",
        filter_text: str = "",
    ) -> None:
        """Write the head of the file.

        `linktype` is a LINKTYPE_ number, `snaplen` the snap length in bytes (0: unlimited).
        `interface` and `filter_text` are the interface name and the capture filter, if any. Raise
        ValueError for a link type that is not a 16-bit number.
        """
        if not 0 <= linktype <= 0xFFFF:
            raise ValueError(f"link type {linktype}: 0 to 65535 are possible")
        self._file = file
        self.packets = 0
        """packets written"""
        self.last_ts = 0
        """time of the last packet, nanoseconds since the epoch"""
        self._interfaces = {linktype: 0}
        file.write(_section() + _interface(linktype, snaplen, interface, filter_text))

    def interface_of(self, linktype: int) -> int:
        """Return the number of the interface with a link type, and write one if there is none."""
        number = self._interfaces.get(linktype)
        if number is None:
            number = self._interfaces[linktype] = len(self._interfaces)
            self._file.write(_interface(linktype, 0, "", ""))
        return number

    def write(
        self,
        ts_ns: int,
        data: bytes,
        length: int | None = None,
        fault: str = "",
        interface: int = 0,
    ) -> None:
        """Write a packet with timestamp `ts_ns`, nanoseconds since the epoch.

        `length` is the length on the wire if it exceeds `data`. `fault` is an injected fault: this
        package's readers recognize it, others show it as a comment. `interface` is the number of
        its interface; the first one, 0, has the link type of the writer. Raise ValueError for a
        time before 1970 or after 2116 and for more than 1 MiB: readers would reject them.
        """
        captured = len(data)
        if not 0 <= ts_ns < MAX_TIME or captured > MAX_PACKET:
            raise ValueError(f"a packet of {captured} bytes at {ts_ns} ns cannot be written")
        padding = -captured & 3
        options = b""
        if fault:
            comment = FAULT_MARK + fault.encode("utf-8", "replace")[: MAX_MARK - len(FAULT_MARK)]
            options = _option(COMMENT, comment) + _option(0, b"")
        total = 32 + captured + padding + len(options)
        on_wire = captured if length is None else max(length, captured)
        head = _PACKET.pack(
            ENHANCED_PACKET, total, interface, ts_ns >> 32, ts_ns & 0xFFFFFFFF, captured, on_wire
        )
        # One call: a file that ends early ends between packets or inside the last one.
        self._file.write(head + data + bytes(padding) + options + total.to_bytes(4, "little"))
        self.packets += 1
        self.last_ts = ts_ns

    def write_all(self, packets: Sequence[tuple[int, bytes, int]]) -> int:
        """Write packets, each as time, data, and length on the wire, with one call.

        Return how many were left out because readers would reject them.
        """
        parts: list[bytes] = []
        pack, ends = _PACKET.pack, _ENDS
        for ts, data, length in packets:
            captured = len(data)
            if not 0 <= ts < MAX_TIME or captured > MAX_PACKET:
                continue
            padding = -captured & 3
            total = 32 + captured + padding
            parts.append(
                pack(
                    ENHANCED_PACKET,
                    total,
                    0,
                    ts >> 32,
                    ts & 0xFFFFFFFF,
                    captured,
                    length if length > captured else captured,
                )
            )
            parts.append(data)
            parts.append(ends[padding](total))
            self.last_ts = ts
        self._file.write(b"".join(parts))
        written = len(parts) // 3
        self.packets += written
        return len(packets) - written

    def write_secrets(self, key_log: bytes) -> None:
        """Write TLS secrets, as key log text, before the packets that they decrypt.

        Anyone with the file can then decrypt the traffic in it.
        """
        body = struct.pack("<II", TLS_KEY_LOG, len(key_log)) + key_log
        self._file.write(_block(DECRYPTION_SECRETS, body + bytes(-len(key_log) & 3)))

    def write_statistics(self, ts_ns: int, received: int, dropped: int) -> None:
        """Write the interface's counts of received and dropped packets, at the end."""
        options = _option(_RECEIVED_OPTION, received.to_bytes(8, "little"))
        options += _option(_DROPPED_OPTION, dropped.to_bytes(8, "little"))
        body = struct.pack("<III", 0, ts_ns >> 32, ts_ns & 0xFFFFFFFF)
        self._file.write(_block(INTERFACE_STATISTICS, body + options + _option(0, b"")))


def _section() -> bytes:
    # The packets are still to come, so the length of the section is not known yet.
    body = struct.pack("<IHHQ", BYTE_ORDER_MAGIC, 1, 0, _UNKNOWN_LENGTH)
    options = _option(_APPLICATION_OPTION, APPLICATION.encode()) + _option(0, b"")
    return _block(SECTION_HEADER, body + options)


def _interface(linktype: int, snaplen: int, name: str, filter_text: str) -> bytes:
    options = _option(_NAME_OPTION, name.encode("utf-8", "replace")) if name else b""
    # Without this option, readers take times for microseconds.
    options += _option(TIME_RESOLUTION, _NANOSECOND)
    if filter_text:  # the first byte marks a filter string, as opposed to BPF bytecode
        options += _option(_FILTER_OPTION, b"\0" + filter_text.encode("utf-8", "replace"))
    body = struct.pack("<HHI", linktype, 0, snaplen)
    return _block(INTERFACE_DESCRIPTION, body + options + _option(0, b""))


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) & 3)


def _block(kind: int, body: bytes) -> bytes:
    total = (12 + len(body)).to_bytes(4, "little")
    return kind.to_bytes(4, "little") + total + body + total

"""pcap files as packets: both byte orders, microseconds and nanoseconds.

Format: draft-ietf-opsawg-pcap.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from .capture import MAX_PACKET, NANOSECONDS, CaptureReader, Packet, read_u32, read_u32_pair

PCAP_HEADER: Final = 24
RECORD_HEADER: Final = 16

PCAP_MAGICS: Final = {
    b"\xd4\xc3\xb2\xa1": (False, 1000),
    b"\xa1\xb2\xc3\xd4": (True, 1000),
    b"\x4d\x3c\xb2\xa1": (False, 1),
    b"\xa1\xb2\x3c\x4d": (True, 1),
}
"""first bytes of a pcap file: (big-endian, nanoseconds of one unit of the fraction)"""


@final
class PcapReader(CaptureReader):
    """A pcap file. The first 24 bytes must have been checked by `reader_of`."""

    def __init__(self, index: int, header: bytes) -> None:
        super().__init__(index)
        self.format = "pcap"
        self._big, unit = PCAP_MAGICS[header[:4]]
        self._unit: i64 = unit
        self._linktype: i64 = read_u32(header, 20, self._big) & 0xFFFF
        self._offset = PCAP_HEADER

    def _packets_of(self, data: bytes, found: list[Packet]) -> i64:
        big = self._big
        unit: i64 = self._unit
        linktype: i64 = self._linktype
        number: i64 = self._first_id + self.packets
        at: i64 = 0
        size: i64 = len(data)
        ts: i64 = self.last_ts
        while size - at >= RECORD_HEADER:
            captured, length = read_u32_pair(data, at + 8, big)
            seconds, fraction = read_u32_pair(data, at, big)
            fraction *= unit
            damaged = captured > MAX_PACKET or captured > length or fraction >= NANOSECONDS
            if damaged or self._lost >= 0:
                self._lose(at)
                again = self._next_record(data, at)
                if again < 0:
                    at = max(at, size - 2 * RECORD_HEADER - MAX_PACKET)
                    break
                at = again
                self._found_again(at)
                continue
            end: i64 = at + RECORD_HEADER + captured
            if end > size:
                break
            number += 1
            ts = seconds * NANOSECONDS + fraction
            found.append(Packet(number, ts, linktype, data, at + RECORD_HEADER, end, length))
            at = end
        self.packets = number - self._first_id
        self.last_ts = ts
        return at

    def _next_record(self, data: bytes, at: i64) -> i64:
        """Where the next two plausible record headers in a row begin, or -1.

        They are looked for by the upper half of the seconds (18 hours) of the last good packet.
        """
        order = "big" if self._big else "little"
        seconds = int(self.last_ts) // NANOSECONDS
        half = (seconds >> 16).to_bytes(2, order)  # type: ignore[arg-type]
        shift = 0 if self._big else 2
        place = data.find(half, at + 1 + shift)
        while place >= 0:
            start: i64 = place - shift
            if self._plausible(data, start):
                return start
            place = data.find(half, place + 1)
        return -1

    def _plausible(self, data: bytes, at: i64) -> bool:
        size: i64 = len(data)
        for _ in range(2):
            if at + RECORD_HEADER > size:
                return False
            captured, length = read_u32_pair(data, at + 8, self._big)
            fraction = read_u32(data, at + 4, self._big) * self._unit
            bad = captured > MAX_PACKET or captured > length or length > 2 * MAX_PACKET
            if bad or captured < 14 or fraction >= NANOSECONDS:
                return False
            at += RECORD_HEADER + captured
            if at == size:
                return True
        return True

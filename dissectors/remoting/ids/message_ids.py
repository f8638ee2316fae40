"""Parse message ids: offset ids, client ids, recall handles.

For any input the result is a value or None; nothing raises. RocketMQ:
MessageDecoder.createMessageId, MessageClientIDSetter, RecallMessageHandle.
"""

from __future__ import annotations

import base64
import re
import struct
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address
from typing import Final, NamedTuple, final

from mypy_extensions import i64

from ...endpoint import endpoint_text, host_and_port_text
from ...foreign import base64_of, hex_bytes_of, hexadecimal_of, integer_of

_HEX = re.compile(r"[0-9A-Fa-f]+")
_PORT: Final = struct.Struct(">i")
"""Port, after the address."""
_OFFSET_DIGITS: Final = 16
"""Hex digits of the commit log offset, after these."""
_OFFSET_MASK: Final = (1 << 64) - 1
_SHORT_ID: Final = 32
"""Hex digits of an id with an IPv4 address."""
_MAKER_TAIL: Final = struct.Struct(">HI")
"""Process id and class loader hash, after the address."""
KEY_END: Final = 12
"""Hex digits of the milliseconds of the month and of the counter, after these.

A month has more milliseconds than a Java int is positive for, so they are read as unsigned."""
_ADDRESS_SIZES: Final = (4, 16)
_OFFSET_ID_LENGTHS: Final = tuple(
    2 * (size + _PORT.size) + _OFFSET_DIGITS for size in _ADDRESS_SIZES
)
"""Hex digits of an offset id."""
_KEY_LENGTH: Final = 32
_KEY_LENGTH_V6: Final = 56
KEY_LENGTHS: Final = (_KEY_LENGTH, _KEY_LENGTH_V6)
"""Hex digits of a client's id, with an IPv4 and with an IPv6 address."""
GRPC_ID: Final = "01[0-9A-F]{32}"
"""Pattern of ids of gRPC clients: version, MAC address, process id, time, count."""

EARLIEST_MS: Final = -62_000_000_000_000
LATEST_MS: Final = 253_000_000_000_000
"""Range of Python's calendar, with a month to spare on either side."""

_COUNTER_DIGITS: Final = 4
"""Hex digits of the counter, after the milliseconds."""
_ZONE_STEP: Final = 15
"""Minutes: all UTC offsets are multiples of it."""
_ZONE_STEP_US: Final = _ZONE_STEP * 60 * 1_000_000
_CLOCK_STEP_US: Final = 1_000_000
"""A message may seem to be sent that long before its creation: clocks step."""
_LAST_TIME_US: Final = 2**61  # sums with it must fit i64
_WEST: Final = -12 * 60
_EAST: Final = 14 * 60
"""Minutes from UTC of the outermost zones."""
_HALF_DAY: Final = 12 * 60
MINUTE_MS: Final = 60_000
_NEAR_MS: Final = 60_000
"""An id and a time that are closer than this belong together."""
NO_ZONE: Final = 1 << 20
"""Marks an invalid UTC offset, minutes."""
_FAR: Final = 1 << 62
"""Milliseconds that exceed any difference between clocks."""

_RECALL_VERSION: Final = "v1"
_LONGEST_HANDLE: Final = 4096
"""Maximum characters of a recall handle: two names, a number, and an id have far less."""


def _split_address(text: str, tail: int) -> tuple[bytes, bytes] | None:
    """Split an id in hex into address and tail, or return None if its length fits no address."""
    if len(text) // 2 - tail not in _ADDRESS_SIZES or len(text) % 2 or not _HEX.fullmatch(text):
        return None
    data = hex_bytes_of(text) or b""
    return data[:-tail], data[-tail:]


def encode_offset_id(store_host: str, physical_offset: int) -> str | None:
    """Return the offset message id of `ip:port` and a commit log offset, or None if invalid."""
    start = _offset_id_start(store_host)
    if start is None or not -(1 << 63) <= physical_offset < 1 << 63:
        return None
    return f"{start}{physical_offset & _OFFSET_MASK:016X}"


@lru_cache(maxsize=4096)  # a broker assigns millions of ids
def _offset_id_start(store_host: str) -> str | None:
    """Return the start of a broker's ids, or None if invalid."""
    address, text = host_and_port_text(store_host)
    port = integer_of(text)
    if port is None:
        return None
    try:
        return (ip_address(address).packed + _PORT.pack(port)).hex().upper()
    except (ValueError, struct.error):
        return None


def physical_offset_of(text: str) -> int | None:
    """Return the commit log offset in an offset message id, or None."""
    if len(text) == _SHORT_ID and text.isascii():  # nearly all, with IPv4
        offset = physical_offset_at(text.encode(), 0, _SHORT_ID)
        return None if offset < 0 else int(offset)
    taken = decode_offset_id(text)
    return taken.physical_offset if taken is not None else None


def physical_offset_at(data: bytes, at: i64, end: i64) -> i64:
    """Return `physical_offset_of` the ASCII text in a range of bytes, or -1 for None."""
    if end - at != _SHORT_ID:
        offset = physical_offset_of(data[at:end].decode("ascii"))
        if offset is None:
            return -1
        return offset
    port: i64 = hexadecimal_at(data, at + 8, 8)
    if port < 0 or port > 0xFFFF or hexadecimal_at(data, at, 8) < 0:
        return -1
    high: i64 = hexadecimal_at(data, at + 16, 8)
    low: i64 = hexadecimal_at(data, at + 24, 8)
    if high < 0 or high > 0x7FFFFFFF or low < 0:
        return -1
    return high << 32 | low


def hexadecimal_at(data: bytes, at: i64, count: i64) -> i64:
    """Parse at most 15 hexadecimal digits; return -1 if invalid."""
    number: i64 = 0
    end: i64 = at + count
    while at < end:
        digit: i64 = data[at]
        if 0x30 <= digit <= 0x39:
            digit -= 0x30
        elif 0x41 <= digit <= 0x46:
            digit -= 0x37
        elif 0x61 <= digit <= 0x66:
            digit -= 0x57
        else:
            return -1
        number = number << 4 | digit
        at += 1
    return number


class OffsetId(NamedTuple):
    """A broker's message id: the place of the stored record."""

    store_host: str
    """Broker, `ip:port`, IPv6 in brackets."""
    physical_offset: int
    """Byte offset in its commit log."""


def decode_offset_id(text: str) -> OffsetId | None:
    """Parse an offset message id, or return None if it is none, or certainly a client's id.

    Both kinds have 32 or 56 hex digits; only an offset id has a port of 0 to 65535 after the
    address, so a client id is mistaken for one only if its process id is 0.
    """
    if len(text) not in _OFFSET_ID_LENGTHS:
        return None
    store_host = _store_host_of(text[:-_OFFSET_DIGITS])
    offset = hexadecimal_of(text[-_OFFSET_DIGITS:])
    if store_host is None or offset is None or offset >= 1 << 63:
        return None
    return OffsetId(store_host, offset)


@lru_cache(maxsize=4096)  # a broker assigns millions of ids
def _store_host_of(text: str) -> str | None:
    """Return the broker whose ids start like this, or None."""
    parts = _split_address(text, _PORT.size)
    if parts is None:
        return None
    port: int = _PORT.unpack(parts[1])[0]
    return endpoint_text(str(ip_address(parts[0])), port) if 0 <= port <= 0xFFFF else None


class UniqueKey(NamedTuple):
    """Message id of a Java client (UNIQ_KEY, also the transaction id)."""

    address: str
    """IP of the client, or four bytes of a time if the client found no address."""
    pid: int
    """Low 16 bits of the process id."""
    loader_hash: int
    """Identity hash of the class loader: differs between clients of one process."""
    month_offset: int
    """Milliseconds since the month began, in the client's local time."""
    counter: int
    """Counter, wraps at 65536."""


def created_at(month_offset: int, reference_ms: int) -> int:
    """Return the creation time of a client's id, ms since the epoch; `reference_ms` is near it.

    The id counts from the start of a month, here of a clock at UTC; of the months around the
    reference the one with the nearest result is used.
    """
    if EARLIEST_MS <= reference_ms <= LATEST_MS:
        return int(clock_of(month_offset, reference_ms))
    near = max(EARLIEST_MS, min(reference_ms, LATEST_MS))
    before, own, after = _month_starts(near // MINUTE_MS)
    reference = max(-_FAR, min(reference_ms, _FAR))
    return int(_nearest_of(before, own, after, month_offset, reference))


def _nearest_of(before: i64, own: i64, after: i64, month_offset: i64, reference_ms: i64) -> i64:
    """Return the time nearest to a reference, of the offset added to three month starts."""
    nearest: i64 = before + month_offset
    least: i64 = nearest - reference_ms
    if least < 0:
        least = -least
    time: i64 = own + month_offset
    apart: i64 = time - reference_ms
    if apart < 0:
        apart = -apart
    if apart < least:
        nearest, least = time, apart
    time = after + month_offset
    apart = time - reference_ms
    if apart < 0:
        apart = -apart
    if apart < least:
        return time
    return nearest


@final
class _Months:
    """Starts of three consecutive months, ms since the epoch."""

    def __init__(self, before: i64, own: i64, after: i64) -> None:
        self.before: i64 = before
        self.own: i64 = own
        self.after: i64 = after


_LAST: Final = [_Months(0, 0, 0)]
"""months around the last requested time; replaced, never changed, as threads share them"""


def clock_of(month_offset: i64, near_ms: i64) -> i64:
    """Return `created_at` for a clock at UTC and a time within the calendar."""
    months = _LAST[0]
    if near_ms < months.own or near_ms >= months.after:
        before, own, after = _month_starts(int(near_ms) // MINUTE_MS)
        months = _LAST[0] = _Months(before, own, after)
    return _nearest_of(months.before, months.own, months.after, month_offset, near_ms)


def zone_of(apart: int) -> int | None:
    """Return the UTC offset in minutes of a clock that is `apart` ms ahead, or None if no zone
    fits.
    """
    if not -_FAR < apart < _FAR:
        return None
    minutes = zone_minutes(apart)
    return None if minutes == NO_ZONE else int(minutes)


def is_zone_known(minutes: i64, noon: bool) -> bool:
    """Return whether a clock that is `minutes` ahead of UTC reveals the client's time zone.

    `noon`: the client is so old that it may count from noon.
    """
    # Clients before 4.1.0 that start in the afternoon count from noon of the first of the month
    # (Calendar.HOUR), so their ids are 12 hours early.
    if noon:
        return minutes + _HALF_DAY > _EAST
    # No inhabited zone is 12 hours west of UTC: such a clock certainly counts from noon.
    return minutes != 0 and minutes != _WEST


def zone_minutes(apart: i64) -> i64:
    """Return `zone_of`, or `NO_ZONE` for None."""
    if -_NEAR_MS <= apart <= _NEAR_MS:  # the usual case
        return 0
    steps: i64 = (apart + _NEAR_MS) // (_ZONE_STEP * MINUTE_MS)
    rest: i64 = apart + _NEAR_MS - steps * (_ZONE_STEP * MINUTE_MS)
    minutes: i64 = steps * _ZONE_STEP
    if rest <= 2 * _NEAR_MS and _WEST <= minutes <= _EAST:
        return minutes
    return NO_ZONE


@lru_cache(maxsize=4096)
def _month_starts(minute: int) -> tuple[int, int, int]:
    """Return the starts of the month before a minute, of its own, and of the next one.

    Minutes are counted from the epoch; starts are ms since the epoch, in UTC.
    """
    moment = datetime.fromtimestamp(minute * 60, UTC)
    month = moment.year * 12 + moment.month - 1
    before, own, after = (
        round(datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC).timestamp() * 1000)
        for number in (month - 1, month, month + 1)
    )
    return before, own, after


def decode_unique_key(text: str) -> UniqueKey | None:
    """Parse a client's message id, or return None for other forms (clients not in Java)."""
    if len(text) not in KEY_LENGTHS:
        return None
    maker = maker_of(text[:-KEY_END])
    number = hexadecimal_of(text[-KEY_END:])
    if maker is None or number is None:
        return None
    address, pid, loader_hash = maker
    return UniqueKey(address, pid, loader_hash, number >> 16, number & 0xFFFF)


@lru_cache(maxsize=4096)  # a client makes millions of ids
def maker_of(text: str) -> tuple[str, int, int] | None:
    """Parse the start of a client's ids: address, process id, and class loader hash."""
    parts = _split_address(text, _MAKER_TAIL.size)
    if parts is None:
        return None
    pid, loader_hash = _MAKER_TAIL.unpack(parts[1])
    return str(ip_address(parts[0])), pid, loader_hash


def key_time_of(key: str, request_us: int) -> int | None:
    """Return the creation time in a UNIQ_KEY, by the request that first sent it.

    Times are in µs since the epoch. None if the key does not contain it.
    """
    data = key.encode("utf-8", "surrogatepass")
    month_offset = month_offset_at(data, 0, len(data))
    if month_offset < 0 or abs(request_us) > _LAST_TIME_US:
        return None
    return int(latest_before(month_offset, request_us))


def month_offset_at(data: bytes, at: i64, end: i64) -> i64:
    """Return `UniqueKey.month_offset` of the key in a range of bytes, or -1."""
    length: i64 = end - at
    if length not in (_KEY_LENGTH, _KEY_LENGTH_V6):
        return -1
    if hexadecimal_at(data, end - _COUNTER_DIGITS, _COUNTER_DIGITS) < 0:
        return -1
    return hexadecimal_at(data, end - KEY_END, KEY_END - _COUNTER_DIGITS)


def latest_before(month_offset: i64, request_us: i64) -> i64:
    """Return the last time in µs, not after a request, that is so many ms after a month start.

    The month is that of the client's unknown time zone.
    """
    # Zones differ by multiples of 15 minutes, so the result is the creation time unless the request
    # came later than that.
    ahead: i64 = request_us - month_offset * 1000 + _CLOCK_STEP_US
    return request_us - (ahead % _ZONE_STEP_US - _CLOCK_STEP_US)


class RecallHandle(NamedTuple):
    """Data to recall a timer message (send response, request 370)."""

    version: str
    """Form of the handle, `v1`."""
    topic: str
    """Topic of the message."""
    broker_name: str
    """Its broker."""
    deliver_time: int
    """Delivery time, ms since the epoch."""
    unique_key: str
    """UNIQ_KEY of the message."""


def decode_recall_handle(text: str) -> RecallHandle | None:
    """Parse a recall handle, or return None if it is unknown."""
    if len(text) > _LONGEST_HANDLE:
        return None
    data = base64_of(text + "=" * (-len(text) % 4), b"-_")
    if data is None:
        return None
    try:
        fields = data.decode().split(" ")
    except UnicodeDecodeError:
        return None
    if len(fields) != 5 or fields[0] != _RECALL_VERSION:
        return None
    deliver_time = integer_of(fields[3])
    if deliver_time is None:
        return None
    return RecallHandle(fields[0], fields[1], fields[2], deliver_time, fields[4])


def encode_recall_handle(handle: RecallHandle) -> str:
    """Encode a recall handle."""
    fields = (
        handle.version,
        handle.topic,
        handle.broker_name,
        str(handle.deliver_time),
        handle.unique_key,
    )
    return base64.urlsafe_b64encode(" ".join(fields).encode()).decode()

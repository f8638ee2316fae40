"""Display filters of Wireshark for the packets of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

_PACKETS: Final = ("request_packet", "response_packet", "packet")
"""columns with numbers of packets"""


def packet_filters(rows: Iterable[Any]) -> dict[str, str]:
    """Return capture → filter for the packets of its rows; absent: no row has a packet."""
    captures: dict[str, set[int]] = {}
    for row in rows:
        numbers = (getattr(row, name, None) for name in _PACKETS)
        captures.setdefault(getattr(row, "capture", ""), set()).update(filter(None, numbers))
    return {
        capture: f"frame.number in {{{', '.join(map(str, sorted(packets)))}}}"
        for capture, packets in captures.items()
        if packets
    }

"""What happens on an HTTP/2 connection, from the bytes of one end."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from dissectors.http2.connection import Happening, Http2End, StreamEvent
from dissectors.http2.frame import StreamPlace

NOWHERE = StreamPlace(0, 0, 0)


def events_of(data: bytes, cuts: Sequence[int] = (), *, joined: bool = False) -> list[StreamEvent]:
    """What happens with these bytes, received in pieces."""
    end = Http2End(joined)
    found: list[StreamEvent] = []
    edges = [0, *sorted(cut for cut in cuts if 0 < cut < len(data)), len(data)]
    for start, stop in itertools.pairwise(edges):
        end.receive(data[start:stop], StreamPlace(1, 1, stop), found)
    return found


def kinds_of(events: Sequence[StreamEvent]) -> list[Happening]:
    """What happened, in order."""
    return [event.what for event in events]

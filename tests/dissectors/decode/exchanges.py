"""What tests of exchanges share."""

from __future__ import annotations

from tests.traffic.decoded import decode_segments
from tests.traffic.talk import Tcp


def opaques(segments: list[Tcp]) -> list[tuple[str, int | None, int | None]]:
    """Status, opaque of the request, opaque of the response, in the order given out."""
    return [
        (
            one.status,
            one.request.command.opaque if one.request else None,
            one.response.command.opaque if one.response else None,
        )
        for one in decode_segments(segments).exchanges
    ]

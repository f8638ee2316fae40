"""Looks for messages in what is decoded, in one pass."""

from __future__ import annotations

from collections.abc import Iterator

from analytics.life.search import MessageSearch
from dissectors.decode.pipeline import Decode


def searched(decode: Decode, search: MessageSearch) -> Iterator[int]:
    """Give what is decoded to a search, batch by batch; yield how many rows of messages came."""
    for batch in decode.records():
        search.add_exchanges(batch)
        rows = 0
        for carried in decode.take_messages():
            search.add(carried.messages)
            rows += len(carried.messages)
        decode.take_experts()
        yield rows

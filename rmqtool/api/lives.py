"""Search decoded rows for messages, in one pass, and build their traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from analytics.life.life import MessageTrace, lives_found
from analytics.life.search import MessageSearch
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.printable import printable
from dissectors.rows.message_record import MessageRecord
from dissectors.rows.record import ExchangeRecord
from dissectors.times import Moment, between, text_of_time

from .notebook import html_table

if TYPE_CHECKING:
    from dissectors.broker_store.store_folder import StoreFolder


def searched(
    decode: Decode, search: MessageSearch, since: Moment | None = None, until: Moment | None = None
) -> Iterator[int]:
    """Feed decoded rows to a search, batch by batch; yield the number of message rows.

    Only rows between `since` and `until`: for a message by its own packet, not by that of its
    poll. Times of day are on the day of the first packet.
    """
    feed: Given | None = None
    for batch in decode.records():
        if feed is None and batch:  # now the time of the first packet is known
            feed = Given(search, since, until, decode.stats.first_time)
        rows = 0
        for carried in decode.take_messages():
            rows += len(carried.messages)
            if feed is not None:
                feed.add(carried.messages)
        if feed is not None:
            feed.add_exchanges(batch)
        search.attempts.add_connections(decode.take_conversations())
        decode.take_findings()
        yield rows
    search.attempts.add_connections(decode.take_conversations())


class Given:
    """Feeds a search with the rows of a time window."""

    def __init__(
        self, search: MessageSearch, since: Moment | None, until: Moment | None, first: int
    ) -> None:
        """`first`: time of the first packet, whose day applies to times of day."""
        self._search = search
        self._in_window = None if since is until is None else between(since, until, first)

    def add(self, rows: list[MessageRecord]) -> None:
        """Add rows of messages."""
        holds = self._in_window
        self._search.add(rows if holds is None else [row for row in rows if holds(row.time)])

    def add_exchanges(self, rows: list[ExchangeRecord]) -> None:
        """Add rows of exchanges."""
        holds = self._in_window
        if holds is not None:
            rows = [row for row in rows if holds(row.response_time) or holds(row.request_time)]
        self._search.add_exchanges(rows)


class Traces(list[MessageTrace]):
    """Traces of messages; a notebook shows each as a table."""

    def _repr_html_(self) -> str:
        parts = []
        for life in self:
            cells = [(text_of_time(step.time), step.words) for step in life.steps]
            parts.append(f"<h4>{escape(printable(life.name))}</h4>")
            parts.append(html_table(("Time", "Step"), cells))
        return "".join(parts)


def add_stores(stores: Sequence[StoreFolder], search: MessageSearch) -> None:
    """Feed the rows of broker stores to a search."""
    from dissectors.broker_store.store_decode import StoreDecode

    for store in stores:
        for rows in StoreDecode(store, DecodeOptions()).message_rows():
            search.add(rows)


def lives_in(
    decode: Decode,
    key: str | None,
    test: Callable[[object], bool] | None,
    stores: Sequence[StoreFolder] = (),
) -> Traces:
    """Return the traces of the messages of a key, or whose rows match a test."""
    search = MessageSearch(key, test)
    for _ in searched(decode, search):
        pass
    add_stores(stores, search)
    return Traces(lives_found(search, [decode.stats], stores))

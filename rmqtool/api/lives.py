"""Look for messages in what is decoded, in one pass, and tell their lives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

from analytics.life.life import Life, Surroundings, life_of
from analytics.life.search import MessageSearch
from dissectors.decode.pipeline import Decode
from dissectors.printable import printable
from dissectors.rows.message_record import MessageRecord
from dissectors.rows.record import ExchangeRecord
from dissectors.times import Moment, between, text_of_time

from .notebook import html_table


def searched(
    decode: Decode, search: MessageSearch, since: Moment | None = None, until: Moment | None = None
) -> Iterator[int]:
    """Give what is decoded to a search, batch by batch; yield how many rows of messages came.

    Only what was seen between `since` and `until`: of a message its own packet counts, not that of
    the poll that it answers. Times of day are of the day of the first packet.
    """
    given: Given | None = None
    for batch in decode.records():
        if given is None and batch:
            given = Given(search, since, until, decode.stats.first_time)
        rows = 0
        for carried in decode.take_messages():
            rows += len(carried.messages)
            if given is not None:
                given.add(carried.messages)
        if given is not None:
            given.add_exchanges(batch)
        decode.take_experts()
        yield rows


class Given:
    """What a search is given: the rows of the time that was asked for."""

    def __init__(
        self, search: MessageSearch, since: Moment | None, until: Moment | None, first: int
    ) -> None:
        """`first`: time of the first packet, on whose day times of day are."""
        self._search = search
        self._in_window = None if since is until is None else between(since, until, first)

    def add(self, rows: list[MessageRecord]) -> None:
        """Take rows of messages."""
        holds = self._in_window
        self._search.add(rows if holds is None else [row for row in rows if holds(row.time)])

    def add_exchanges(self, rows: list[ExchangeRecord]) -> None:
        """Take rows of exchanges."""
        holds = self._in_window
        if holds is not None:
            rows = [row for row in rows if holds(row.response_time) or holds(row.request_time)]
        self._search.add_exchanges(rows)


class Traces(list[Life]):
    """Traces of messages; a notebook shows each as a table."""

    def _repr_html_(self) -> str:
        parts = []
        for life in self:
            cells = [(text_of_time(step.time), step.words) for step in life.steps]
            parts.append(f"<h4>{escape(printable(life.name))}</h4>")
            parts.append(html_table(("Time", "Step"), cells))
        return "".join(parts)


def lives_in(decode: Decode, key: str | None, test: Callable[[object], bool] | None) -> Traces:
    """Return the traces of the messages of a key, or whose rows match a test."""
    search = MessageSearch(key, test)
    for _ in searched(decode, search):
        pass
    stats = decode.stats
    around = Surroundings(
        search.fetches,
        search.senders_seen,
        search.client_ids,
        stats.gap_bytes,
        sum(stats.not_decoded.values()),
        stats.replications,
    )
    return Traces(life_of(found, around) for found in search.messages)

"""What is told of a row beyond itself: the life of its message, what its conversation said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from analytics.life.life import Surroundings, life_of
from analytics.life.search import MessageSearch
from dissectors.budget import Budget
from dissectors.decode.pipeline import CommandSeen
from dissectors.tcp.capture import packet_number

from ...decode.follow_lines import said_lines
from ...trace.ladder_lines import ladder_lines
from ...ui.console import Terminal, one_line
from .frames import exchange_of
from .session import BrowseSession

MOST_SAID: Final = 400
"""exchanges of a conversation that are shown around the one that is chosen"""
_BODY: Final = 2048


def life_lines(
    session: BrowseSession, key: str, width: int, wanted: Callable[[], bool]
) -> list[str]:
    """Return the lives of the messages of a key, as `trace` draws them.

    `wanted` says whether somebody still waits for them.
    """
    search = MessageSearch(key, None)
    for messages in session.messages.whole():
        search.add(messages)
        if not wanted():
            return []
    for exchanges in session.exchanges.whole():
        search.add_exchanges(exchanges)
        if not wanted():
            return []
    stats = session.stats
    around = Surroundings(
        search.fetches,
        search.senders_seen,
        search.client_ids,
        0 if stats is None else stats.gap_bytes,
        0 if stats is None else sum(stats.not_decoded.values()),
        [] if stats is None else stats.replications,
    )
    lives = [life_of(found, around) for found in search.messages]
    if not lives:
        return [f"no message has the key {one_line(key)}"]
    return ladder_lines(lives, Terminal(True, max(60, width), True))


def talk_lines(
    session: BrowseSession, conversation: int, number: int, wanted: Callable[[], bool]
) -> list[str]:
    """Return what both ends of a conversation said around an exchange, as text."""
    numbers = list(_numbers_of(session, conversation, wanted))
    before = [one for one in numbers if one <= number][-MOST_SAID // 2 :]
    after = [one for one in numbers if one > number][: MOST_SAID // 2]
    frames = session.frames
    said: list[CommandSeen] = []
    for one in (*before, *after):
        kept = None if frames is None else frames.exchange(one)
        if kept is None:
            continue
        exchange = exchange_of(kept)
        if exchange.request is not None:
            said.append(CommandSeen(exchange.request, None, None))
        if exchange.response is not None:
            said.append(CommandSeen(exchange.response, exchange.request, exchange.latency))
    said.sort(key=lambda one: (one.pdu.packet, one.pdu.offset))
    client = next((one.pdu.src for one in said if not one.pdu.command.is_response), "")
    lines = [f"conversation {conversation}: → is what {client} says", ""]
    left_out = len(numbers) - len(before) - len(after)
    if left_out:
        lines[0] += f"; {left_out} exchanges farther away are left out"
    budget = Budget()
    for seen in said:
        try:
            lines += said_lines(seen, seen.pdu.src == client, _BODY, budget, True)
        except Exception as error:  # the last line of defence: one command never ends the program
            lines.append(f"packet {packet_number(seen.pdu.packet)}: {one_line(str(error))}")
    return lines


def _numbers_of(
    session: BrowseSession, conversation: int, wanted: Callable[[], bool]
) -> Iterator[int]:
    store = session.exchanges
    for first, rows in store.runs(store.first, store.count):
        if not wanted():
            return
        for place, row in enumerate(rows):
            if row.conversation == conversation:
                yield first + place

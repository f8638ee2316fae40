"""The context of a row: the trace of its message, the text of its conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from analytics.life.life import lives_found
from analytics.life.search import MessageSearch
from dissectors.budget import Budget
from dissectors.decode.pipeline import CommandSeen
from dissectors.quantities import counted
from dissectors.tcp.capture import packet_number

from ...decode.follow_lines import printed_lines
from ...trace.ladder_lines import ladder_lines
from ...ui.console import Terminal, one_line
from .frames import exchange_of
from .session import BrowseSession

MOST_LISTED: Final = 400
"""exchanges shown around the selected one"""
_BODY: Final = 2048


def life_lines(
    session: BrowseSession, key: str, width: int, wanted: Callable[[], bool]
) -> list[str]:
    """Return the traces of the messages of a key, as `trace` draws them.

    `wanted` returns False when the result is no longer needed.
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
    for connections in session.connections.whole():
        search.attempts.add_connections(connections)
    stats = session.stats
    lives = lives_found(search, [] if stats is None else [stats])
    if not lives:
        return [f"no message has the key {one_line(key)}"]
    return ladder_lines(lives, Terminal(True, max(60, width), True))


def talk_lines(
    session: BrowseSession, conversation: int, number: int, wanted: Callable[[], bool]
) -> list[str]:
    """Return the commands of a conversation around an exchange, as text."""
    numbers = list(_numbers_of(session, conversation, wanted))
    before = [item for item in numbers if item <= number][-MOST_LISTED // 2 :]
    after = [item for item in numbers if item > number][: MOST_LISTED // 2]
    frames = session.frames
    commands: list[CommandSeen] = []
    for item in (*before, *after):
        kept = None if frames is None else frames.exchange(item)
        if kept is None:
            continue
        exchange = exchange_of(kept)
        if exchange.request is not None:
            commands.append(CommandSeen(exchange.request, None, None))
        if exchange.response is not None:
            commands.append(CommandSeen(exchange.response, exchange.request, exchange.latency))
    commands.sort(key=lambda item: (item.pdu.packet, item.pdu.offset))
    client = next((item.pdu.src for item in commands if not item.pdu.command.is_response), "")
    lines = [f"conversation {conversation}: → sent by {client}", ""]
    left_out = len(numbers) - len(before) - len(after)
    if left_out:
        lines[0] += f"; {counted(left_out, 'more exchange')} not shown"
    budget = Budget()
    for seen in commands:
        try:
            lines += printed_lines(seen, seen.pdu.src == client, _BODY, budget, True)
        except Exception as error:  # last resort: a single command must not end the program
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

"""The form that rows of messages are given: each has its way for most of what is seen."""

from __future__ import annotations

from ..rows.message_record import MessageRecord
from .plain_send import PlainSend
from .seen_exchange import SeenExchange


class MessageForm:
    """Takes rows of messages, and what is written as they would be without becoming them."""

    __slots__ = ()

    @property
    def waiting(self) -> int:
        """How many rows wait to be taken."""
        raise NotImplementedError

    def add(self, rows: list[MessageRecord]) -> None:
        """Add rows that nobody needs afterwards."""
        raise NotImplementedError

    def add_whole(self, seen: SeenExchange, event: str, body: bytes, group: str | None) -> bool:
        """Add what the records of a body say, delivered to a group; False: nothing is added, as one
        is odd.
        """
        raise NotImplementedError

    def add_send(self, send: PlainSend) -> bool:
        """Add the message of a send; False: nothing is added, as it is odd."""
        raise NotImplementedError

"""Attempts to send the messages of a trace, numbered as in the retry report.

Both stitch the same rows in the same way (`analytics.sends`): an attempt in two captures counts
once, and so does a connect that failed between two attempts, although no request was sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dissectors.rows.broker_names import BrokerNames
from dissectors.rows.conversation_record import REFUSED, ConversationRecord
from dissectors.rows.message_record import MessageRecord
from dissectors.rows.outcome import is_send
from dissectors.rows.record import ExchangeRecord

from ..diagnosis.messages import AttemptStore, ObservedMessage
from ..sends.attempts import CONNECT_REFUSED, ObservedAttempt
from .lanes import CONNECT_FAILED

_Request = tuple[str, int | None, str | None]
"""capture and packet of a send, and its UNIQ_KEY: a packet may have several sends"""


class SendAttempts:
    """The sends of all messages, as far as attempts have to be stitched."""

    def __init__(self) -> None:
        self._store = AttemptStore()
        self._names = BrokerNames()

    def begin_input(self, name: str) -> None:
        """Start an input: conversation numbers are unique only within one input."""
        self._store.source = name

    def add(self, rows: Iterable[ExchangeRecord]) -> None:
        """Add exchanges."""
        for row in rows:
            self._names.add_exchange(row)
            if is_send(row.request_name):
                self._store.add(row)

    def add_connections(self, rows: Iterable[ConversationRecord]) -> None:
        """Add closed TCP connections."""
        for row in rows:
            self._store.add_connection(row)

    def stitched(self) -> StitchedSends:
        """Return the attempts of the messages that have several, or may have."""
        return StitchedSends(self._store.messages(self._names.names_with_vip()))


class StitchedSends:
    """The attempts of messages, by the rows of their sends."""

    def __init__(self, messages: Sequence[ObservedMessage]) -> None:
        self._of_request: dict[_Request, tuple[ObservedMessage, ObservedAttempt]] = {}
        for message in messages:
            sent = {
                (
                    attempt.send.client_address,
                    attempt.send.server_address,
                    attempt.send.opaque,
                ): attempt
                for attempt in message.attempts
                if not attempt.inferred
            }
            for row in message.rows:  # of each capture, while an attempt has one of them
                attempt = sent.get((row.client_address, row.server_address, row.opaque))
                if attempt is not None:
                    request = row.capture, row.request_packet, row.unique_key
                    self._of_request[request] = message, attempt

    def number(self, row: MessageRecord) -> int | None:
        """Return the number of the attempt in a row; None: nothing to stitch."""
        known = self._of(row)
        return None if known is None else known[1].number

    def failed_connects(self, rows: Sequence[MessageRecord]) -> Iterator[MessageRecord]:
        """Yield a row for each attempt of a message, whose rows these are, without a request."""
        seen: set[tuple[int, int]] = set()
        for row in rows:
            known = self._of(row)
            if known is None:
                continue
            message, attempt = known
            before = message.attempts[: attempt.number - 1]
            while before and before[-1].inferred:
                failed = before.pop()
                # rows of two captures may show the same attempt
                if (id(message), failed.number) not in seen:
                    seen.add((id(message), failed.number))
                    yield _connect_row(row, failed)

    def _of(self, row: MessageRecord) -> tuple[ObservedMessage, ObservedAttempt] | None:
        if not is_send(row.request_name):
            return None
        return self._of_request.get((row.capture, row.request_packet, row.unique_key))


def _connect_row(row: MessageRecord, failed: ObservedAttempt) -> MessageRecord:
    """Return the step of a failed connect, after which the message was sent as in `row`."""
    send = failed.send
    return msgspec.structs.replace(
        row,
        event=CONNECT_FAILED,
        capture=send.capture or "",
        conversation=send.conversation or 0,
        packet=None,
        request_packet=None,
        time=failed.begin * 1000,
        latency_us=None if failed.end is None else failed.end - failed.begin,
        end=REFUSED if failed.outcome == CONNECT_REFUSED else None,
        server_address=send.server_address,
        broker_name=send.broker,
        response_code=None,
        response_name=None,
        remark=None,
        queue_id=None,
        queue_offset=None,
        offset_msg_id=None,
        commit_log_offset=None,
        store_time=None,
        body=None,
    )

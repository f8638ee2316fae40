"""Message rows of one run, from exchanges.

Rules: an exchange without messages costs one look-up. State between exchanges is bounded: the
client id of each connection, its fetchers, and the last commit carried by a pull. No message
content raises an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, NamedTuple, TypeVar

import msgspec

from ..budget import FREE_BYTES, MAX_REMEMBERED, Budget
from ..conversations.conversation import Pdu
from ..findings import Finding, FindingKind, undecoded
from ..foreign import natural_of
from ..grpc.command import NO_CODE, CallCommand
from ..remoting.bodies.custom import take_problems
from ..remoting.code_sets import SENDS
from ..remoting.codes import RequestCode
from ..remoting.messages.batch import starts_batch
from ..remoting.messages.orphan_responses import request_code_of_response
from ..remoting.messages.records import decode_messages
from ..rows.column_bytes import ArrowSink
from ..rows.message_record import (
    ACKNOWLEDGED,
    DELIVERED,
    MESSAGE_COLUMNS,
    VIEWED,
    MessageRecord,
)
from ..rows.record import ExchangeRecord
from ..rows.row_sink import JsonSink, ObjectSink, RowSink
from .calls import rows_of_call
from .decisions import (
    row_of_commit,
    rows_of_ack,
    rows_of_batch_ack,
    rows_of_commit,
    rows_of_new_invisible_time,
    rows_of_recall,
    rows_of_return,
    rows_of_transaction_end,
)
from .message_writer import MessageWriter
from .seen_exchange import MessageEvent, SeenExchange, number_of
from .sends import SEND_BATCH, rows_of_batch, rows_of_pushed_reply
from .stored import rows_of_check, rows_of_fetch, rows_of_lite_fetch, rows_of_view

_COMMITS_OFFSET: Final = 0x1
"""PullSysFlag.FLAG_COMMIT_OFFSET"""

Maker = Callable[[SeenExchange], Iterable[MessageEvent]]

_PULLS: Final = frozenset((int(RequestCode.PULL_MESSAGE), int(RequestCode.LITE_PULL_MESSAGE)))
_MAKERS: Final[dict[int, Maker]] = {
    **dict.fromkeys(SENDS, rows_of_batch),
    **dict.fromkeys(_PULLS, rows_of_fetch),
    int(RequestCode.POP_MESSAGE): rows_of_fetch,
    int(RequestCode.POP_LITE_MESSAGE): rows_of_lite_fetch,
    int(RequestCode.QUERY_MESSAGE): rows_of_view,
    int(RequestCode.VIEW_MESSAGE_BY_ID): rows_of_view,
    int(RequestCode.PEEK_MESSAGE): rows_of_view,
    int(RequestCode.CHECK_TRANSACTION_STATE): rows_of_check,
    int(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT): rows_of_pushed_reply,
    int(RequestCode.UPDATE_CONSUMER_OFFSET): rows_of_commit,
    int(RequestCode.ACK_MESSAGE): rows_of_ack,
    int(RequestCode.BATCH_ACK_MESSAGE): rows_of_batch_ack,
    int(RequestCode.CHANGE_MESSAGE_INVISIBLETIME): rows_of_new_invisible_time,
    int(RequestCode.CONSUMER_SEND_MSG_BACK): rows_of_return,
    int(RequestCode.END_TRANSACTION): rows_of_transaction_end,
    int(RequestCode.RECALL_MESSAGE): rows_of_recall,
    NO_CODE: rows_of_call,
}
"""request code → builder of its message rows"""
_DELIVERING: Final = frozenset(code for code, make in _MAKERS.items() if make is rows_of_fetch)
_FETCHING: Final = _DELIVERING | {int(RequestCode.POP_LITE_MESSAGE)}
_SHOWING: Final = frozenset(code for code, make in _MAKERS.items() if make is rows_of_view)
_NAMING: Final = frozenset(
    (
        int(RequestCode.HEART_BEAT),
        int(RequestCode.UNREGISTER_CLIENT),
        int(RequestCode.LOCK_BATCH_MQ),
        int(RequestCode.UNLOCK_BATCH_MQ),
    )
)
"""client requests that contain the client id"""

_CUT: Final = (
    "from here on, rows of messages are left out or their bodies cut: they would take too much room"
)
_ROW: Final = 1024
"""budget charge of a row that the bytes of its exchange do not cover"""
_LEAST_RECORD: Final = 64
"""body bytes that cover a row: no stored message is shorter"""
_LONGEST: Final = 1024
"""free characters of texts that a row repeats from its exchange or another row"""
_WIDEST: Final = 6
"""maximum bytes per character, as a JSON escape"""
_MOST_REPEATED: Final = 64 * 1024 * 1024
"""maximum bytes that the rows of one exchange repeat beyond the free ones"""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class _Fetcher(NamedTuple):
    """Consumer group and broker of a topic's fetches over a connection."""

    group: str | None
    """the only consumer group; None: several"""
    broker_name: str | None
    """the broker that messages are fetched from"""


class MessageTable:
    """Builds message rows."""

    def __init__(self, body_limit: int = 0) -> None:
        """`body_limit` is the maximum bytes of a body in a row; 0: none."""
        self._body_limit = body_limit
        self._budget = Budget()
        self._is_cut = False
        self._most_spent = 0
        self._made = 0
        self._clients: dict[int, str] = {}
        self._committed: dict[tuple[int, str | None, int | None], str] = {}
        self._fetchers: dict[tuple[int, str], _Fetcher] = {}
        self._objects: ObjectSink | None = ObjectSink(MessageRecord)
        self._sink: RowSink = self._objects
        self._writer = MessageWriter(self._sink)

    def as_lines(self) -> JsonSink:
        """Switch to JSON lines without bodies, and return their sink."""
        lines = JsonSink(MESSAGE_COLUMNS)
        self._take_sink(lines)
        return lines

    def as_columns(self) -> ArrowSink:
        """Switch to columns without bodies, and return their sink."""
        columns = ArrowSink(MESSAGE_COLUMNS)
        self._take_sink(columns)
        return columns

    def _take_sink(self, sink: RowSink) -> None:
        self._objects, self._sink, self._writer = None, sink, MessageWriter(sink)

    def is_of_messages(self, request: Pdu | None, response: Pdu | None) -> bool:
        """Return whether an exchange has messages, or identifies the owner of messages."""
        if request is None:
            return response is not None and response.message_count > 0
        code = request.head.code
        return code in _MAKERS or code in _NAMING

    def took_send(
        self, request: Pdu, response: Pdu | None, capture: str, findings: list[Finding]
    ) -> bool:
        """Write the message of a single send, without the row of its exchange.

        Return False if it is no send, or a send of several messages, which `rows_of` handles.
        """
        code = request.head.code
        if code not in SENDS or (code == SEND_BATCH and starts_batch(request.body)):
            return False
        size = len(request.body)
        if response is not None:
            size += len(response.body)
        self._budget.earn(size)
        client = self._clients.get(request.conversation)
        try:
            self._writer.write_send(
                request, response, capture, client, self._body_limit, self._budget
            )
        except Exception as error:  # last line of defence: a bad message must not end the run
            findings.append(request.say(FindingKind.BAD_MESSAGE, undecoded(error)))
        self._note_end(request, False, findings)
        return True

    def rows_of(
        self,
        request: Pdu | None,
        response: Pdu | None,
        row: ExchangeRecord,
        findings: list[Finding],
    ) -> list[MessageRecord]:
        """Return the message rows of an exchange with this `row`; none if they go to a sink.

        A message without a possible row becomes a finding in `findings`.
        """
        if not self.is_of_messages(request, response):
            return []
        if request is None or not self.took_send(request, response, row.capture, findings):
            self.take_exchange(request, response, row, findings)
        return [] if self._objects is None else self._objects.take()

    def take_exchange(
        self,
        request: Pdu | None,
        response: Pdu | None,
        row: ExchangeRecord,
        findings: list[Finding],
    ) -> None:
        """Write the messages of an exchange that is no single send; `row` is its row."""
        pdu = request or response
        assert pdu is not None
        code = _code_of(request, pdu)
        if code in _NAMING:
            self._note_client(row)
            return
        make = _MAKERS.get(code)
        if make is None:
            return
        if request is None:
            row = self._with_fetcher(row, pdu)
        elif code in _FETCHING:
            self._note_fetcher(row)
        client = self._clients.get(row.conversation) or row.client_id
        seen = SeenExchange(request, response, row, client, self._body_limit, self._budget)
        size = len(request.body) if request is not None else 0
        size += len(response.body) if response is not None else 0
        self._budget.earn(size)
        paid = 1 + size // _LEAST_RECORD  # rows that the bytes of the exchange pay for
        most = max(self._budget.room // _ROW, paid)
        before = self._sink.waiting
        is_more = False
        try:
            if code in _PULLS and request is not None:
                commit = self._commit_in(seen, request)
                if commit is not None:  # a broker accepts it, whatever its response to the pull
                    row_of = row_of_commit(seen, number_of(commit), ACKNOWLEDGED)
                    self._writer.write(seen, row_of)
            shared = _shared_by_rows(row, client)
            # Rows that repeat long texts are charged to the budget one by one.
            is_long = shared + len(row.group or "") > _LONGEST
            if is_long or not self._wrote_records(seen, code):
                is_more = self._take(seen, make(seen), shared, before + most)
        except Exception as error:  # last line of defence: a bad message must not end the run
            findings.append(pdu.say(FindingKind.BAD_MESSAGE, undecoded(error)))
        made = self._sink.waiting - before
        if made > paid:
            self._budget.spend((made - paid) * _ROW)
        self._note_end(pdu, is_more, findings)

    def _note_end(self, pdu: Pdu, is_more: bool, findings: list[Finding]) -> None:
        """Account for the messages of an exchange; `is_more`: some got no row."""
        if self._body_limit:
            findings += [pdu.say(FindingKind.BAD_BODY, text) for text in take_problems()]
        is_room_over = self._note_made()
        if is_more:
            self._most_spent = FREE_BYTES
        if (is_more or is_room_over) and not self._is_cut:
            self._is_cut = True
            findings.append(pdu.say(FindingKind.BAD_MESSAGE, _CUT))

    def _take(
        self, seen: SeenExchange, made: Iterable[MessageEvent], shared: int, most: int
    ) -> bool:
        """Write rows within the budget, up to `most` buffered rows; return whether there are more.

        `shared` is the number of characters that each row repeats from its exchange. The first row
        is free; further repetitions are charged to the budget.
        """
        room = min(self._budget.room, _MOST_REPEATED)
        repeated = 0
        try:
            for number, event in enumerate(made):
                beyond = shared + _names_in(event) - _LONGEST
                if beyond > 0 and number:
                    repeated += beyond * _WIDEST
                if self._sink.waiting >= most or repeated > room:
                    return True
                self._writer.write(seen, event)
        finally:
            if repeated:
                self._budget.spend(min(repeated, room))
        return False

    def _note_made(self) -> bool:
        """Account for output since the last call; return whether the budget is exhausted."""
        # Most exchanges spend nothing: one comparison is all that they cost.
        made_by_now = self._budget.made + self._budget.checks.made
        if made_by_now == self._made:
            return False
        self._made = made_by_now
        self._most_spent = max(self._most_spent, self._spent)
        return not self._budget.room

    def _wrote_records(self, seen: SeenExchange, code: int) -> bool:
        """Write the stored records of a response; return False if they need the slow path."""
        response = seen.response
        # Rows with bodies need decompression and plug-ins, which only decoded messages get.
        if response is None or response.head.code != 0 or not response.body or self._body_limit:
            return False
        if code in _DELIVERING:
            event, group = DELIVERED, seen.row.group
        elif code in _SHOWING:
            event, group = VIEWED, None
        else:
            return False
        return self._writer.write_body(seen, event, response.body, group)

    @property
    def _spent(self) -> int:
        """Bytes spent on messages beyond what bodies earned."""
        return FREE_BYTES - min(self._budget.room, self._budget.checks.room)

    def take_most_spent(self) -> int:
        """Return the peak of the bytes spent beyond earnings since the last call."""
        peak, self._most_spent = self._most_spent, self._spent
        return peak

    @property
    def remembered(self) -> int:
        """Number of connections and queues with remembered state."""
        return max(len(self._clients), len(self._committed), len(self._fetchers))

    def _note_client(self, row: ExchangeRecord) -> None:
        if row.client_id is not None:
            _remember(self._clients, row.conversation, row.client_id)

    def _note_fetcher(self, row: ExchangeRecord) -> None:
        # Only the number of entries is limited, so that their sizes must be, too.
        if row.topic is None or len(row.topic) + len(row.group or "") > _LONGEST:
            return
        key = (row.conversation, row.topic)
        known = self._fetchers.get(key)
        if known is None:
            _remember(self._fetchers, key, _Fetcher(row.group, row.broker_name))
        elif known.group != row.group:
            # Several groups: a response without its request could be for any of them.
            self._fetchers[key] = known._replace(group=None)

    def _with_fetcher(self, row: ExchangeRecord, response: Pdu) -> ExchangeRecord:
        """Return the row of a response without request, with its consumer group added."""
        # A response does not name its group; fetches of this topic on the connection do.
        messages = decode_messages(response.body).messages
        if not messages:
            return row
        fetcher = self._fetchers.get((row.conversation, messages[0].topic))
        if fetcher is None:
            return row
        return msgspec.structs.replace(row, group=fetcher.group, broker_name=fetcher.broker_name)

    def _commit_in(self, seen: SeenExchange, request: Pdu) -> str | None:
        """Return the offset that a pull commits, or None if absent or unchanged."""
        view = request.view
        flag, offset = view.text(view.sys_flag), view.text(view.commit_offset)
        flags = natural_of(flag) if flag is not None else None
        # The bit decides: clients clear it in pulls from a slave, but the field may still be there.
        if offset is None or flags is None or not flags & _COMMITS_OFFSET:
            return None
        row = seen.row
        queue = (row.conversation, row.topic, row.queue_id)
        if self._committed.get(queue) == offset:  # pulls repeat it
            return None
        if len(row.topic or "") + len(offset) <= _LONGEST:
            _remember(self._committed, queue, offset)
        return offset


def _code_of(request: Pdu | None, pdu: Pdu) -> int:
    """Return the code of the request, or of the request implied by a response; -1: unknown."""
    if request is not None:
        return request.head.code
    command = pdu.command
    if isinstance(command, CallCommand):
        return -1
    code = request_code_of_response(command.code, command.ext_fields, pdu.body, pdu.missing)
    return -1 if code is None else int(code)


def _shared_by_rows(row: ExchangeRecord, client: str | None) -> int:
    """Return the number of peer-controlled characters that the rows of an exchange share."""
    return (
        len(row.request_name or "")
        + len(row.response_name or "")
        + len(row.remark or "")
        + len(row.broker_name or "")
        + len(client or "")
    )


def _names_in(message: MessageEvent) -> int:
    """Return the number of characters in names that other rows may repeat."""
    facts = message.facts
    return (
        len(facts.topic or "") + len(facts.original_topic or "") + len(facts.consumer_group or "")
    )


def _remember(known: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Store a value; evict the oldest quarter if there are too many."""
    if key not in known and len(known) >= MAX_REMEMBERED:
        for old in list(islice(known, MAX_REMEMBERED // 4)):
            del known[old]
    known[key] = value

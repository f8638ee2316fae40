"""Exchanges in, rows of messages out, of one run.

Rules: an exchange that carries no message costs one look-up. What is remembered between exchanges
is bounded: the client id of each connection, who fetches what over it, and the last commit that a
pull of it carried. Nothing raises because of what a message contains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, NamedTuple, TypeVar

import msgspec

from ..budget import FREE_BYTES, MAX_REMEMBERED, Budget
from ..conversations.conversation import Pdu
from ..expert import ExpertInfo, ExpertKind, undecoded
from ..foreign import natural_of
from ..grpc.command import NO_CODE, CallCommand
from ..remoting.bodies.custom import take_problems
from ..remoting.code_sets import SENDS
from ..remoting.codes import RequestCode
from ..remoting.messages.batch import decode_batch
from ..remoting.messages.orphan_responses import request_code_of_response
from ..remoting.messages.records import decode_messages
from ..remoting.row_facts.names import CLIENT, fact_in
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
"""Request code → what makes the rows of its messages."""
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
"""Requests of a client that name its client id."""

_CUT: Final = (
    "from here on, rows of messages are left out or their bodies cut: they would take too much room"
)
_ROW: Final = 1024
"""bytes that a row takes of the budget where the bytes of the exchange do not pay for it"""
_LEAST_RECORD: Final = 64
"""bytes of a body that pay for a row: no stored message is shorter"""
_LONGEST: Final = 1024
"""characters of texts that a row repeats from its exchange, or from another row, without paying"""
_WIDEST: Final = 6
"""bytes of a character at most, where it is written as an escape"""
_MOST_REPEATED: Final = 64 * 1024 * 1024
"""bytes that the rows of one exchange repeat beyond that"""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class _Fetcher(NamedTuple):
    """Who fetches the messages of a topic over a connection."""

    group: str | None
    """the only consumer group that does; None: several do"""
    broker_name: str | None
    """the broker that it fetches them from"""


class MessageTable:
    """Makes the rows of messages."""

    def __init__(self, body_limit: int = 0) -> None:
        """`body_limit`: bytes of each body that the rows have; 0: none."""
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
        """Return what has the rows from now on, as lines of JSON without bodies."""
        lines = JsonSink(MESSAGE_COLUMNS)
        self._take_sink(lines)
        return lines

    def as_columns(self) -> ArrowSink:
        """Return what has the rows from now on, as columns without bodies."""
        columns = ArrowSink(MESSAGE_COLUMNS)
        self._take_sink(columns)
        return columns

    def _take_sink(self, sink: RowSink) -> None:
        self._objects, self._sink, self._writer = None, sink, MessageWriter(sink)

    def is_of_messages(self, request: Pdu | None, response: Pdu | None) -> bool:
        """Return whether an exchange is of messages, or tells whose they are."""
        if request is None:
            return response is not None and response.message_count > 0
        code = request.head.code
        return code in _MAKERS or code in _NAMING

    def took_send(
        self, request: Pdu, response: Pdu | None, capture: str, experts: list[ExpertInfo]
    ) -> bool:
        """Take the message of a send, without the row of its exchange; False: it is no send, or
        one of several messages, and `rows_of` takes it.
        """
        code = request.head.code
        if code not in SENDS or (code == SEND_BATCH and decode_batch(request.body).items):
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
        except Exception as error:  # the last line of defence: one message never ends a run
            experts.append(request.say(ExpertKind.BAD_MESSAGE, undecoded(error)))
        self._note_end(request, False, experts)
        return True

    def rows_of(
        self,
        request: Pdu | None,
        response: Pdu | None,
        row: ExchangeRecord,
        experts: list[ExpertInfo],
    ) -> list[MessageRecord]:
        """Return the rows of the messages in an exchange, whose own row is `row`; none where
        they have another form.

        A message of which no row can be made is a finding among the `experts`.
        """
        asked = request or response
        if asked is None or not self.is_of_messages(request, response):
            return []
        if request is None or not self.took_send(request, response, row.capture, experts):
            self._take_exchange(request, response, asked, row, experts)
        return [] if self._objects is None else self._objects.take()

    def _take_exchange(
        self,
        request: Pdu | None,
        response: Pdu | None,
        asked: Pdu,
        row: ExchangeRecord,
        experts: list[ExpertInfo],
    ) -> None:
        """Take the messages in an exchange that is no send of one message."""
        code = _code_of(request, asked)
        if code in _NAMING:
            self._note_client(row)
            return
        make = _MAKERS.get(code)
        if make is None:
            return
        if request is None:
            row = self._with_fetcher(row, asked)
        elif code in _FETCHING:
            self._note_fetcher(row)
        client = self._clients.get(row.conversation) or fact_in(row.facts, CLIENT)
        seen = SeenExchange(request, response, row, client, self._body_limit, self._budget)
        size = len(request.body) if request is not None else 0
        size += len(response.body) if response is not None else 0
        self._budget.earn(size)
        paid = 1 + size // _LEAST_RECORD
        most = max(self._budget.room // _ROW, paid)
        before = self._sink.waiting
        is_more = False
        try:
            if code in _PULLS and request is not None:
                commit = self._commit_in(seen, request)
                if commit is not None:  # a broker takes it, whatever it answers to the pull
                    row_of = row_of_commit(seen, number_of(commit), ACKNOWLEDGED)
                    self._writer.write(seen, row_of)
            shared = _shared_by_rows(row, client)
            is_long = shared + len(row.group or "") > _LONGEST
            if is_long or not self._wrote_whole(seen, code):
                is_more = self._take(seen, make(seen), shared, before + most)
        except Exception as error:  # the last line of defence: one message never ends a run
            experts.append(asked.say(ExpertKind.BAD_MESSAGE, undecoded(error)))
        made = self._sink.waiting - before
        if made > paid:
            self._budget.spend((made - paid) * _ROW)
        self._note_end(asked, is_more, experts)

    def _note_end(self, asked: Pdu, is_more: bool, experts: list[ExpertInfo]) -> None:
        """Note what the messages of an exchange took; `is_more`: some of them got no row."""
        if self._body_limit:
            experts += [asked.say(ExpertKind.BAD_BODY, text) for text in take_problems()]
        is_room_over = self._note_made()
        if is_more:
            self._most_spent = FREE_BYTES
        if (is_more or is_room_over) and not self._is_cut:
            self._is_cut = True
            experts.append(asked.say(ExpertKind.BAD_MESSAGE, _CUT))

    def _take(
        self, seen: SeenExchange, made: Iterable[MessageEvent], shared: int, most: int
    ) -> bool:
        """Write what there is room for, up to `most` rows that wait; return whether there is more.

        `shared`: characters that each row repeats from its exchange. The first row is free: the
        exchange says its texts once. What rows repeat beyond that takes of the budget.
        """
        room = min(self._budget.room, _MOST_REPEATED)
        repeated = 0
        try:
            for number, one in enumerate(made):
                beyond = shared + _names_in(one) - _LONGEST
                if beyond > 0 and number:
                    repeated += beyond * _WIDEST
                if self._sink.waiting >= most or repeated > room:
                    return True
                self._writer.write(seen, one)
        finally:
            if repeated:
                self._budget.spend(min(repeated, room))
        return False

    def _note_made(self) -> bool:
        """Note what was made since the last call; return whether the room ended by it."""
        made_by_now = self._budget.made + self._budget.checks.made
        if made_by_now == self._made:
            return False
        self._made = made_by_now
        self._most_spent = max(self._most_spent, self._spent)
        return not self._budget.room

    def _wrote_whole(self, seen: SeenExchange, code: int) -> bool:
        """Write the stored records of an answer; return False where they need rows."""
        response = seen.response
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
        """Bytes that messages became, beyond what bodies earned."""
        return FREE_BYTES - min(self._budget.room, self._budget.checks.room)

    def take_most_spent(self) -> int:
        """Return the bytes that messages became, beyond what bodies had earned by then, at the
        most since the last call.
        """
        most, self._most_spent = self._most_spent, self._spent
        return most

    @property
    def remembered(self) -> int:
        """Of how many connections or queues something is remembered."""
        return max(len(self._clients), len(self._committed), len(self._fetchers))

    def _note_client(self, row: ExchangeRecord) -> None:
        client = fact_in(row.facts, CLIENT)
        if client is not None:
            _remember(self._clients, row.conversation, client)

    def _note_fetcher(self, row: ExchangeRecord) -> None:
        if row.topic is None or len(row.topic) + len(row.group or "") > _LONGEST:
            return
        key = (row.conversation, row.topic)
        known = self._fetchers.get(key)
        if known is None:
            _remember(self._fetchers, key, _Fetcher(row.group, row.broker_name))
        elif known.group != row.group:
            self._fetchers[key] = known._replace(group=None)

    def _with_fetcher(self, row: ExchangeRecord, response: Pdu) -> ExchangeRecord:
        """Return the row of a response without request, with whose messages it has."""
        messages = decode_messages(response.body).messages
        if not messages:
            return row
        fetcher = self._fetchers.get((row.conversation, messages[0].topic))
        if fetcher is None:
            return row
        return msgspec.structs.replace(row, group=fetcher.group, broker_name=fetcher.broker_name)

    def _commit_in(self, seen: SeenExchange, request: Pdu) -> str | None:
        """Return the offset that a pull commits; None: none, or the one before it again."""
        flag, offset = _flag_and_offset_of(request)
        flags = natural_of(flag) if flag is not None else None
        if offset is None or flags is None or not flags & _COMMITS_OFFSET:
            return None
        row = seen.row
        queue = (row.conversation, row.topic, row.queue_id)
        if self._committed.get(queue) == offset:
            return None
        if len(row.topic or "") + len(offset) <= _LONGEST:
            _remember(self._committed, queue, offset)
        return offset


def _code_of(request: Pdu | None, asked: Pdu) -> int:
    """Return the code of a request, else of the request that a response must be to; -1: unknown."""
    if request is not None:
        return request.head.code
    command = asked.command
    if isinstance(command, CallCommand):
        return -1
    code = request_code_of_response(command.code, command.ext_fields, asked.body, asked.missing)
    return -1 if code is None else int(code)


def _flag_and_offset_of(request: Pdu) -> tuple[str | None, str | None]:
    """Return the flags of a pull and the offset that it may commit."""
    view = request.view
    return view.text(view.sys_flag), view.text(view.commit_offset)


def _shared_by_rows(row: ExchangeRecord, client: str | None) -> int:
    """Return how many characters the rows of an exchange share that a peer chose."""
    return (
        len(row.request_name or "")
        + len(row.response_name or "")
        + len(row.remark or "")
        + len(row.broker_name or "")
        + len(client or "")
    )


def _names_in(message: MessageEvent) -> int:
    """Return how many characters the names in a row have that other rows may have, too."""
    facts = message.facts
    return (
        len(facts.topic or "") + len(facts.original_topic or "") + len(facts.consumer_group or "")
    )


def _remember(known: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Keep a value; of too many, let the oldest quarter go."""
    if key not in known and len(known) >= MAX_REMEMBERED:
        for old in list(islice(known, MAX_REMEMBERED // 4)):
            del known[old]
    known[key] = value

"""A consumer closes its connection whenever the response to a pull arrives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dissectors.endpoint import host_of
from dissectors.quantities import counted
from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.codes import RequestCode
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import left_at
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import SUCCESS, WHOLE, Add, Flow, keep, whole
from ...names import times
from ...problem import Case, ProblemSeverity, Subject, Tally, shown, time_of
from ...rule import DiagnosisRule, Exchanges, Fold

MAX_CONNECTIONS: Final = 4_096
LEAST: Final = 2
"""connections that end like this: one may be a stopped process"""
AT_ONCE: Final = 1_000_000_000
"""ns between the response and the client's FIN or RST"""
_LEAVES: Final = int(RequestCode.UNREGISTER_CLIENT)
_Place = tuple[str, int]


class _Pulled(NamedTuple):
    """A queue that is pulled repeatedly."""

    client: str
    """address without port: each connection has another port"""
    group: str
    topic: str
    broker: str
    """`address:port`"""
    queue: int
    offset: int


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._last: dict[_Place, ExchangeRecord] = {}
        """last response with messages on each connection"""
        self._left: set[_Place] = set()
        """connections of clients that unregistered"""
        self._ended: dict[_Place, ConversationRecord] = {}

    def adder_of(self, flow: Flow) -> Add:
        return self._add_leaves if flow.request_code == _LEAVES else self.add_exchanges

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in rows:
            place = row.capture, row.conversation
            before = self._last.get(place)
            if before is None:
                if len(self._last) < MAX_CONNECTIONS:
                    self._last[place] = row
            elif _answered(row) > _answered(before):
                self._last[place] = row

    def _add_leaves(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in rows:
            keep(self._left, (row.capture, row.conversation), MAX_CONNECTIONS)

    def add_connection(self, row: ConversationRecord) -> None:
        if len(self._ended) < MAX_CONNECTIONS:
            self._ended[row.capture, row.conversation] = row

    def cases(self, context: Context) -> Iterable[Case]:
        by_queue: dict[_Pulled, list[ExchangeRecord]] = {}
        for place, row in self._last.items():
            connection = self._ended.get(place)
            # A client that unregisters is shutting down: its last response is just the last one.
            if connection is None or place in self._left or not row.topic or not row.group:
                continue
            # Only the last response of a connection can be the one that the client could not read.
            waited = left_at(connection) - _answered(row)[0]
            if 0 <= waited <= AT_ONCE and row.queue_id is not None and row.queue_offset is not None:
                pulled = _Pulled(
                    host_of(row.client_address),
                    row.group,
                    row.topic,
                    row.server_address,
                    row.queue_id,
                    row.queue_offset,
                )
                by_queue.setdefault(pulled, []).append(row)
        for pulled, rows in sorted(by_queue.items()):
            if len(rows) >= LEAST:
                yield _case(pulled, sorted(rows, key=time_of), context)


def _answered(row: ExchangeRecord) -> tuple[int, int]:
    return row.response_time or 0, row.opaque


def _case(pulled: _Pulled, rows: list[ExchangeRecord], context: Context) -> Case:
    tally = Tally.of(
        shown(row, f"response of {row.response_bytes:,} bytes; the client then disconnects")
        for row in rows
    )
    broker = context.broker(pulled.broker)
    client = context.client(rows[-1].client_address)
    size = max(row.response_bytes or 0 for row in rows)
    case = tally.case(
        f"{client} of group {pulled.group} closes its connection to {broker} when the response to"
        f" its pull of queue {pulled.queue} of {pulled.topic} arrives ({size:,} bytes), and pulls"
        f" offset {pulled.offset:,} again: {times(len(rows))}",
        Subject(
            broker=broker,
            topic=pulled.topic,
            group=pulled.group,
            client=client,
            queue=pulled.queue,
        ),
    )
    messages = max(row.message_count or 0 for row in rows)
    if messages:
        case.details.append(f"{counted(messages, 'message')} in the response")
    return case


RULE = DiagnosisRule(
    id="response-unreadable",
    severity=ProblemSeverity.ERROR,
    title="A consumer ends its connection whenever the response to a pull arrives",
    searched=(
        "TooLongFrameException Adjusted frame length exceeds",
        "NettyDecoder decode exception",
        "com.rocketmq.remoting.frameMaxLength",
        "the consumer's group info not exist",
    ),
    proof=(
        "Within a second of a complete response with messages, the client sends FIN or RST without"
        " unregistering. It then pulls the same offset of the queue over another connection, which"
        " ends in the same way."
    ),
    explanation=(
        "A client that cannot decode a response closes the connection: the frame is longer than its"
        " limit, or (not in Java) it cannot read a message in it. It reconnects and requests the"
        " same offset, so later messages are never delivered. The broker removes the member when"
        " the connection ends. If it was the group's last one there, the broker refuses pulls with"
        " code 24 until the next heartbeat."
    ),
    advice=(
        "Raise the consumer's -Dcom.rocketmq.remoting.frameMaxLength (default 16777216 bytes) above"
        " the size of the response, or pull fewer messages at a time (pullBatchSize, default 32)."
        " If the response is below the limit, check the client's log for a decoder exception."
    ),
    grpc="Not covered: evidence is a repeated pull of one offset. gRPC calls have no offset.",
    fold=_Fold,
    exchanges=(
        Exchanges(key=whole, requests=FETCHES, responses={SUCCESS}, of_flow=True),
        Exchanges(key=whole, requests={_LEAVES}, of_flow=True),
    ),
    connections=lambda row: WHOLE if row.commands and row.ended_by == tcp.CLIENT else None,
    references=("alibaba/rocketmq#87",),
    limits=(
        "The capture does not show why the client rejected the response. A client that crashes at a"
        " message and is started again looks the same."
    ),
    needs={Need.PULLS, Need.CONNECTIONS},
)

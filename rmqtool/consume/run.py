"""One run of `consume` or `topic`.

Rules: messages go to standard output, everything else to standard error. Nothing is committed on
the cluster. Ctrl-C shows the messages so far and ends; output to a pipe is flushed at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, NamedTuple

from dissectors.budget import Budget
from dissectors.message_rows.message_writer import FactsReader
from dissectors.printable import printable
from dissectors.quantities import counted
from dissectors.remoting.messages.batch import unwrap_inner_batch
from dissectors.rows.message_record import DELIVERED, MESSAGE_COLUMNS, MessageRecord
from dissectors.rows.tables import struct_encoder
from dissectors.where.fields import message_fields
from replay.cluster.route import ReadRoute
from replay.errors import RouteError, TransportError
from replay.safety import Guard
from replay.topic_reader import OffsetRange, Pulled, TopicQueue, TopicReader

from ..decode.sinks import EncodedSink, LinesSink, Sink
from ..send.targets import agree_to_read, agreement_of, client_config
from ..ui.columns import LineColumn, LineTable
from ..ui.console import Style, one_line, terminal_of
from ..ui.errors import print_note
from ..ui.figures import clock, count, day, moment
from ..ui.interrupt import first_ends
from ..ui.json_array import rows_output
from ..ui.json_text import json_line
from ..ui.option_values import usage_error, where_option
from ..ui.output import Output
from ..ui.screen.shapes import table_lines
from ..ui.status import ExitStatus
from .options import (
    ClusterRequest,
    ConsumeCommand,
    ConsumeFormat,
    Place,
    Start,
    TopicCommand,
    TopicFormat,
)

_WHOLE: Final = 1 << 26
"""bytes of a body that are shown: more than a broker accepts"""
_TYPES: Final = [(column.name, column.type) for column in MESSAGE_COLUMNS]
_SAMPLE: Final = 50
"""rows that determine the column widths"""


@contextmanager
def _reading(request: ClusterRequest, topic: str) -> Iterator[tuple[TopicReader, ReadRoute]]:
    """Yield a reader and the route of a topic, after the user agreed to its brokers."""
    config = client_config(
        request, request.namesrv, group="rmqtool", api_timeout_ms=request.timeout_ms
    )
    agreement = agreement_of(request.yes, request.allow)
    agreement.add(config.namesrv_addresses())
    guard = Guard(agreement)
    with TopicReader(replace(config, guard=guard.why_not)) as reader:
        route = reader.route(topic)
        if route.is_static:
            raise RouteError(f"{topic} is a static topic, which cannot be read this way")
        named = (route.address_of(broker) for broker in route.queues)
        agree_to_read(guard, [address for address in named if address is not None], topic)
        yield reader, route


# -- consume --------------------------------------------------------------------------------------


def run_consume(request: ConsumeCommand) -> ExitStatus:
    """Read messages; raise CommandError if the cluster cannot be read."""
    topic = request.topic
    wanted = _wanted(request)
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True

    def lost(broker: str, error: TransportError) -> None:
        if not request.quiet:
            print_note(f"{error.reason}; trying {printable(broker)} again until Ctrl-C")

    shown = 0
    with rows_output("-", request.format is ConsumeFormat.json) as output:
        sink = _sink(request, output)
        with _reading(request, topic) as (reader, route), first_ends(stop):
            offsets = _chosen(reader.offsets(topic, route), route, request)
            starts = {
                queue: _start(reader, topic, route, queue, of, request.start)
                for queue, of in offsets.items()
            }
            newest = {queue: of.most for queue, of in offsets.items()}
            ends = None if request.follow else newest
            tags = request.tags or "*"
            pulled = reader.messages(topic, route, starts, ends, tags, lambda: stopped, lost)
            rows = _rows(pulled)
            for batch in rows if request.limit != 0 else ():
                matches = [row for row in batch if wanted(row)]
                if request.limit is not None:
                    matches = matches[: request.limit - shown]
                shown += len(matches)
                if matches:
                    sink.write(matches)
                if not batch or request.follow:
                    sink.idle()
                if shown == request.limit:
                    break
        sink.idle()
    if not request.quiet and not shown and request.limit != 0:
        print_note("no messages" if not stopped else "stopped; no messages")
    return ExitStatus.INTERRUPTED if stopped else ExitStatus.OK


def _chosen(
    offsets: dict[TopicQueue, OffsetRange], route: ReadRoute, request: ConsumeCommand
) -> dict[TopicQueue, OffsetRange]:
    """Return the queues of --broker and --queue; raise CommandError if there are none."""
    brokers = sorted({queue.broker for queue in offsets})
    if request.broker is not None and request.broker not in brokers:
        raise usage_error(
            "--broker", f"no queue on {request.broker}; brokers: {', '.join(brokers)}"
        )
    queues = {
        queue: of
        for queue, of in sorted(offsets.items())
        if request.broker in (None, queue.broker) and request.queue in (None, queue.queue_id)
    }
    if request.queue is not None and not queues:
        raise usage_error("--queue", f"there is no queue {request.queue}")
    # A topic may have fewer read queues than write queues: brokers have offsets of all.
    readable = {
        queue: of for queue, of in queues.items() if queue.queue_id < route.queues[queue.broker]
    }
    if not readable:
        return queues  # the broker says why
    if len(readable) < len(queues) and not request.quiet:
        unread = counted(len(queues) - len(readable), "write queue")
        print_note(f"{unread} of the topic cannot be read")
    return readable


def _start(
    reader: TopicReader,
    topic: str,
    route: ReadRoute,
    queue: TopicQueue,
    of: OffsetRange,
    place: Place,
) -> int:
    if place is Start.begin:
        return of.least
    if place is Start.end:
        return of.most
    if isinstance(place, tuple):
        (ms,) = place
        if of.most == of.least or 0 < of.last_store_ms < ms:
            return of.most  # brokers return the last message, not the next offset
        return reader.offset_at(topic, route, queue, ms)
    assert isinstance(place, int)
    return min(max(place, of.least), of.most)


def _wanted(request: ConsumeCommand) -> Callable[[MessageRecord], bool]:
    """Return the test for wanted messages."""
    tags = {tag.strip() for tag in (request.tags or "").split("||") if tag.strip()} - {"*"}
    key = request.key
    # Brokers return the offset of the nearest message, which may be an earlier one.
    since = request.start[0] * 1_000_000 if isinstance(request.start, tuple) else 0
    where = where_option("--where", request.where, message_fields)

    def wanted(row: MessageRecord) -> bool:
        if since and (row.store_time or 0) < since:
            return False
        if tags and row.tags not in tags:  # brokers compare hashes
            return False
        if key is not None and key not in (row.keys or "").split():
            return False
        return where is None or where(row)

    return wanted


def _rows(pulled: Iterable[Pulled | None]) -> Iterator[list[MessageRecord]]:
    """Yield the rows of messages; an empty list while idle."""
    facts, budget = FactsReader(None), Budget()
    for item in pulled:
        if item is None:
            yield []
            continue
        rows: list[MessageRecord] = []
        for message in item.messages:
            budget.earn(len(message.body))
            # Brokers can store a batch as one message.
            for place, single in enumerate(unwrap_inner_batch(message, budget=budget)):
                fields = facts.facts_of(single, _WHOLE, budget)
                rows.append(
                    MessageRecord(
                        capture="",
                        conversation=-1,
                        packet=None,
                        time=item.time,
                        request_packet=None,
                        place=place,
                        event=DELIVERED,
                        request_name="PULL_MESSAGE",
                        response_code=0,
                        response_name="SUCCESS",
                        remark=None,
                        latency_us=None,
                        end=None,
                        client_address=item.local,
                        client_id=None,
                        server_address=item.address,
                        broker_name=item.queue.broker,
                        **fields._asdict(),
                    )
                )
        yield rows


def _sink(request: ConsumeCommand, output: Output) -> Sink[MessageRecord]:
    terminal = terminal_of(sys.stdout, request.colour)
    if request.format is ConsumeFormat.table:
        sample = 1 if request.follow else _SAMPLE
        return LinesSink(output, LineTable(_columns(terminal.is_terminal), terminal, sample))
    encode = (
        _bodies if request.format is ConsumeFormat.body else struct_encoder(MessageRecord, _TYPES)
    )
    return EncodedSink(output, encode, to_screen=terminal.is_terminal)


def _bodies(rows: Sequence[MessageRecord]) -> bytes:
    from dissectors.foreign import base64_of

    lines = []
    for row in rows:
        text = row.body or ""
        body = base64_of(text) if row.body_form == "base64" else None
        lines.append((text.encode("utf-8", "replace") if body is None else body) + b"\n")
    return b"".join(lines)


def _columns(is_terminal: bool) -> list[LineColumn[MessageRecord]]:
    shown = clock if is_terminal else moment
    return [
        LineColumn("STORED", lambda r: shown(r.store_time), 2, 12, 27, style=lambda _: Style.DIM),
        LineColumn("BROKER", lambda r: one_line(r.broker_name) or "-", 6, 8, 32),
        LineColumn("QUEUE", lambda r: str(r.queue_id), 3, 5, 5, True),
        LineColumn("OFFSET", lambda r: str(r.queue_offset), 1, 6, 12, True),
        LineColumn("TAGS", lambda r: one_line(r.tags) or "-", 5, 6, 24),
        LineColumn("KEYS", lambda r: one_line(r.keys) or "-", 4, 6, 24),
        LineColumn("BODY", lambda r: one_line(r.body) or "-", 1, 12, 1000, wraps=True),
    ]


# -- topic ----------------------------------------------------------------------------------------


class _Queue(NamedTuple):
    queue: TopicQueue
    offsets: OffsetRange


class _Lag(NamedTuple):
    group: str
    consumed: dict[TopicQueue, int]
    lag: dict[TopicQueue, int]

    @property
    def total(self) -> int:
        return sum(self.lag.values())


def run_topic(request: TopicCommand) -> ExitStatus:
    """Describe a topic; raise CommandError if the cluster cannot be read."""
    topic = request.topic
    with _reading(request, topic) as (reader, route):
        offsets = dict(sorted(reader.offsets(topic, route).items()))
        known = reader.groups(topic, route)
        named = request.groups or known
        lags = [_lag_of(group, reader.consumed(topic, route, group), offsets) for group in named]
    if request.format is TopicFormat.json:
        sys.stdout.buffer.write(json_line(_described(topic, route, offsets, lags)))
    else:
        _show(request, topic, route, offsets, lags)
    if not request.quiet:
        for group in named:
            if group not in known:  # brokers say that it has read nothing
                print_note(f"--group: {group} neither subscribes to {topic} nor has read it")
    return ExitStatus.OK


def _lag_of(
    group: str, consumed: dict[TopicQueue, int], offsets: dict[TopicQueue, OffsetRange]
) -> _Lag:
    known = {queue: offset for queue, offset in sorted(consumed.items()) if queue in offsets}
    # A group may be behind the oldest message: those that were deleted are no backlog.
    lag = {
        queue: max(offsets[queue].most - max(offset, offsets[queue].least), 0)
        for queue, offset in known.items()
    }
    return _Lag(group, known, lag)


def _described(
    topic: str,
    route: ReadRoute,
    offsets: dict[TopicQueue, OffsetRange],
    lags: Sequence[_Lag],
) -> dict[str, object]:
    return {
        "topic": topic,
        "brokers": [
            {
                "broker_name": broker,
                "addresses": route.addresses.get(broker, {}),
                "permission": _permission(route.permissions[broker]),
                "read_queues": queues,
                "write_queues": route.write_queues[broker],
            }
            for broker, queues in sorted(route.queues.items())
        ],
        "queues": [
            {
                "broker_name": queue.broker,
                "queue_id": queue.queue_id,
                "min_offset": of.least,
                "max_offset": of.most,
                "messages": of.most - of.least,
                "last_store_time": moment(of.last_store_ms * 1_000_000)
                if of.last_store_ms
                else None,
            }
            for queue, of in offsets.items()
        ],
        "groups": [
            {
                "group": item.group,
                "lag": item.total,
                "queues": [
                    {
                        "broker_name": queue.broker,
                        "queue_id": queue.queue_id,
                        "consumer_offset": item.consumed[queue],
                        "lag": lag,
                    }
                    for queue, lag in item.lag.items()
                ],
            }
            for item in lags
        ],
    }


def _to_the_ms(ns: int) -> str:
    """Return date and time; brokers store milliseconds."""
    return f"{day(ns)} {clock(ns)}" if ns else "-"


def _permission(bits: int) -> str:
    # PermName: PERM_READ, PERM_WRITE
    return ("r" if bits & 4 else "-") + ("w" if bits & 2 else "-")


def _show(
    request: TopicCommand,
    topic: str,
    route: ReadRoute,
    offsets: dict[TopicQueue, OffsetRange],
    lags: Sequence[_Lag],
) -> None:
    terminal = terminal_of(sys.stdout, request.colour)
    total = sum(of.most - of.least for of in offsets.values())
    print(
        f"{printable(topic)}: {counted(total, 'message')} in"
        f" {counted(len(offsets), 'queue')} on {counted(len(route.queues), 'broker')}"
    )
    brokers = [
        LineColumn[str]("BROKER", one_line, 1, 8, 32),
        LineColumn[str]("ADDRESS", lambda b: route.address_of(b) or "-", 1, 12, 47),
        LineColumn[str]("PERMISSION", lambda b: _permission(route.permissions[b]), 4, 10, 10),
        LineColumn[str]("READ", lambda b: str(route.queues[b]), 2, 4, 6, True),
        LineColumn[str]("WRITE", lambda b: str(route.write_queues[b]), 3, 5, 6, True),
    ]
    queues = [
        LineColumn[_Queue]("BROKER", lambda q: one_line(q.queue.broker), 1, 8, 32),
        LineColumn[_Queue]("QUEUE", lambda q: str(q.queue.queue_id), 1, 5, 6, True),
        LineColumn[_Queue]("MIN", lambda q: count(q.offsets.least), 3, 6, 20, True),
        LineColumn[_Queue]("MAX", lambda q: count(q.offsets.most), 2, 6, 20, True),
        LineColumn[_Queue](
            "LAST STORED", lambda q: _to_the_ms(q.offsets.last_store_ms * 1_000_000), 4, 20, 23
        ),
    ]
    groups = [
        LineColumn[_Lag]("GROUP", lambda one: one_line(one.group), 1, 12, 64),
        LineColumn[_Lag]("LAG", lambda one: count(one.total), 1, 6, 20, True),
        LineColumn[_Lag](
            "LARGEST QUEUE LAG",
            lambda one: count(max(one.lag.values(), default=0)),
            2,
            17,
            20,
            True,
        ),
    ]
    rows = [_Queue(queue, of) for queue, of in offsets.items()]
    for title, lines in (
        ("Route", table_lines(sorted(route.queues), brokers, terminal).lines),
        ("Offsets", table_lines(rows, queues, terminal).lines),
        ("Consumer groups", table_lines(lags, groups, terminal).lines),
    ):
        print()
        print(title)
        print("\n".join(lines) if lines else "none")

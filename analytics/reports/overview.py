"""What was asked, by whom, about what, and what went wrong: errors, operations, topics, clients.

Rules: remarks that differ in numbers and ids only are one error, with an example and the packet to
look up; lists of names are cut at `MOST_NAMES`, and a count beside them is whole. Operations,
topics and clients come from one pass over the exchanges (`_cells`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .. import derived
from ..broker_names import BROKER_NAMES, broker_names, with_names
from ..expressions import adding, grouped
from . import Report, ReportInput, ReportOptions, ReportTable, Rows, TableColumn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_NAMES = 10
"""Names in a list."""
_LONGEST_REMARK = 400

_COUNTS = (
    TableColumn("exchanges", "int", "", "requests"),
    TableColumn("failed", "int", "", "answered with a failure"),
    TableColumn("no_answer", "int", "", "not answered, and the packets show that none came"),
    TableColumn("unknown", "int", "", "not answered within the capture, which cannot say more"),
)
_BYTES = TableColumn("bytes", "int", "bytes", "of requests and answers, whole frames")
_FIRST = TableColumn("first_time", "time", "", "the first time")
_LAST = TableColumn("last_time", "time", "", "the last time")
_LOOK_UP = (
    TableColumn("capture", "string", "", "capture of the first one"),
    TableColumn("packet", "int", "", "its packet: of the answer, or of a request without one"),
)

ERRORS = ReportTable(
    "errors",
    "Errors",
    "A row a response code and remark that says that something is wrong, the most frequent first.",
    (
        TableColumn("answer", "string", "", "name of the response code"),
        TableColumn("code", "int", "", "response code"),
        TableColumn("remark", "string", "", "remark, numbers as N, ids as X; absent: none"),
        TableColumn("exchanges", "int", "", "how often"),
        TableColumn("operations", "list", "", "requests that were answered so"),
        TableColumn("brokers", "list", "", "who answered so: names or addresses"),
        TableColumn("clients", "int", "", "how many client addresses"),
        TableColumn("topics", "list", "", "topics concerned"),
        TableColumn("example", "string", "", "remark of the first one, as it was"),
        _FIRST,
        _LAST,
        *_LOOK_UP,
    ),
    order=("-exchanges", "code", "remark"),
    brief=(
        "answer",
        "exchanges",
        "example",
        "operations",
        "brokers",
        "topics",
        "capture",
        "packet",
    ),
)
UNANSWERED = ReportTable(
    "unanswered",
    "Requests without an answer",
    "A row an operation, responder and end of the connection, the most frequent first.",
    (
        TableColumn("operation", "string", "", "name of the request"),
        TableColumn("broker", "string", "", "who should have answered"),
        TableColumn(
            "end",
            "string",
            "",
            "what became of the connection: `reset`, `closed`, `open`; absent: unknown",
        ),
        TableColumn(
            "proven",
            "bool",
            "",
            "the packets show that none came; else it may have been missed",
        ),
        TableColumn("exchanges", "int", "", "how often"),
        _FIRST,
        _LAST,
        *_LOOK_UP,
    ),
    order=("-exchanges", "operation", "broker", "end", "proven"),
)
OPERATIONS = ReportTable(
    "operations",
    "Operations",
    "A row an operation, the most frequent first.",
    (
        TableColumn("operation", "string", "", "name of the request"),
        TableColumn("code", "int", "", "request code"),
        *_COUNTS,
        TableColumn("oneway", "int", "", "sent without expecting an answer"),
        TableColumn("share", "float", "share", "of all exchanges"),
        _BYTES,
        TableColumn("clients", "int", "", "addresses that asked so"),
        TableColumn("brokers", "int", "", "addresses that were asked so"),
    ),
    order=("-exchanges", "operation", "code"),
)
TOPICS = ReportTable(
    "topics",
    "Topics",
    "A row a topic, the one with most exchanges first.",
    (
        TableColumn("topic", "string", "", "name of the topic"),
        *_COUNTS,
        TableColumn("sends", "int", "", "requests that send messages to it"),
        TableColumn("sent", "int", "", "messages in the sends that succeeded"),
        TableColumn("fetches", "int", "", "requests that fetch messages: pull and POP"),
        TableColumn("fetched", "int", "", "messages in their answers"),
        _BYTES,
        TableColumn("groups", "list", "", "groups that asked"),
        TableColumn("brokers", "list", "", "brokers that were asked: names or addresses"),
        TableColumn("clients", "int", "", "client addresses"),
    ),
    order=("-exchanges", "topic"),
)
CLIENTS = ReportTable(
    "clients",
    "Clients",
    "A row an address, language and version, the one with most exchanges first.",
    (
        TableColumn("client", "string", "", "address of the requester, without port"),
        TableColumn("language", "string", "", "as it says"),
        TableColumn("version", "string", "", "as it says"),
        *_COUNTS,
        TableColumn("connections", "int", "", "TCP connections on which it asked"),
        _BYTES,
        TableColumn("groups", "list", "", "groups it named"),
        TableColumn("operations", "list", "", "what it asked"),
        _FIRST,
        _LAST,
    ),
    order=("-exchanges", "client", "language", "version"),
)

_SENDS = (
    "operation in ('SEND_MESSAGE', 'SEND_MESSAGE_V2', 'SEND_BATCH_MESSAGE', 'SEND_REPLY_MESSAGE',"
    " 'SEND_REPLY_MESSAGE_V2')"
)
_FETCHES = "operation in ('PULL_MESSAGE', 'LITE_PULL_MESSAGE', 'POP_MESSAGE', 'POP_LITE_MESSAGE')"


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, DataFrame]:
    """Return the tables."""
    seen = adding(
        derived.with_outcome(given.exchanges, given.conversations),
        {
            "operation": derived.OPERATION,
            "client": derived.address_of("requester"),
            "time": derived.HAPPENED,
        },
    )
    requests = seen.where("outcome != 'orphan'")
    cells = given.kept.frame(_cells(requests))
    names = broker_names(given, lambda: cells)
    made: dict[str, Callable[[], DataFrame]] = {
        ERRORS.name: lambda: _errors(seen, names),
        UNANSWERED.name: lambda: _unanswered(requests, names),
        OPERATIONS.name: lambda: _operations(cells),
        TOPICS.name: lambda: _topics(with_names(cells, names)),
        CLIENTS.name: lambda: _clients(cells),
    }
    wanted = options.tables
    return {name: make() for name, make in made.items() if wanted is None or name in wanted}


def _cells(requests: DataFrame) -> DataFrame:
    """Return a row a combination of all that the tables are grouped by."""
    keys = ["operation", "request_code", "responder", "broker_name", "topic", "group", "client"]
    return grouped(
        requests,
        [*keys, "language", "version_name", "source", "conversation"],
        {
            "exchanges": "count(*)",
            "failed": f"count_if(outcome = '{derived.FAILED}')",
            "no_answer": f"count_if(outcome = '{derived.NO_ANSWER}')",
            "unknown": f"count_if(outcome = '{derived.UNKNOWN}')",
            "oneway": "count_if(outcome = 'oneway')",
            "bytes": "sum(coalesce(request_bytes, 0) + coalesce(response_bytes, 0))",
            "messages": f"sum(if(outcome = '{derived.OK}', coalesce(message_count, 0), 0))",
            "first": "min(time)",
            "last": "max(time)",
        },
    )


_SUMS = {
    **{name: f"sum({name})" for name in ("exchanges", "failed", "no_answer", "unknown")},
    "bytes": "sum(bytes)",
}


def _names(column: str) -> str:
    """Return, as SQL, the values of a column in order, at most `MOST_NAMES`."""
    return f"slice(array_sort(collect_set({column})), 1, {MOST_NAMES})"


_GROUPS = (  # a heartbeat names several
    f"slice(array_sort(array_distinct(flatten(collect_set(split(`group`, ','))))), 1, {MOST_NAMES})"
)


def _operations(cells: DataFrame) -> DataFrame:
    found = grouped(
        cells,
        ["operation", "request_code"],
        {
            **_SUMS,
            "oneway": "sum(oneway)",
            "clients": "count(distinct client)",
            "brokers": "count(distinct responder)",
            "code": "first(request_code)",
        },
    )
    return adding(found, {"share": "exchanges / sum(exchanges) over ()"})


def _topics(cells: DataFrame) -> DataFrame:
    return grouped(
        cells.where("topic is not null"),
        ["topic"],
        {
            **_SUMS,
            "sends": f"sum(if({_SENDS}, exchanges, 0L))",
            "sent": f"sum(if({_SENDS}, messages, 0L))",
            "fetches": f"sum(if({_FETCHES}, exchanges, 0L))",
            "fetched": f"sum(if({_FETCHES}, messages, 0L))",
            "groups": _GROUPS,
            "brokers": _names(f"if({_SENDS} or {_FETCHES}, broker, null)"),
            "clients": "count(distinct client)",
        },
    )


def _clients(cells: DataFrame) -> DataFrame:
    return grouped(
        adding(cells, {"version": "version_name"}),
        ["client", "language", "version"],
        {
            **_SUMS,
            "connections": "count(distinct source, conversation)",
            "groups": _GROUPS,
            "operations": _names("operation"),
            "first_time": "min(first)",
            "last_time": "max(last)",
        },
    )


def _errors(seen: DataFrame, names: DataFrame) -> DataFrame:
    failed = with_names(seen.where(f"outcome = '{derived.FAILED}'"), names)
    cut = f"substring(remark, 1, {_LONGEST_REMARK})"
    ids = f"regexp_replace({cut}, '[0-9A-Fa-f]{{16,}}', 'X')"
    told = adding(
        failed,
        {
            "answer": "coalesce(response_name, '?')",
            "code": "response_code",
            "kind": f"regexp_replace({ids}, '[0-9]+', 'N')",
            "place": "struct(time, capture, response_packet, remark)",
        },
    )
    found = grouped(
        told.drop("remark").withColumnRenamed("kind", "remark"),
        ["answer", "code", "remark"],
        {
            "exchanges": "count(*)",
            "operations": _names("operation"),
            "brokers": _names("broker"),
            "clients": "count(distinct client)",
            "topics": _names("topic"),
            "first_time": "min(time)",
            "last_time": "max(time)",
            "place": "min(place)",
        },
    )
    return adding(
        found,
        {
            "example": f"substring(place.remark, 1, {_LONGEST_REMARK})",
            "capture": "place.capture",
            "packet": "place.response_packet",
        },
    )


def _unanswered(requests: DataFrame, names: DataFrame) -> DataFrame:
    without = requests.where(f"outcome in ('{derived.NO_ANSWER}', '{derived.UNKNOWN}')")
    told = adding(
        with_names(without, names),
        {
            "proven": f"outcome = '{derived.NO_ANSWER}'",
            "place": "struct(time, capture, request_packet)",
        },
    )
    found = grouped(
        told,
        ["operation", "broker", "end", "proven"],
        {
            "exchanges": "count(*)",
            "first_time": "min(time)",
            "last_time": "max(time)",
            "place": "min(place)",
        },
    )
    return adding(found, {"capture": "place.capture", "packet": "place.request_packet"})


def remarks(rows: Rows) -> list[str]:
    """Return what stands out."""
    errors = rows.get(ERRORS.name)
    if errors is None:
        return []
    if not errors:
        return ["No answer says that something is wrong."]
    count = sum(number for row in errors if isinstance(number := row.get("exchanges"), int))
    kinds = "one kind" if len(errors) == 1 else f"{len(errors)} kinds"
    return [f"{count:,} answers say that something is wrong, of {kinds}."]


REPORT = Report(
    name="overview",
    title="Overview",
    question="What was asked, by whom, about what, and what went wrong?",
    tables=(ERRORS, UNANSWERED, OPERATIONS, TOPICS, CLIENTS),
    build=build,
    remarks=remarks,
    shares=(BROKER_NAMES,),
)

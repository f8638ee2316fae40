"""What was asked, by whom, about what, and what went wrong: errors, operations, topics, clients.

Rules: remarks that differ in numbers and ids only are one error, with the first remark and the
packet to look up; lists of names are cut at `MOST_NAMES`, and a count beside them is whole.
Operations, topics and clients come from one pass over the exchanges (`_cells`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import request_name

from .. import derived
from ..report import Report, ReportInput, ReportOptions, ReportTable, Row, Rows, TableColumn
from ..sends.broker_names import BROKER_NAMES, broker_names, with_names
from ..sends.hops import RELAY_COLUMNS, RELAYS, relays
from ..sends.unavailable import (
    CONNECT_COLUMNS,
    UNAVAILABLE,
    about_connects,
    connects,
    failed_connects,
)
from ..spark.expressions import adding, grouped, text, texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_NAMES = 10
"""Names in a list."""
_LONGEST_REMARK = 400
_DIFFERENCES = (
    (r"\s*See https?://\S+ for further details\.", ""),
    (r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]+)?|[0-9A-Fa-f]{16,}|[0-9]+(?:\.[0-9]+)*", "…"),
)
"""What alike remarks differ in: pattern, replacement."""

_COUNTS = (
    TableColumn("exchanges", "int", "", "requests"),
    TableColumn("failed", "int", "", "answered with a failure"),
    TableColumn("not_durable", "int", "", "stored, but not on disk or on a slave in time"),
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
    "One row per response code and remark other than success; failures first, then by count.",
    (
        TableColumn(
            "class",
            "string",
            "",
            "`failed`; `stored, not durable`: the message is there, but not on disk or on a slave"
            " in time; `expected`: a consumer asked for its retry topic before it was made",
        ),
        TableColumn("answer", "string", "", "name of the response code"),
        TableColumn("code", "int", "", "response code"),
        TableColumn(
            "remark", "string", "", "of the first one; alike ones differ in numbers and ids only"
        ),
        TableColumn(
            "alike", "string", "", "what the remarks have in common; numbers, ids, addresses as …"
        ),
        TableColumn("exchanges", "int", "", "how often"),
        TableColumn("operations", "list", "", "requests that were answered so"),
        TableColumn("brokers", "list", "", "who answered so: names or addresses"),
        TableColumn("clients", "int", "", "how many client addresses"),
        TableColumn("topics", "list", "", "topics concerned"),
        _FIRST,
        _LAST,
        *_LOOK_UP,
        TableColumn("rank", "int", "", "of the class: 1 is the gravest"),
    ),
    order=("rank", "-exchanges", "code", "alike"),
    brief=(
        "class",
        "answer",
        "exchanges",
        "remark",
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
    "One row per operation, responder and end of the connection: proven ones first, long polls that"
    " the requester ended last.",
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
        TableColumn(
            "withdrawn", "bool", "", "a long poll that the requester ended with its connection"
        ),
        TableColumn("exchanges", "int", "", "how often"),
        _FIRST,
        _LAST,
        *_LOOK_UP,
    ),
    order=("withdrawn", "-proven", "-exchanges", "operation", "broker", "end"),
)
UNREACHABLE = ReportTable(
    "unreachable",
    "Connects that failed",
    "A row a server and client address whose connects failed, the most frequent first.",
    CONNECT_COLUMNS,
    order=("-connects", "broker", "server", "client"),
    brief=("broker", "client", "who", "connects", "first_time", "last_time", "silent", "server"),
)
RELAYED = ReportTable(
    "relays",
    "Proxies and other relays",
    "A row an address that takes sends and makes them again, and the server behind it: what it made"
    " is counted in the other tables, too. `latency_relays` has the latency of both hops.",
    RELAY_COLUMNS[:3],
    order=("relay", "server", "from_host"),
)
OPERATIONS = ReportTable(
    "operations",
    "Operations",
    "One row per operation, the most frequent first.",
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
    "One row per topic, the one with most exchanges first.",
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
    "One row per address, language and version, the one with most exchanges first.",
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

_SENDS = f"operation in {texts(map(request_name, SENDS))}"
_GOOD = texts((derived.OK, derived.NOT_DURABLE))
_FETCHES = f"operation in {texts(map(request_name, FETCHES))}"


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
        RELAYED.name: lambda: relays(given),
        UNANSWERED.name: lambda: _unanswered(requests, names),
        OPERATIONS.name: lambda: _operations(cells),
        TOPICS.name: lambda: _topics(with_names(cells, names)),
        CLIENTS.name: lambda: _clients(cells),
    }
    failed = failed_connects(given)
    if failed is not None:
        made[UNREACHABLE.name] = lambda: connects(failed)
    wanted = options.tables
    return {name: make() for name, make in made.items() if wanted is None or name in wanted}


def _cells(requests: DataFrame) -> DataFrame:
    """Return one row per combination of all that the tables are grouped by."""
    keys = ["operation", "request_code", "responder", "broker_name", "topic", "group", "client"]
    return grouped(
        requests,
        [*keys, "language", "version_name", "source", "conversation"],
        {
            "exchanges": "count(*)",
            "failed": f"count_if(outcome = '{derived.FAILED}')",
            "not_durable": f"count_if(outcome = '{derived.NOT_DURABLE}')",
            "no_answer": f"count_if(outcome = '{derived.NO_ANSWER}')",
            "unknown": f"count_if(outcome = '{derived.UNKNOWN}')",
            "oneway": "count_if(outcome = 'oneway')",
            "bytes": "sum(coalesce(request_bytes, 0) + coalesce(response_bytes, 0))",
            "messages": f"sum(if(outcome in {_GOOD}, coalesce(message_count, 0), 0))",
            "first": "min(time)",
            "last": "max(time)",
        },
    )


_SUMS = {
    **{column.name: f"sum({column.name})" for column in _COUNTS},
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


def _alike(remark: str) -> str:
    """Return the SQL of what alike remarks have in common."""
    for pattern, replacement in _DIFFERENCES:
        remark = f"regexp_replace({remark}, {text(pattern)}, '{replacement}')"
    return f"trim({remark})"


def _errors(seen: DataFrame, names: DataFrame) -> DataFrame:
    classes = (derived.FAILED, derived.NOT_DURABLE, derived.EXPECTED)
    failed = with_names(seen.where(f"outcome in {texts(classes)}"), names)
    rank = " ".join(f"when '{one}' then {place}L" for place, one in enumerate(classes, 1))
    told = adding(
        failed,
        {
            "class": "outcome",
            "rank": f"case outcome {rank} end",
            "answer": "coalesce(response_name, '?')",
            "code": "response_code",
            "alike": _alike(f"substring(remark, 1, {_LONGEST_REMARK})"),
            "place": "struct(time, capture, response_packet, remark)",
        },
    )
    found = grouped(
        told,
        ["class", "rank", "answer", "code", "alike"],
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
            "remark": f"substring(place.remark, 1, {_LONGEST_REMARK})",
            "capture": "place.capture",
            "packet": "place.response_packet",
        },
    )


def _unanswered(requests: DataFrame, names: DataFrame) -> DataFrame:
    kinds = (derived.NO_ANSWER, derived.UNKNOWN, derived.WITHDRAWN)
    without = requests.where(f"outcome in {texts(kinds)}")
    told = adding(
        with_names(without, names),
        {
            "proven": f"outcome != '{derived.UNKNOWN}'",
            "withdrawn": f"outcome = '{derived.WITHDRAWN}'",
            "place": "struct(time, capture, request_packet)",
        },
    )
    found = grouped(
        told,
        ["operation", "broker", "end", "proven", "withdrawn"],
        {
            "exchanges": "count(*)",
            "first_time": "min(time)",
            "last_time": "max(time)",
            "place": "min(place)",
        },
    )
    return adding(found, {"capture": "place.capture", "packet": "place.request_packet"})


def remarks(rows: Rows) -> list[str]:
    """Return what stands out: what failed, what was not answered, what is stored but not safe."""
    errors, unanswered = rows.get(ERRORS.name), rows.get(UNANSWERED.name)
    said = about_connects(rows.get(UNREACHABLE.name, ()))
    if behind := rows.get(RELAYED.name, ()):
        addresses = ", ".join(sorted({str(row["relay"]) for row in behind})[:5])
        said.append(
            f"Sends through {addresses} were seen on both sides of it and count twice here, once"
            " for each hop; the retry report counts them once (proxies and other relays)."
        )
    if unanswered is not None:
        said += _about_unanswered(unanswered)
    if errors is None:
        return said
    failed = [row for row in errors if row["class"] == derived.FAILED]
    if failed:
        kinds = "one kind" if len(failed) == 1 else f"{len(failed)} kinds"
        answers = _counted(_count(failed), "answer says", "answers say")
        said.insert(0, f"{answers} that something is wrong, of {kinds}.")
    else:
        said.append("None of the answers that came says that something is wrong.")
    if weak := _count([row for row in errors if row["class"] == derived.NOT_DURABLE]):
        said.append(
            f"{_counted(weak, 'send was', 'sends were')} stored, but not on disk or on a slave in"
            " time: the messages are there, and lost if the broker is lost."
        )
    return said


def _about_unanswered(unanswered: Sequence[Row]) -> list[str]:
    waited = [row for row in unanswered if not row["withdrawn"]]
    never = _count([row for row in waited if row["proven"]])
    unknown = _count([row for row in waited if not row["proven"]])
    said = []
    if never:
        requests = _counted(never, "request was", "requests were")
        ended = "its connection" if never == 1 else "their connections"
        said.append(f"{requests} never answered: {ended} ended first.")
    if unknown:
        said.append(
            f"{_counted(unknown, 'request has', 'requests have')} no answer in the capture, which"
            " cannot say whether one came."
        )
    return said


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _count(rows: Sequence[Row]) -> int:
    return sum(number for row in rows if isinstance(number := row.get("exchanges"), int))


REPORT = Report(
    name="overview",
    title="Overview",
    question="What was asked, by whom, about what, and what went wrong?",
    tables=(ERRORS, UNANSWERED, UNREACHABLE, OPERATIONS, TOPICS, CLIENTS, RELAYED),
    build=build,
    remarks=remarks,
    shares=(BROKER_NAMES, UNAVAILABLE, RELAYS),
)

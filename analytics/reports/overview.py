"""What was asked, by whom, about what, and what went wrong: errors, operations, topics, clients.

Rules: remarks that differ in numbers and ids only are one error, with the first remark and the
packet to look up; lists of names are cut at `MOST_NAMES`, and a count beside them is whole.
Topics and clients come from one pass over the exchanges (`_cells`);
the tables of operations, relays, and failed connects are those of other reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dissectors.remoting.code_names import request_name
from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.rows.outcome import (
    EXPECTED,
    FAILED,
    NOT_DURABLE,
    OK,
    RECEIVE_CALLS,
    SEND_CALLS,
)

from .. import derived
from ..report import Report, ReportInput, ReportOptions, Row, Rows
from ..sends.broker_names import BROKER_NAMES, broker_names, with_names
from ..sends.hops import RELAYS, inner_sends, relays
from ..sends.stitched import STITCHED
from ..sends.suspects import SUSPECTS
from ..sends.unavailable import UNAVAILABLE, about_connects, failed_connects
from ..sql.expressions import CONNECTION, names_of, place_of, text, texts
from ..sql.relation import Relation
from . import latency, retries
from .latency_tables import OPERATIONS, RELAYED
from .overview_tables import CLIENTS, COUNTS, ERRORS, TOPICS, UNANSWERED
from .retry_tables import CONNECTS

MOST_NAMES = 10
"""Names in a list."""
_LONGEST_REMARK = 400
_DIFFERENCES = (
    (r"\s*See https?://\S+ for further details\.", ""),
    (r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]+)?|[0-9A-Fa-f]{16,}|[0-9]+(?:\.[0-9]+)*", "…"),
)
"""What alike remarks differ in: pattern, replacement."""

_SENDS = f"operation in {texts((*map(request_name, SENDS), *SEND_CALLS))}"
_GOOD = texts((OK, NOT_DURABLE))
_FETCHES = f"operation in {texts(map(request_name, FETCHES))}"
_RECEIVES = f"operation in {texts(RECEIVE_CALLS)}"


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:
    """Return the tables."""
    seen = derived.with_outcome(given.exchanges, given.conversations).adding(
        {
            "operation": derived.OPERATION,
            "client": derived.address_of("requester"),
            "time": derived.HAPPENED,
        },
    )
    requests = seen.where("outcome != 'orphan'")
    cells = given.kept.frame(_cells(requests))
    names = broker_names(given, lambda: cells)
    made: dict[str, Callable[[], Relation]] = {
        ERRORS.name: lambda: _errors(seen, names),
        RELAYED.name: lambda: relays(given),
        UNANSWERED.name: lambda: _unanswered(requests, names),
        OPERATIONS.name: lambda: latency.operations(given),
        TOPICS.name: lambda: _topics(with_names(cells, names), inner_sends(given)),
        CLIENTS.name: lambda: _clients(cells),
    }
    failed = failed_connects(given)
    if failed is not None:
        made[CONNECTS.name] = lambda: retries.connects_of(given, failed, options)
    wanted = options.tables
    return {name: make() for name, make in made.items() if wanted is None or name in wanted}


def _cells(requests: Relation) -> Relation:
    """Return one row per combination of all that the tables are grouped by, and of outcomes."""
    keys = ["operation", "request_code", "responder", "broker_name", "topic", "group", "client"]
    counted = requests.grouped(
        [*keys, "language", "version_name", "source", "conversation", "outcome"],
        {
            "exchanges": "count(*)",
            "bytes": "sum(coalesce(request_bytes, 0) + coalesce(response_bytes, 0))",
            "carried": "sum(coalesce(message_count, 0))",
            "first": "min(time)",
            "last": "max(time)",
        },
    )
    return counted.adding(
        {
            **derived.counted_by_outcome(*(column.name for column in COUNTS[1:])),
            "messages": f"if(outcome in {_GOOD}, carried, 0L)",
        },
    )


_SUMS = {
    **{column.name: f"sum({column.name})" for column in COUNTS},
    "bytes": "sum(bytes)",
}


def _names(column: str) -> str:
    """Return, as SQL, the values of a column in order, at most `MOST_NAMES`."""
    return names_of(column, MOST_NAMES)


_GROUPS = (  # a heartbeat names several
    f"slice(array_sort(array_distinct(flatten(collect_set(split(`group`, ','))))), 1, {MOST_NAMES})"
)


def _topics(cells: Relation, inner: Relation) -> Relation:
    """Return the topics; what a relay sends again, and a proxy asks a broker, counts once."""

    def fetched(number: str) -> str:
        asked = f"sum(if({_FETCHES}, {number}, 0L))"
        return f"if(count_if({_FETCHES}) > 0, {asked}, sum(if({_RECEIVES}, {number}, 0L)))"

    topics = cells.where("topic is not null").grouped(
        ["topic"],
        {
            **_SUMS,
            "every_send": f"sum(if({_SENDS}, exchanges, 0L))",
            "every_sent": f"sum(if({_SENDS}, messages, 0L))",
            "fetches": fetched("exchanges"),
            "fetched": fetched("messages"),
            "groups": _GROUPS,
            "brokers": _names(f"if({_SENDS} or {_FETCHES}, broker, null)"),
            "clients": "count(distinct client)",
        },
    )
    return topics.join(inner, ["topic"], "left", small=True).adding(
        {
            "sends": "every_send - coalesce(inner_sends, 0L)",
            "sent": "every_sent - coalesce(inner_sent, 0L)",
        }
    )


def _clients(cells: Relation) -> Relation:
    return cells.adding({"version": "version_name"}).grouped(
        ["client", "language", "version"],
        {
            **_SUMS,
            "connections": f"count(distinct {CONNECTION})",
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


def _errors(seen: Relation, names: Relation) -> Relation:
    classes = (FAILED, NOT_DURABLE, EXPECTED)
    failed = with_names(seen.where(f"outcome in {texts(classes)}"), names)
    rank = " ".join(f"when '{one}' then {place}L" for place, one in enumerate(classes, 1))
    told = failed.adding(
        {
            "class": "outcome",
            "rank": f"case outcome {rank} end",
            "answer": "coalesce(response_name, '?')",
            "code": "response_code",
            "alike": _alike(f"substring(remark, 1, {_LONGEST_REMARK})"),
            "place": place_of("time", "capture", "response_packet", "remark"),
        },
    )
    found = told.grouped(
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
    return found.adding(
        {
            "remark": f"substring(place.remark, 1, {_LONGEST_REMARK})",
            "capture": "place.capture",
            "packet": "place.response_packet",
        },
    )


def _unanswered(requests: Relation, names: Relation) -> Relation:
    kinds = (derived.NO_ANSWER, derived.UNKNOWN, derived.WITHDRAWN)
    without = requests.where(f"outcome in {texts(kinds)}")
    told = with_names(without, names).adding(
        {
            "proven": f"outcome != '{derived.UNKNOWN}'",
            "withdrawn": f"outcome = '{derived.WITHDRAWN}'",
            "place": place_of("time", "capture", "request_packet"),
        },
    )
    found = told.grouped(
        ["operation", "broker", "end", "proven", "withdrawn"],
        {
            "exchanges": "count(*)",
            "first_time": "min(time)",
            "last_time": "max(time)",
            "place": "min(place)",
        },
    )
    return found.adding({"capture": "place.capture", "packet": "place.request_packet"})


def remarks(rows: Rows) -> list[str]:
    """Return what stands out: what failed, what was not answered, what is stored but not safe."""
    errors, unanswered = rows.get(ERRORS.name), rows.get(UNANSWERED.name)
    said = about_connects(rows.get(CONNECTS.name, ()))
    if behind := rows.get(RELAYED.name, ()):
        addresses = ", ".join(sorted({str(row["relay"]) for row in behind})[:5])
        said.append(
            f"Sends through {addresses} were seen on both sides of it and count twice among the"
            " exchanges, once for each hop; the table of topics and the retry report count them"
            " once (proxies and other relays)."
        )
    if unanswered is not None:
        said += _about_unanswered(unanswered)
    if errors is None:
        return said
    failed = [row for row in errors if row["class"] == FAILED]
    if failed:
        kinds = "one kind" if len(failed) == 1 else f"{len(failed)} kinds"
        answers = _counted(_count(failed), "answer says", "answers say")
        said.insert(0, f"{answers} that something is wrong, of {kinds}.")
    else:
        said.append("None of the answers that came says that something is wrong.")
    if weak := _count([row for row in errors if row["class"] == NOT_DURABLE]):
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
    question="Which requests did clients make, and what went wrong?",
    tables=(ERRORS, UNANSWERED, CONNECTS, OPERATIONS, TOPICS, CLIENTS, RELAYED),
    build=build,
    remarks=remarks,
    shares=(BROKER_NAMES, UNAVAILABLE, RELAYS, SUSPECTS, STITCHED),
)

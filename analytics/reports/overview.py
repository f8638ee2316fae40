"""Overview: operations, topics, clients, versions, and errors.

Topics and clients come from one pass over the exchanges (`_cells`); the tables of operations,
relays, and failed connects are those of other reports. Lists of names are cut at `MOST_NAMES`; a
count beside them is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dissectors.quantities import counted
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
from ..cells import CellTable
from ..report import Chart, Report, ReportInput, ReportOptions, Row, Rows, column_names, sum_of
from ..sends.broker_names import BROKER_NAMES, ROUTES, broker_names, with_names
from ..sends.hops import RELAYS, has_relays, inner_sends, relays, without_inner
from ..sends.sends import HOST, MESSAGES, sends_and_calls_of
from ..sends.stitched import STITCHED
from ..sends.suspects import SUSPECTS
from ..sends.unavailable import UNAVAILABLE, about_connects, failed_connects
from ..sql.expressions import (
    CONNECTION,
    names_of,
    place_of,
    ranked_by,
    text,
    texts,
    total_of,
    whole_of,
)
from ..sql.percentiles import power_below, with_bucket
from ..sql.relation import Relation
from ..sql.windows import span_of, window_of
from . import latency, retries
from .latency_tables import OPERATIONS, RELAYED, over_time
from .overview_tables import (
    CLIENTS,
    COUNTS,
    ERRORS,
    ERRORS_OVER_TIME,
    SIZES,
    TOPICS,
    TOPOLOGY,
    UNANSWERED,
    VERSIONS,
)
from .retry_tables import CONNECTS
from .version_bugs import known_bugs

CELLS = CellTable(
    "overview",
    column_names(
        "operation request_code server_address broker_name topic group client language"
        " version_name source conversation outcome"
    ),
    {
        **dict.fromkeys(("exchanges", "bytes", "carried", "loaded", "body", "total_us"), "sum"),
        "version": "max",
        "first": "min",
        "last": "max",
    },
)
_COUNTED_PLACES = {
    "exchanges": "count(*)",
    "first": "min(time)",
    "last": "max(time)",
    "place": "min(place)",
}
_PLACES = {"exchanges": "sum", "first": "min", "last": "max", "place": "min"}
ERROR_CELLS = CellTable(
    "errors",
    ("outcome", "response", "code", "alike", "operation", "server_address", "client", "topic"),
    _PLACES,
)
ERROR_CELLS_OVER_TIME = CellTable(
    "errors_over_time",
    ("window_start", "window_us", "error", "operation", "server_address"),
    {"exchanges": "sum"},
)
UNANSWERED_CELLS = CellTable(
    "unanswered", ("operation", "server_address", "end", "proven", "withdrawn"), _PLACES
)
SENT_CELLS = CellTable(
    "sent",
    ("topic", "group", "client", "from_bytes", "outcome_class"),
    dict.fromkeys(("sends", "messages", "bytes"), "sum"),
)
MOST_NAMES = 10
"""Most names in a list."""
_LONGEST_REMARK = 400
_DIFFERENCES = (
    (r"\s*See https?://\S+ for further details\.", ""),
    (r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]+)?|[0-9A-Fa-f]{16,}|[0-9]+(?:\.[0-9]+)*", "…"),
)
"""Variable parts of remarks: pattern, replacement."""

_SENDS = f"operation in {texts((*map(request_name, SENDS), *SEND_CALLS))}"
_GOOD = texts((OK, NOT_DURABLE))
_FETCHES = f"operation in {texts(map(request_name, FETCHES))}"
_RECEIVES = f"operation in {texts(RECEIVE_CALLS)}"


def build(report_input: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:
    """Return the tables."""
    seen = derived.with_outcome(report_input.exchanges, report_input.conversations).adding(
        {
            "operation": derived.OPERATION,
            "client": derived.address_of("client_address"),
            "time": derived.HAPPENED,
        },
    )
    requests = seen.where("outcome != 'orphan'")
    cells = _counted_cells(report_input.kept.cells(CELLS, lambda: _cells(requests)))
    names = broker_names(report_input, lambda: cells)
    counted = report_input.kept.counted
    if counted is not None and report_input.kept.has_rows:
        # written with the cells: from them, it could not be told
        counted.is_relayed = has_relays(report_input)
    made: dict[str, Callable[[], Relation]] = {
        ERRORS.name: lambda: _errors(
            report_input.kept.cells(ERROR_CELLS, lambda: _failed(seen)), names
        ),
        RELAYED.name: lambda: relays(report_input),
        UNANSWERED.name: lambda: _unanswered(
            report_input.kept.cells(UNANSWERED_CELLS, lambda: _without_response(requests)), names
        ),
        OPERATIONS.name: lambda: latency.operations(report_input),
        TOPICS.name: lambda: _topics(with_names(cells, names), inner_sends(report_input)),
        CLIENTS.name: lambda: _clients(cells),
        VERSIONS.name: lambda: _versions(cells),
        ERRORS_OVER_TIME.name: lambda: _errors_over_time(
            report_input,
            requests,
            names,
            options.window_us or window_of(_span_of(report_input, cells)),
        ),
    }
    # both are made of the same counts of sends, which are kept once
    if not {TOPOLOGY.name, SIZES.name}.isdisjoint(options.tables or {TOPOLOGY.name}):
        sent = report_input.kept.cells(SENT_CELLS, lambda: _sent(report_input))
        made[SIZES.name] = lambda: _sizes(sent)
        made[TOPOLOGY.name] = lambda: _topology(sent, cells)
    failed = failed_connects(report_input)
    if failed is not None:
        made[CONNECTS.name] = lambda: retries.connects_of(report_input, failed, options)
    wanted = options.tables
    return {name: make() for name, make in made.items() if wanted is None or name in wanted}


def _cells(requests: Relation) -> Relation:
    """Return one row per combination of the columns that tables group by, and of outcomes."""
    return requests.grouped(
        CELLS.keys,
        {
            "exchanges": "count(*)",
            "bytes": "sum(coalesce(request_bytes, 0) + coalesce(response_bytes, 0))",
            "carried": "sum(coalesce(message_count, 0))",
            "loaded": "count_if(message_count > 0)",
            "body": "sum(coalesce(body_bytes, 0))",
            # A long poll that waits for a message is not time that its topic costs.
            "total_us": total_of(f"if({derived.WAITS}, null, latency_us)"),
            "version": "max(version)",
            "first": "min(time)",
            "last": "max(time)",
        },
    )


def _counted_cells(cells: Relation) -> Relation:
    """Return cells with a count for each outcome."""
    return cells.adding(
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
    """Return, as SQL, the sorted values of a column, at most `MOST_NAMES`."""
    return names_of(column, MOST_NAMES)


_GROUPS = (  # a heartbeat names several
    f"slice(array_sort(array_distinct(flatten(collect_set(split(`group`, ','))))), 1, {MOST_NAMES})"
)


def _topics(cells: Relation, inner: Relation) -> Relation:
    """Return the topics; requests repeated by a relay or made by a proxy count once."""

    # Behind a proxy, calls of gRPC clients and fetches of the proxy are the same messages: calls
    # count only if no fetch was captured.
    def fetched(number: str) -> str:
        asked = f"sum(if({_FETCHES}, {number}, 0L))"
        return f"if(count_if({_FETCHES}) > 0, {asked}, sum(if({_RECEIVES}, {number}, 0L)))"

    stored = f"{_SENDS} and outcome in {_GOOD}"

    topics = cells.where("topic is not null").grouped(
        ["topic"],
        {
            **_SUMS,
            "every_send": f"sum(if({_SENDS}, exchanges, 0L))",
            "every_sent": f"sum(if({_SENDS}, messages, 0L))",
            "fetches": fetched("exchanges"),
            "fetched": fetched("messages"),
            "_answered": fetched(f"if(outcome in {_GOOD}, exchanges, 0L)"),
            "_loaded": fetched("loaded"),
            "_stored": f"sum(if({stored}, exchanges, 0L))",
            "_body": f"sum(if({stored}, body, 0L))",
            "total_us": "coalesce(sum(total_us), 0D)",
            "groups": _GROUPS,
            "brokers": _names(f"if({_SENDS} or {_FETCHES}, broker, null)"),
            "clients": "count(distinct client)",
        },
    )
    return topics.join(inner, ["topic"], "left", small=True).adding(
        {
            "sends": "every_send - coalesce(inner_sends, 0L)",
            "sent": "every_sent - coalesce(inner_sent, 0L)",
            "send_batch": "try_divide(every_sent, _stored)",
            "fetch_batch": "try_divide(fetched, _loaded)",
            "empty_share": "try_divide(_answered - _loaded, _answered)",
            "message_bytes": "try_divide(_body, every_sent)",
            "total_us": whole_of("total_us"),
            **ranked_by("total_us", "topic"),
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


def _versions(cells: Relation) -> Relation:
    """Return the versions of clients, with their known bugs."""
    named = cells.where("language is not null or version_name is not null")
    grouped = named.grouped(
        ["language", "version_name"],
        {
            **_SUMS,
            "ordinal": "max(version)",
            "clients": "count(distinct client)",
            "groups": _GROUPS,
            "last_time": "max(last)",
        },
    )
    return grouped.adding(
        {
            "version": "version_name",
            "client_share": "clients / sum(clients) over ()",
            "known_bugs": known_bugs("language", "ordinal", "version_name"),
        }
    )


def _sent(report_input: ReportInput) -> Relation:
    """Return the sends of clients, counted by topic, group, client, size, and outcome."""
    client_sends = without_inner(report_input, sends_and_calls_of(report_input.exchanges))
    sized = client_sends.adding(
        {"client": HOST, "_size": f"body_bytes div greatest({MESSAGES}, 1L)"}
    )
    sends = with_bucket(sized, "_size").adding({"from_bytes": power_below("bucket")})
    return sends.grouped(
        SENT_CELLS.keys,
        {
            "sends": "count(*)",
            "messages": f"sum({MESSAGES})",
            "bytes": "sum(coalesce(body_bytes, 0))",
        },
    )


def _sizes(sent: Relation) -> Relation:
    stored = sent.where(f"outcome_class in {_GOOD} and topic is not null and from_bytes >= 0")
    counted = stored.grouped(
        ("topic", "from_bytes"), {name: f"sum({name})" for name in ("sends", "messages", "bytes")}
    )
    return counted.adding(
        {
            "below_bytes": "greatest(from_bytes * 2, 1L)",
            "share": "messages / sum(messages) over (partition by topic)",
        }
    )


def _topology(sent: Relation, cells: Relation) -> Relation:
    """Return the producers and consumers of each topic."""
    produced = sent.where("topic is not null").select(
        *("topic", "'produces' as role", "coalesce(nullif(`group`, ''), client) as party"),
        *("client", "sends as requests"),
        f"if(outcome_class in {_GOOD}, messages, 0L) as messages",
    )
    # as in `_topics`: calls of consumers only if no fetch was captured
    asked = cells.where(f"topic is not null and ({_FETCHES} or {_RECEIVES})").adding(
        {"_pulled": f"max({_FETCHES}) over (partition by topic)"}
    )
    consumed = asked.where(f"{_FETCHES} or not _pulled").select(
        *("topic", "'consumes' as role", "coalesce(nullif(`group`, ''), client) as party"),
        *("client", "exchanges as requests", "messages"),
    )
    return produced.union(consumed).grouped(
        ("topic", "role", "party"),
        {
            "clients": "count(distinct client)",
            "requests": "sum(requests)",
            "messages": "sum(messages)",
        },
    )


def _span_of(report_input: ReportInput, cells: Relation) -> int | None:
    """Return the µs from the first to the last request, or None without times."""
    times = ("min(first)", "max(last)")
    return span_of(report_input.kept.engine, cells, times, report_input.exchanges, derived.HAPPENED)


def _errors_over_time(
    report_input: ReportInput, requests: Relation, names: Relation, length_us: int
) -> Relation:
    wrong = (FAILED, NOT_DURABLE, derived.NO_RESPONSE, derived.UNKNOWN)
    kind = f"if(outcome in {texts((FAILED, NOT_DURABLE))}, coalesce(response_name, '?'), outcome)"
    bad = requests.where(f"outcome in {texts(wrong)}").adding({"error": kind})
    cells = report_input.kept.cells_over_time(
        ERROR_CELLS_OVER_TIME,
        bad,
        length_us,
        lambda windowed: windowed.grouped(ERROR_CELLS_OVER_TIME.keys, {"exchanges": "count(*)"}),
    )
    return with_names(cells, names).grouped(
        ("window_start", "window_us", "error"),
        {
            "exchanges": "sum(exchanges)",
            "operations": _names("operation"),
            "brokers": _names("broker"),
        },
    )


def _alike(remark: str) -> str:
    """Return, as SQL, a remark with its variable parts replaced."""
    # remarks that differ only in numbers and ids are one error, shown by the first of them
    for pattern, replacement in _DIFFERENCES:
        remark = f"regexp_replace({remark}, {text(pattern)}, '{replacement}')"
    return f"trim({remark})"


_ERROR_CLASSES = (FAILED, NOT_DURABLE, EXPECTED)


def _failed(seen: Relation) -> Relation:
    """Return the counted error responses."""
    failed = seen.where(f"outcome in {texts(_ERROR_CLASSES)}").adding(
        {
            "response": "coalesce(response_name, '?')",
            "code": "response_code",
            "alike": _alike(f"substring(remark, 1, {_LONGEST_REMARK})"),
            "place": place_of("time", "capture", "response_packet", "remark"),
        },
    )
    return failed.grouped(ERROR_CELLS.keys, _COUNTED_PLACES)


def _errors(cells: Relation, names: Relation) -> Relation:
    rank = " ".join(
        f"when '{outcome_class}' then {place}L"
        for place, outcome_class in enumerate(_ERROR_CLASSES, 1)
    )
    ranked = with_names(cells, names).adding(
        {"class": "outcome", "rank": f"case outcome {rank} end"}
    )
    grouped = ranked.grouped(
        ["class", "rank", "response", "code", "alike"],
        {
            "exchanges": "sum(exchanges)",
            "operations": _names("operation"),
            "brokers": _names("broker"),
            "clients": "count(distinct client)",
            "topics": _names("topic"),
            "first_time": "min(first)",
            "last_time": "max(last)",
            "place": "min(place)",
        },
    )
    return grouped.adding(
        {
            "remark": f"substring(place.remark, 1, {_LONGEST_REMARK})",
            "capture": "place.capture",
            "packet": "place.response_packet",
        },
    )


def _without_response(requests: Relation) -> Relation:
    """Return the counted requests without a response."""
    kinds = (derived.NO_RESPONSE, derived.UNKNOWN, derived.WITHDRAWN)
    unanswered = requests.where(f"outcome in {texts(kinds)}").adding(
        {
            "proven": f"outcome != '{derived.UNKNOWN}'",
            "withdrawn": f"outcome = '{derived.WITHDRAWN}'",
            "place": place_of("time", "capture", "request_packet"),
        },
    )
    return unanswered.grouped(UNANSWERED_CELLS.keys, _COUNTED_PLACES)


def _unanswered(cells: Relation, names: Relation) -> Relation:
    grouped = with_names(cells, names).grouped(
        ["operation", "broker", "end", "proven", "withdrawn"],
        {
            "exchanges": "sum(exchanges)",
            "first_time": "min(first)",
            "last_time": "max(last)",
            "place": "min(place)",
        },
    )
    return grouped.adding({"capture": "place.capture", "packet": "place.request_packet"})


def report_notes(rows: Rows) -> list[str]:
    """Return notes: failures, missing responses, and messages not safely stored."""
    errors, unanswered = rows.get(ERRORS.name), rows.get(UNANSWERED.name)
    notes = about_connects(rows.get(CONNECTS.name, ()))
    if behind := rows.get(RELAYED.name, ()):
        addresses = ", ".join(sorted({str(row["relay"]) for row in behind})[:5])
        notes.append(
            f"Sends through the relays {addresses} were captured on both sides. Exchanges count"
            " them twice, once per hop; topics and retries count them once."
        )
    if unanswered is not None:
        notes += _about_unanswered(unanswered)
    if errors is None:
        return notes
    failed = [row for row in errors if row["class"] == FAILED]
    if failed:
        kinds = "one kind" if len(failed) == 1 else f"{len(failed)} kinds"
        responses = counted(sum_of(failed, "exchanges"), "response reports", "responses report")
        notes.insert(0, f"{responses} a failure, of {kinds}.")
    else:
        notes.append("No response reports a failure.")
    if weak := sum_of([row for row in errors if row["class"] == NOT_DURABLE], "exchanges"):
        notes.append(
            f"{counted(weak, 'send was', 'sends were')} stored, but not on disk or on a slave in"
            " time: these messages may be lost if the broker fails."
        )
    return notes


def _about_unanswered(unanswered: Sequence[Row]) -> list[str]:
    waited = [row for row in unanswered if not row["withdrawn"]]
    never = sum_of([row for row in waited if row["proven"]], "exchanges")
    unknown = sum_of([row for row in waited if not row["proven"]], "exchanges")
    notes = []
    if never:
        ended = "its connection" if never == 1 else "their connections"
        notes.append(f"{counted(never, 'request')} got no response before {ended} ended.")
    if unknown:
        notes.append(
            f"{counted(unknown, 'request has', 'requests have')} no captured response; the"
            " response may simply not have been captured."
        )
    return notes


_TABLES = (
    ERRORS,
    UNANSWERED,
    CONNECTS,
    OPERATIONS,
    TOPICS,
    TOPOLOGY,
    SIZES,
    CLIENTS,
    VERSIONS,
    RELAYED,
    ERRORS_OVER_TIME,
)
REPORT = Report(
    name="overview",
    title="Overview",
    question="Which requests did clients make, and what went wrong?",
    tables=_TABLES,
    build=build,
    charts=(
        Chart(
            "topology",
            "Message flow from producers over topics to consumer groups",
            TOPOLOGY.name,
            {"role": "role", "topic": "topic", "party": "party", "value": "messages"},
        ),
        over_time(
            "lines",
            "Errors over time",
            ERRORS_OVER_TIME,
            y="exchanges",
            axis="exchanges per window",
            by="error",
            each="error",
        ),
    ),
    notes=report_notes,
    shares=(BROKER_NAMES, UNAVAILABLE, RELAYS, SUSPECTS, STITCHED),
    cells=(
        CELLS,
        ERROR_CELLS,
        ERROR_CELLS_OVER_TIME,
        UNANSWERED_CELLS,
        SENT_CELLS,
        latency.CELLS,
        latency.BUCKETS,
        ROUTES,
    ),
    # failed connects and relays need rows
    additive=frozenset(table.name for table in _TABLES) - {CONNECTS.name, RELAYED.name},
    unrelayed=frozenset(table.name for table in (TOPICS, TOPOLOGY, SIZES)),
)

"""The inputs of the server and the queries of an agent, with bounded JSON results.

Rules: only these inputs are read. Texts from the network are escaped and shortened, and the size of
a result is limited.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from analytics.diagnosis.problem import as_json
from analytics.life.life import lives_as_json
from dissectors.printable import printable, shortened
from dissectors.rows.tables import encodable_value
from dissectors.times import text_of_time

from ..api.capture import Capture
from ..api.inputs import evidence_of
from ..api.packet_filters import packet_filters
from ..api.read import read
from ..api.tables import named
from ..api.tables.table import UnknownColumnError
from ..errors import ArgumentError
from ..ui.declared import read_request

MOST_ROWS: Final = 200
"""most rows of a result"""
MOST_BYTES: Final = 60_000
"""most bytes of JSON in a result: some 15,000 tokens"""
MOST_CHARACTERS: Final = 300
"""characters of one text"""
MOST_NAMES: Final = 200
"""names of one object: a row has fewer, counts by topic may have many"""
MOST_ITEMS: Final = 50
"""items of a secondary list, such as the packets of a problem"""
EXCHANGE_COLUMNS: Final = (
    *("request_time", "latency_us", "request_name", "response_name", "status", "topic", "group"),
    *("client_address", "server_address", "remark", "request_packet", "response_packet"),
)
"""default columns of exchanges"""
MESSAGE_COLUMNS: Final = (
    *("time", "event", "topic", "consumer_group", "keys", "tags", "unique_key", "queue_id"),
    *("queue_offset", "client_id", "broker_name", "body", "packet"),
)
"""default columns of messages"""
_OWN_TEXTS: Final = frozenset(("filter", "advice", "explanation", "limits"))
"""members with texts of this program, which say less if they are cut"""
_BODY_LIMIT: Final = 512
"""bytes of a message body that are decoded"""


class BoundedResult(NamedTuple):
    """A result for an agent."""

    source: str
    """name of the input"""
    left_out: dict[str, int]
    """path of a list → number of omitted items"""
    data: Any
    """JSON types"""


class EvidenceSource:
    """One input: a capture, a folder of captures, or a decoded log."""

    def __init__(
        self, name: str, capture: Capture, options: dict[str, object], stores: Sequence[str] = ()
    ) -> None:
        """Open an input; `stores` are folders of broker stores, to look messages up in."""
        self.name = name
        self.capture = capture
        self._options = options
        self._stores = stores

    def problems(self, rules: Sequence[str], since: str | None, until: str | None) -> BoundedResult:
        """Return the problems, with packets as evidence."""
        problems = self.capture.problems(rules=rules, since=since, until=until, stores=self._stores)
        return self._result(
            {
                "problems": [as_json(problem) for problem in problems],
                "limits": list(problems.limits),
            }
        )

    def summary(self) -> BoundedResult:
        """Return counts of operations, clients, servers, and findings."""
        return self._result(self.capture.summary().to_dict())

    def rows(
        self,
        check: Callable[[], None],
        table: str,
        where: str,
        columns: Sequence[str],
        since: str | None,
        until: str | None,
        limit: int,
    ) -> BoundedResult:
        """Return rows of a table; `check` is called between rows, and may raise to cancel."""
        body = {"body_limit": _BODY_LIMIT} if table == named.MESSAGES and self._reads_bodies else {}
        result = getattr(self.capture, table)(
            where, since=since, until=until, limit=limit + 1, **body
        )  # one more shows that there are more
        try:
            shown = named.table_named(table).chosen_columns(columns)
        except UnknownColumnError as error:
            raise ArgumentError(str(error)) from None
        found = []
        for row in result:
            check()
            found.append(row)
        first = found[:limit]
        has_capture = "capture" in columns or len({row.capture for row in first}) > 1
        rows: list[dict[str, object]] = []
        for row in first:
            values = {column.name: _value(column.type, column.get(row)) for column in shown}
            if has_capture:
                values["capture"] = row.capture
            rows.append({name: value for name, value in values.items() if value is not None})
        filters = [
            {"capture": name, "filter": text} for name, text in packet_filters(first).items()
        ]
        more = len(found) > limit
        return self._result(
            {"rows": rows, "more": more, "filters": filters}, max(limit, MOST_ITEMS)
        )

    def traces(self, key: str, where: str) -> BoundedResult:
        """Return the traces of messages."""
        traces = self.capture.trace(key, where=where, stores=self._stores)
        return self._result({"messages": list(lives_as_json(traces))})

    def report(self, table: str, where: str, since: str | None, until: str | None) -> BoundedResult:
        """Return a table of a report, computed without Java."""
        from ..report.options import EngineChoice, ReportRequest
        from ..report.run import results_of

        known = report_tables()
        if table not in known:
            raise ArgumentError(f"unknown table: {table!r}", hint=f"one of {', '.join(known)}")
        words: dict[str, object] = {
            # With a folder in front: a file that is called like a report would be taken for one.
            "words": [known[table], os.path.join(os.curdir, self.name)],
            "tables": [table],
            "where": where,
            "since": since,
            "until": until,
            "engine": EngineChoice.local,
            "quiet": True,
        }
        results, notes = results_of(read_request(ReportRequest, words | self._options))
        (result,) = results
        result_table = result.tables.get(table)
        rows = (
            []
            if result_table is None
            else [encodable_value(row) for row in result_table.rows(MOST_ROWS + 1)]
        )
        shown = self._result({"rows": rows, "remarks": [*notes, *result.notes]}, MOST_ROWS)
        if result_table is not None and (
            more := result_table.data.num_rows - len(shown.data["rows"])
        ):
            shown.left_out["rows"] = more
        return shown

    def limits(self) -> BoundedResult:
        """Return the limits of the input."""
        summary = self.capture.summary()
        data = summary.to_dict()
        shown = ("captures", "not_decoded", "gaps", "gap_bytes", "findings")
        evidence = evidence_of(self._stores)
        limits = [*summary.limits, *(() if evidence is None else evidence.notes)]
        return self._result({"limits": limits, **{name: data[name] for name in shown}})

    @property
    def _reads_bodies(self) -> bool:
        """A decoded log has bodies as they were written."""
        return type(self.capture) is Capture  # that of a decoded log is a subclass

    def _result(self, data: Any, most: int = MOST_ITEMS) -> BoundedResult:
        return bounded(self.name, data, most)


def sources_of(
    names: Iterable[str],
    decode_as: Iterable[int],
    tls_keylog: str,
    max_ratio: int,
    stores: Sequence[str] = (),
) -> dict[str, EvidenceSource]:
    """Return the inputs by name; raise Error for one that cannot be read.

    `stores`: folders of broker stores, in which all inputs look messages up.
    """
    sources = {}
    for name in names:
        if name == "-":
            raise ArgumentError("standard input carries the protocol; name a file or a folder")
        capture = read(
            name, decode_as=decode_as, tls_keylog=tls_keylog or None, max_ratio=max_ratio
        )
        options: dict[str, object] = {"max_ratio": max_ratio, "tls_keylog": tls_keylog or None}
        options["decode_as"] = [str(port) for port in decode_as]
        sources[name] = EvidenceSource(name, capture, options, stores)
    return sources


def chosen(sources: dict[str, EvidenceSource], name: str | None) -> EvidenceSource:
    """Return the input with a name, or the only input; raise ArgumentError."""
    if name is None and len(sources) == 1:
        return next(iter(sources.values()))
    if name is None or name not in sources:
        hint = f"source must be one of: {', '.join(sources)}"
        raise ArgumentError("no source named" if name is None else "unknown source", hint=hint)
    return sources[name]


def report_tables() -> dict[str, str]:
    """Return the names of the tables of all reports, sorted → the first report that has it."""
    from analytics.reports import REPORT_MODULES, report_of

    reports: dict[str, str] = {}
    for name in REPORT_MODULES:
        for table in report_of(name).tables:
            reports.setdefault(table.name, name)
    return dict(sorted(reports.items()))


def rule_text(name: str) -> dict[str, object]:
    """Return the description of a diagnosis rule; raise ArgumentError if unknown."""
    from ..api.judged import rules_named

    (rule,) = rules_named([name])
    shown = ("id", "severity", "title", "proof", "explanation", "advice", "limits", "grpc")
    return {
        **{part: str(getattr(rule, part) or "") for part in shown},
        "consequence_of": sorted(rule.consequence_of),
        "references": list(rule.references),
    }


def code_entries(query: str) -> list[object]:
    """Return the entries that match a query; raise ArgumentError if there are none."""
    from ..codes.as_json import value_of
    from ..codes.search import find, query_of, suggestions

    asked = query_of(query, None)
    matches = find(asked)
    if not query.strip() or not matches.entries:
        near = suggestions(asked)
        raise ArgumentError(
            f"no match for {query!r}", hint=f"did you mean {', '.join(near)}?" if near else ""
        )
    return [value_of(entry) for entry in matches.entries[:MOST_ITEMS]]


class Bounds(NamedTuple):
    """Limits of a result."""

    items: int
    """of a list"""
    characters: int = MOST_CHARACTERS
    """of a text"""
    names: int = MOST_NAMES
    """of an object"""

    def halved(self) -> Bounds | None:
        """Return stricter bounds: fewer items, then shorter texts, then fewer names; None: these
        are the strictest."""
        for name, least in (("items", 1), ("characters", 20), ("names", 1)):
            value = getattr(self, name)
            if value > least:
                return self._replace(**{name: max(least, value // 2)})
        return None


def bounded(source: str, data: Any, most: int) -> BoundedResult:
    """Return a result cut to `most` items per list and to the limit of JSON."""
    # The size is known only after encoding, so stricter bounds are tried until it fits.
    bounds: Bounds | None = Bounds(most)
    while bounds is not None:
        left_out: dict[str, int] = {}
        shown = _bounded(data, bounds, "", left_out)
        if len(msgspec.json.encode((shown, left_out))) <= MOST_BYTES:
            break
        bounds = bounds.halved()
    return BoundedResult(source, left_out, shown)


def _bounded(
    value: Any, bounds: Bounds, path: str, left_out: dict[str, int], is_own: bool = False
) -> Any:
    """Return a value with fewer items and shorter texts; `is_own`: a text of this program."""
    if isinstance(value, str):
        return printable(value) if is_own else shortened(printable(value), bounds.characters)
    if isinstance(value, dict):
        shown: dict[str, Any] = {}
        for key, item in value.items():
            name = shortened(printable(str(key)), bounds.characters)
            if len(shown) < bounds.names and name not in shown:
                inner = f"{path}.{name}".lstrip(".")
                shown[name] = _bounded(item, bounds, inner, left_out, name in _OWN_TEXTS)
        if len(shown) < len(value):
            left_out[path] = left_out.get(path, 0) + len(value) - len(shown)
        return shown
    if isinstance(value, (list, tuple)):
        if len(value) > bounds.items:
            left_out[path] = left_out.get(path, 0) + len(value) - bounds.items
        return [_bounded(item, bounds, path, left_out, is_own) for item in value[: bounds.items]]
    return value


def _value(kind: str, value: object) -> object:
    if value is not None and kind == "time":
        return text_of_time(value)  # type: ignore[arg-type]
    return encodable_value(value)

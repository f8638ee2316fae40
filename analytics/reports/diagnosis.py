"""What is wrong, why, and what to do: the rules of `analytics.diagnosis`, on Spark.

Rules: the same folds as in one pass, so that both say the same. Rows are given to (rule, key), each
of which is folded by one task; what all rows together say (`Context`) is small and made first, by
the one job that a report starts while it is built. Attempts of messages are stitched host by host.
A small input is judged in this process, by the one pass itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from pyspark.sql import functions as F

from dissectors.expert import ExpertInfo, ExpertKind
from dissectors.remoting.code_sets import SENDS, STORED
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord
from dissectors.rows.tables import encodable_value
from dissectors.times import text_of_time

from ..diagnosis.context import Context
from ..diagnosis.engine import Diagnosis, Engine, concluded, found_by, merged, not_judged, takers_of
from ..diagnosis.messages import LONG_US, AttemptStore, ObservedMessage
from ..diagnosis.problem import Problem
from ..diagnosis.registry import rule_of, rules
from ..diagnosis.rule import Fold
from ..inputs.rows import connections_in, exchanges_in
from ..report import Chart, Report, ReportInput, ReportOptions, ReportTable, Row, Rows, TableColumn
from ..schema import SOURCE, schema_of
from ..sends import sends
from ..sends.broker_names import broker_names
from ..spark.expressions import adding, numbers

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

PROBLEM_COLUMNS: Final = (
    TableColumn("incident", "int", "", "number of the incident: problems of one have one cause"),
    TableColumn("place", "int", "", "place in it: the cause first"),
    TableColumn("severity", "string", "", "`error`, `warning` or `info`"),
    TableColumn("title", "string", "", "what is wrong, in a sentence"),
    TableColumn("confidence", "string", "", "`certain`, `likely` or `possible`"),
    TableColumn("reason", "string", "", "why it is less than certain"),
    TableColumn("rule", "string", "", "id of the rule"),
    TableColumn("consequence_of", "string", "", "rule of the problem that led to it"),
    TableColumn("count", "int", "", "how often it was seen"),
    TableColumn("first_time", "time", "", "the first time"),
    TableColumn("last_time", "time", "", "the last time"),
    TableColumn("broker", "string", "", "broker that it is about"),
    TableColumn("topic", "string", "", "topic"),
    TableColumn("group", "string", "", "group"),
    TableColumn("client", "string", "", "client id, else address"),
    TableColumn("server", "string", "", "address of a NameServer, or of what is no broker either"),
    TableColumn("queue_id", "int", "", "queue"),
    TableColumn("message", "string", "", "message id"),
    TableColumn("evidence", "list", "", "packets that prove it: time, capture, packet, what"),
    TableColumn("filter", "string", "", "display filter of Wireshark that shows them"),
    TableColumn("details", "list", "", "further sentences"),
    TableColumn("explanation", "string", "", "what happens inside RocketMQ"),
    TableColumn("advice", "string", "", "what to check or set"),
    TableColumn("references", "list", "", "public issues"),
)
LIMIT_COLUMNS: Final = (
    TableColumn("place", "int", "", "order"),
    TableColumn("limit", "string", "", "what the capture could not show, or a bound reached"),
)
PROBLEMS: Final = ReportTable(
    "diagnosis_problems",
    "What is wrong",
    "A row a problem; by incident, the gravest first, in it the cause first.",
    PROBLEM_COLUMNS,
    order=("incident", "place"),
    brief=("severity", "title", "rule", "count", "first_time", "confidence", "incident"),
    shown=30,
)
LIMITS: Final = ReportTable(
    "diagnosis_limits",
    "What could not be judged",
    "A row a thing that the capture does not have, and the rules that could therefore not speak.",
    LIMIT_COLUMNS,
    order=("place",),
    shown=10,
)
_ITEM: Final = (
    TableColumn("rule", "string", "", ""),
    TableColumn("key", "string", "", ""),
    TableColumn("kind", "string", "", ""),
    TableColumn("item", "string", "", ""),
)
_TEXT: Final = (TableColumn("value", "string", "", ""),)
_EXCHANGE, _CONNECTION, _FAILURE, _MESSAGE = "exchange", "connection", "failure", "message"
_DECODERS: Final[Mapping[str, msgspec.json.Decoder[object]]] = {
    kind: msgspec.json.Decoder(type_)
    for kind, type_ in (
        (_EXCHANGE, ExchangeRecord),
        (_CONNECTION, ConversationRecord),
        (_MESSAGE, ObservedMessage),
    )
}
_SUBJECT: Final = ("broker", "topic", "group", "client", "server")
Tables = Iterator["pyarrow.RecordBatch"]


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, DataFrame]:  # noqa: ARG001
    """Return the tables."""
    whole = _in_one_pass(given) if given.small else given.kept.frame(_on_spark(given))
    return {
        PROBLEMS.name: whole.where("kind = 'problem'"),
        LIMITS.name: whole.where("kind = 'limit'"),
    }


def _on_spark(given: ReportInput) -> DataFrame:
    """Return the rows of both tables, made by Spark's tasks."""
    context = _context_of(given)
    known = msgspec.json.encode(context).decode()
    items = given.exchanges.mapInArrow(_exchange_items, schema_of(_ITEM))
    items = items.unionByName(_message_items(given, context))
    if given.conversations is not None:
        items = items.unionByName(
            given.conversations.mapInArrow(_connection_items, schema_of(_ITEM))
        )
    # Sorted and not grouped: a call of Python for each of thousands of keys takes longer than all
    # folds together.
    sorted_items = items.repartition("rule", "key").sortWithinPartitions("rule", "key")
    found = sorted_items.mapInArrow(_folded(known), schema_of(_TEXT))
    # One row more, so that the limits are said where nothing is wrong, too.
    spark = given.exchanges.sparkSession
    every = found.unionByName(spark.createDataFrame([("",)], schema_of(_TEXT)))
    grouped = adding(every, {"one": "1"}).groupBy("one")
    return grouped.applyInArrow(_concluded(known), schema_of(_ALL))


def _in_one_pass(given: ReportInput) -> DataFrame:
    """Return the rows of both tables, made here from all rows; runs a job for each table."""
    import pyarrow

    engine = Engine(rules())
    exchanges = _by_source(given.exchanges)
    connections = _by_source(given.conversations)
    for source in sorted(exchanges.keys() | connections.keys()):
        engine.begin_input(source)
        for batch in exchanges.get(source, ()):
            engine.add_exchanges(exchanges_in(batch))
        for batch in connections.get(source, ()):
            engine.add_connections(connections_in(batch))
    if given.findings is not None:
        for batch in given.findings.select("kind").toArrow().to_batches():
            engine.add_findings(_findings_in(batch))
    rows = _rows_of(engine.diagnosis())
    table = pyarrow.Table.from_pylist(rows, schema=_arrow_schema(_ALL))
    return given.exchanges.sparkSession.createDataFrame(table, schema_of(_ALL))


def _by_source(frame: DataFrame | None) -> dict[str, list[pyarrow.RecordBatch]]:
    """Return the rows of each input."""
    if frame is None:
        return {}
    import pyarrow.compute

    table = frame.toArrow()
    return {
        str(source): table.filter(pyarrow.compute.field(SOURCE) == source).to_batches()
        for source in table.column(SOURCE).unique().to_pylist()
    }


_ALL: Final = (
    TableColumn("kind", "string", "", ""),
    *PROBLEM_COLUMNS,
    TableColumn("limit", "string", "", ""),
)


# -- what all rows say ----------------------------------------------------------------------------


def _context_of(given: ReportInput) -> Context:
    """Return what all rows together say; runs a job."""
    parts = [given.exchanges.mapInArrow(_exchange_context, schema_of(_TEXT))]
    if given.conversations is not None:
        parts.append(given.conversations.mapInArrow(_connection_context, schema_of(_TEXT)))
    if given.findings is not None:
        parts.append(given.findings.select("kind").mapInArrow(_finding_context, schema_of(_TEXT)))
    context = Context()
    for part in parts:
        for row in part.toLocalIterator():
            context.merge(msgspec.json.decode(row["value"], type=Context))
    return context


def _exchange_context(batches: Tables) -> Tables:
    context = Context()
    for batch in batches:
        rows = exchanges_in(batch)
        for row in rows:
            context.add_exchange(row)
        context.add_span(rows)
    yield _texts([msgspec.json.encode(context).decode()])


def _connection_context(batches: Tables) -> Tables:
    context = Context()
    for batch in batches:
        for row in connections_in(batch):
            context.add_connection(row)
    yield _texts([msgspec.json.encode(context).decode()])


def _finding_context(batches: Tables) -> Tables:
    context = Context()
    for batch in batches:
        for info in _findings_in(batch):
            context.add_finding(info)
    yield _texts([msgspec.json.encode(context).decode()])


def _findings_in(batch: pyarrow.RecordBatch) -> Iterator[ExpertInfo]:
    kinds = ExpertKind.__members__
    for name in map(str, batch.column("kind").to_pylist()):
        if name in kinds:
            yield ExpertInfo(kinds[name], "", 0, 0, -1, -1)


# -- rows to rules --------------------------------------------------------------------------------


def _exchange_items(batches: Tables) -> Tables:
    takers = takers_of(rules())
    for batch in batches:
        found = []
        for row in exchanges_in(batch):
            item = None
            for one, rule in takers.of(row):
                key = one.key(row)
                if key is not None:
                    item = item or _text_of(row)
                    found.append((rule.id, key, _EXCHANGE, item))
        yield _items(found)


def _connection_items(batches: Tables) -> Tables:
    takers = [(rule.connections, rule) for rule in rules() if rule.connections is not None]
    for batch in batches:
        found = []
        for row in connections_in(batch):
            for key_of, rule in takers:
                key = key_of(row)
                if key is not None:
                    found.append((rule.id, key, _CONNECTION, _text_of(row)))
        yield _items(found)


def _message_items(given: ReportInput, context: Context) -> DataFrame:
    """Return the messages that need a closer look, for the rules that take messages."""
    names = broker_names(given)
    produced = sends.sends_of(given.exchanges)
    failures = None
    if given.conversations is not None:
        failures = sends.connect_failures(given.conversations, names)
    keys = sends.telling_keys(produced, names, failures, LONG_US * 10 // 9)
    quick = (
        f"(coalesce(response_code in {numbers(STORED)} and latency_us <= {LONG_US}, false)"
        " or status = 'oneway')"
    )
    others = produced.where(f"unique_key is not null and not {quick}")
    keys = keys.unionByName(others.selectExpr(f"{sends.KEY} as key")).distinct()
    chosen = given.exchanges.where(
        f"request_code in {numbers(SENDS)} and unique_key is not null and status != 'orphan'"
        f" and request_time is not null and not {sends.OF_CONSUMERS}"
    ).join(F.broadcast(keys), F.expr(f"{sends.KEY} = key"), "left_semi")
    placed = adding(chosen, {"host": sends.HOST})
    parts = placed.mapInArrow(_parts_of(_EXCHANGE), schema_of(_PART))
    if given.conversations is not None:
        where = placed.select(SOURCE, "conversation").distinct()
        used = given.conversations.join(where, [SOURCE, "conversation"], "left_semi")
        failed = given.conversations.where("`end` in ('refused', 'no_answer')")
        for frame, kind in ((used, _CONNECTION), (failed, _FAILURE)):
            hosted = adding(frame, {"host": sends.host_of("client")})
            parts = parts.unionByName(hosted.mapInArrow(_parts_of(kind), schema_of(_PART)))
    return parts.groupBy("host").applyInArrow(
        _stitched(msgspec.json.encode(context.names_of_ports()).decode()), schema_of(_ITEM)
    )


_PART: Final = (
    TableColumn("host", "string", "", ""),
    TableColumn("source", "string", "", ""),
    TableColumn("kind", "string", "", ""),
    TableColumn("item", "string", "", ""),
)


def _parts_of(kind: str) -> Callable[[Tables], Tables]:
    def parts(batches: Tables) -> Tables:
        for batch in batches:
            rows: Sequence[object] = (
                exchanges_in(batch) if kind == _EXCHANGE else connections_in(batch)
            )
            yield _table(
                _PART,
                [
                    (str(host), str(source), kind, _text_of(row))
                    for host, source, row in zip(
                        batch.column("host").to_pylist(),
                        batch.column(SOURCE).to_pylist(),
                        rows,
                        strict=True,
                    )
                ],
            )

    return parts


def _stitched(names_text: str) -> Callable[[pyarrow.Table], pyarrow.Table]:
    def stitched(table: pyarrow.Table) -> pyarrow.Table:
        import pyarrow

        names = msgspec.json.decode(names_text, type=dict[str, str])
        store = AttemptStore()
        rows: dict[str, list[tuple[str, ExchangeRecord]]] = {}
        parts = zip(
            *(map(str, table.column(name).to_pylist()) for name in ("source", "kind", "item")),
            strict=True,
        )
        for source, kind, item in sorted(parts):
            if kind == _EXCHANGE:
                row = msgspec.json.decode(item, type=ExchangeRecord)
                rows.setdefault(row.unique_key or "", []).append((source, row))
            else:
                store.source = source
                store.add_connection(msgspec.json.decode(item, type=ConversationRecord))
        for unique_key, one in rows.items():
            store.keep(unique_key, one)
        takers = [(rule.messages, rule) for rule in rules() if rule.messages is not None]
        found = []
        for message in store.messages(names):
            for key_of, rule in takers:
                key = key_of(message)
                if key is not None:
                    found.append((rule.id, key, _MESSAGE, msgspec.json.encode(message).decode()))
        return pyarrow.Table.from_batches([_items(found)])

    return stitched


# -- folds ----------------------------------------------------------------------------------------


def _folded(known: str) -> Callable[[Tables], Tables]:
    """Return what folds rows that are sorted by rule and key to problems, as JSON."""

    def folded(batches: Tables) -> Tables:
        context = msgspec.json.decode(known, type=Context)
        state: _State | None = None
        for batch in batches:
            found: list[Problem] = []
            for name, key, kind, item in _texts_in(batch, ("rule", "key", "kind", "item")):
                if state is None or state.rule.id != name or state.key != key:
                    found += state.problems(context) if state is not None else ()
                    state = _State(name, key)
                state.add(kind, item)
            yield _problems(found)
        if state is not None:
            yield _problems(state.problems(context))

    return folded


class _State:
    """What one rule makes of the rows of one key; those of messages are folded apart."""

    def __init__(self, rule: str, key: str) -> None:
        found = rule_of(rule)
        assert found is not None
        self.rule = found
        self.key = key
        self._folds: dict[bool, Fold] = {}

    def add(self, kind: str, item: str) -> None:
        """Take a row, as JSON."""
        value: object = _DECODERS[kind].decode(item)
        fold = self._folds.get(kind == _MESSAGE)
        if fold is None:
            fold = self._folds[kind == _MESSAGE] = self.rule.fold(self.key)
        if isinstance(value, ExchangeRecord):
            fold.add_exchange(value)
        elif isinstance(value, ConversationRecord):
            fold.add_connection(value)
        elif isinstance(value, ObservedMessage):
            fold.add_message(value)

    def problems(self, context: Context) -> list[Problem]:
        """Return what was found."""
        return found_by(self.rule, self._folds.values(), context)


def _problems(found: Iterable[Problem]) -> pyarrow.RecordBatch:
    return _texts([msgspec.json.encode(one).decode() for one in found])


def _concluded(known: str) -> Callable[[pyarrow.Table], pyarrow.Table]:
    """Return what puts all problems into incidents, as rows of both tables."""

    def conclude(table: pyarrow.Table) -> pyarrow.Table:
        import pyarrow

        context = msgspec.json.decode(known, type=Context)
        texts = [text for text in table.column("value").to_pylist() if text]
        limits: list[str] = []
        problems = merged([msgspec.json.decode(text, type=Problem) for text in texts], limits)
        rows = _rows_of(concluded(rules(), problems, context, limits))
        return pyarrow.Table.from_pylist(rows, schema=_arrow_schema(_ALL))

    return conclude


def _rows_of(diagnosis: Diagnosis) -> list[dict[str, object]]:
    """Return the rows of both tables."""
    rows: list[dict[str, object]] = [
        {"kind": "problem", **_row_of(problem, place)}
        for place, problem in enumerate(diagnosis.problems, 1)
    ]
    said = not_judged(diagnosis) + diagnosis.limits
    return rows + [
        {"kind": "limit", "place": place, "limit": text} for place, text in enumerate(said, 1)
    ]


def _row_of(problem: Problem, place: int) -> dict[str, object]:
    subject = problem.subject
    row: dict[str, object] = {
        name: getattr(problem, name)
        for name in (
            *("incident", "title", "reason", "rule", "consequence_of", "count", "filter"),
            *("details", "explanation", "advice", "references"),
        )
    }
    row |= {"place": place, "severity": str(problem.severity)}
    row |= {"confidence": str(problem.confidence), "queue_id": subject.queue}
    row |= {name: getattr(subject, name) for name in _SUBJECT}
    row["message"] = subject.message
    row["first_time"], row["last_time"] = problem.first_time // 1000, problem.last_time // 1000
    row["evidence"] = [
        " ".join(
            (
                text_of_time(one.time),
                one.capture,
                f"packet {one.packet}"
                if one.packet is not None
                else f"conversation {one.conversation}",
                one.what,
            )
        )
        for one in problem.evidence
    ]
    return {name: encodable_value(value) for name, value in row.items()}


# -- Arrow ----------------------------------------------------------------------------------------


def _text_of(row: object) -> str:
    try:
        return msgspec.json.encode(row).decode()
    except UnicodeEncodeError:  # half a surrogate pair
        return msgspec.json.encode(encodable_value(msgspec.to_builtins(row))).decode()


def _texts_in(batch: pyarrow.RecordBatch, names: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def _texts(values: list[str]) -> pyarrow.RecordBatch:
    return _table(_TEXT, [(value,) for value in values])


def _items(found: list[tuple[str, str, str, str]]) -> pyarrow.RecordBatch:
    return _table(_ITEM, found)


def _table(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]]) -> pyarrow.RecordBatch:
    import pyarrow

    by_column: Iterable[Sequence[str]] = zip(*rows, strict=True) if rows else [[] for _ in columns]
    arrays = [pyarrow.array(values, pyarrow.string()) for values in by_column]
    return pyarrow.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def _arrow_schema(columns: Sequence[TableColumn]) -> pyarrow.Schema:
    import pyarrow

    types: dict[str, pyarrow.DataType] = {
        "string": pyarrow.string(),
        "int": pyarrow.int64(),
        "time": pyarrow.timestamp("us", tz="UTC"),
        "list": pyarrow.list_(pyarrow.string()),
    }
    return pyarrow.schema([(column.name, types[column.type]) for column in columns])


# -- words ----------------------------------------------------------------------------------------


def remarks(rows: Rows) -> list[str]:
    """Return the verdict, and what the capture could not show."""
    found = rows.get(PROBLEMS.name)
    if found is None:
        return []
    if not found:
        return ["Nothing wrong was found."]
    causes = [row for row in found if row["consequence_of"] is None]
    said = [_sentence(row) for row in causes[:_MOST_SAID]]
    if len(causes) > _MOST_SAID:
        said.append(f"{len(causes) - _MOST_SAID} further problems are in the table.")
    return said


_MOST_SAID: Final = 5


def _sentence(row: Row) -> str:
    return f"{str(row['severity']).upper()}: {row['title']}"


REPORT = Report(
    name="diagnosis",
    title="Diagnosis",
    question="What is wrong, why, and what can be done about it?",
    tables=(PROBLEMS, LIMITS),
    build=build,
    charts=(Chart("incidents", "Incidents", PROBLEMS.name, {"time": "first_time"}),),
    remarks=remarks,
)

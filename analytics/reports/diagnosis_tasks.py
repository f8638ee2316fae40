"""What Spark's tasks do for the diagnosis: rows to rules, rules to problems, problems to tables.

Rules: each function takes and gives batches of Arrow, and reads nothing else but what it was made
with. Rows, context and problems travel as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from dissectors.expert import ExpertInfo, ExpertKind
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord, MessageIdentity

from ..diagnosis.context import Context
from ..diagnosis.engine import concluded, folds_of_messages, found_by
from ..diagnosis.incidents import merged
from ..diagnosis.messages import AttemptStore, ObservedMessage
from ..diagnosis.problem import Problem
from ..diagnosis.registry import rule_of, rules, takers_of
from ..diagnosis.rule import Fold
from ..inputs.rows import connections_in, exchanges_in, json_text_of
from ..report import TableColumn
from ..schema import SOURCE, arrow_rows
from .diagnosis_tables import ALL_COLUMNS, rows_of

if TYPE_CHECKING:
    import pyarrow

Tables = Iterator["pyarrow.RecordBatch"]


ITEM: Final = (
    TableColumn("rule", "string", "", ""),
    TableColumn("key", "string", "", ""),
    TableColumn("kind", "string", "", ""),
    TableColumn("item", "string", "", ""),
)
TEXT: Final = (TableColumn("value", "string", "", ""),)
EXCHANGE, CONNECTION, FAILURE, _MESSAGE = "exchange", "connection", "failure", "message"
_DECODERS: Final[Mapping[str, msgspec.json.Decoder[object]]] = {
    kind: msgspec.json.Decoder(type_)
    for kind, type_ in (
        (EXCHANGE, ExchangeRecord),
        (CONNECTION, ConversationRecord),
        (_MESSAGE, ObservedMessage),
    )
}


# -- what all rows say ----------------------------------------------------------------------------


def exchange_context(batches: Tables) -> Tables:
    """Yield what exchanges say to `Context`, as one row of TEXT."""
    context = Context()
    for batch in batches:
        rows = exchanges_in(batch)
        for row in rows:
            context.add_exchange(row)
        context.add_span(rows)
    yield _texts([msgspec.json.encode(context).decode()])


def connection_context(batches: Tables) -> Tables:
    """Yield what connections say to `Context`, as one row of TEXT."""
    context = Context()
    for batch in batches:
        for row in connections_in(batch):
            context.add_connection(row)
    yield _texts([msgspec.json.encode(context).decode()])


def finding_context(batches: Tables) -> Tables:
    """Yield what findings say to `Context`, as one row of TEXT."""
    context = Context()
    for batch in batches:
        for info in findings_in(batch):
            context.add_finding(info)
    yield _texts([msgspec.json.encode(context).decode()])


def findings_in(batch: pyarrow.RecordBatch) -> Iterator[ExpertInfo]:
    """Yield the findings of known kinds; all that is read of them is the kind."""
    kinds = ExpertKind.__members__
    for name in map(str, batch.column("kind").to_pylist()):
        if name in kinds:
            yield ExpertInfo(kinds[name], "", 0, 0, -1, -1)


# -- rows to rules --------------------------------------------------------------------------------


def exchange_items(batches: Tables) -> Tables:
    """Yield exchanges for the rules that take them, as rows of ITEM."""
    takers = takers_of(rules())
    for batch in batches:
        found = []
        for row in exchanges_in(batch):
            item = None
            for one, rule in takers.of(row):
                key = one.key(row)
                if key is not None:
                    item = item or json_text_of(row)
                    found.append((rule.id, key, EXCHANGE, item))
        yield _items(found)


def connection_items(batches: Tables) -> Tables:
    """Yield connections for the rules that take them, as rows of ITEM."""
    takers = [(rule.connections, rule) for rule in rules() if rule.connections is not None]
    for batch in batches:
        found = []
        for row in connections_in(batch):
            for key_of, rule in takers:
                key = key_of(row)
                if key is not None:
                    found.append((rule.id, key, CONNECTION, json_text_of(row)))
        yield _items(found)


PART: Final = (
    TableColumn("host", "string", "", ""),
    TableColumn("source", "string", "", ""),
    TableColumn("kind", "string", "", ""),
    TableColumn("item", "string", "", ""),
)


def parts_of(kind: str) -> Callable[[Tables], Tables]:
    """Return what makes rows of PART of exchanges (EXCHANGE) or connections (the other kinds)."""

    def parts(batches: Tables) -> Tables:
        for batch in batches:
            rows: Sequence[object] = (
                exchanges_in(batch) if kind == EXCHANGE else connections_in(batch)
            )
            yield _table(
                PART,
                [
                    (str(host), str(source), kind, json_text_of(row))
                    for host, source, row in zip(
                        batch.column("host").to_pylist(),
                        batch.column(SOURCE).to_pylist(),
                        rows,
                        strict=True,
                    )
                ],
            )

    return parts


def stitched(names_text: str) -> Callable[[pyarrow.Table], pyarrow.Table]:
    """Return what stitches the attempts of one host to messages, as rows of ITEM.

    `names_text` is `Context.names_of_ports` as JSON.
    """

    def stitch(table: pyarrow.Table) -> pyarrow.Table:
        import pyarrow

        names = msgspec.json.decode(names_text, type=dict[str, str])
        store = AttemptStore()
        rows: dict[MessageIdentity, list[tuple[str, ExchangeRecord]]] = {}
        parts = zip(
            *(map(str, table.column(name).to_pylist()) for name in ("source", "kind", "item")),
            strict=True,
        )
        for source, kind, item in sorted(parts):
            if kind == EXCHANGE:
                row = msgspec.json.decode(item, type=ExchangeRecord)
                rows.setdefault((row.unique_key or "", row.topic), []).append((source, row))
            else:
                store.source = source
                store.add_connection(msgspec.json.decode(item, type=ConversationRecord))
        for identity, one in rows.items():
            store.keep(identity, one)
        takers = [(rule.messages, rule) for rule in rules() if rule.messages is not None]
        found = []
        for message in store.messages(names):
            for key_of, rule in takers:
                key = key_of(message)
                if key is not None:
                    found.append((rule.id, key, _MESSAGE, msgspec.json.encode(message).decode()))
        return pyarrow.Table.from_batches([_items(found)])

    return stitch


# -- folds ----------------------------------------------------------------------------------------


def folded(known: str) -> Callable[[Tables], Tables]:
    """Return what folds rows that are sorted by rule and key to problems, as JSON."""

    def fold(batches: Tables) -> Tables:
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

    return fold


class _State:
    """What one rule makes of the rows of one key; messages may be folded apart."""

    def __init__(self, rule: str, key: str) -> None:
        found = rule_of(rule)
        assert found is not None
        self.rule = found
        self.key = key
        self._fold: Fold | None = None
        self._messages: list[ObservedMessage] = []

    def add(self, kind: str, item: str) -> None:
        """Take a row, as JSON."""
        value: object = _DECODERS[kind].decode(item)
        if isinstance(value, ObservedMessage) and not self.rule.joined_messages:
            self._messages.append(value)
            return
        fold = self._fold
        if fold is None:
            fold = self._fold = self.rule.new_fold(self.key)
        if isinstance(value, ExchangeRecord):
            fold.add_exchange(value)
        elif isinstance(value, ConversationRecord):
            fold.add_connection(value)
        elif isinstance(value, ObservedMessage):
            fold.add_message(value)

    def problems(self, context: Context) -> list[Problem]:
        """Return what was found."""
        folds = folds_of_messages(self.rule, self.key, self._messages)
        if self._fold is not None:
            folds.append(self._fold)
        return found_by(self.rule, folds, context)


def _problems(found: Iterable[Problem]) -> pyarrow.RecordBatch:
    return _texts([msgspec.json.encode(one).decode() for one in found])


def concluded_rows(known: str) -> Callable[[pyarrow.Table], pyarrow.Table]:
    """Return what puts all problems into incidents, as rows of both tables."""

    def conclude(table: pyarrow.Table) -> pyarrow.Table:

        context = msgspec.json.decode(known, type=Context)
        texts = [text for text in table.column("value").to_pylist() if text]
        limits: list[str] = []
        problems = merged([msgspec.json.decode(text, type=Problem) for text in texts], limits)
        rows = rows_of(concluded(rules(), problems, context, limits))
        return arrow_rows(rows, ALL_COLUMNS)

    return conclude


# -- Arrow ----------------------------------------------------------------------------------------


def _texts_in(batch: pyarrow.RecordBatch, names: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def _texts(values: list[str]) -> pyarrow.RecordBatch:
    return _table(TEXT, [(value,) for value in values])


def _items(found: list[tuple[str, str, str, str]]) -> pyarrow.RecordBatch:
    return _table(ITEM, found)


def _table(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]]) -> pyarrow.RecordBatch:
    import pyarrow

    by_column: Iterable[Sequence[str]] = zip(*rows, strict=True) if rows else [[] for _ in columns]
    arrays = [pyarrow.array(values, pyarrow.string()) for values in by_column]
    return pyarrow.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])

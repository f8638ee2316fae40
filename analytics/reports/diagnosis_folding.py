"""The diagnosis as a keyed fold: each row goes to its keys, and each key has a state per rule.

Exchanges travel in blocks of columns, once for all rules that use the same key. Attempts of
messages are stitched per host, from the sends that the query of the retry report selects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, repeat
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dissectors.grpc import send_codes
from dissectors.remoting.code_sets import SENDS, STORED
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS, ConversationRecord
from dissectors.rows.record import ExchangeRecord, MessageIdentity
from dissectors.times import text_of_time

from .. import derived
from ..consuming.items import Item
from ..consuming.known import Known
from ..diagnosis.engine import (
    MAX_FLOWS,
    Diagnosis,
    concluded,
    folds_of_messages,
    found_by,
    not_judged,
    wanted,
)
from ..diagnosis.incidents import merged
from ..diagnosis.keys import Add, Flow, FlowRows, flow_of
from ..diagnosis.messages import AttemptStore, ObservedMessage
from ..diagnosis.problem import Problem
from ..diagnosis.registry import Takers, rule_of, rules
from ..diagnosis.rule import Fold
from ..inputs.rows import connections_in, exchanges_in, json_text_of
from ..report import ReportInput, ReportTable, TableColumn, column_names, table_columns
from ..schema import SOURCE
from ..sends import sends
from ..sends.attempts import DEFAULT_TIMEOUT_US, long_us
from ..sends.broker_names import broker_names
from ..sends.hops import without_inner
from ..sends.suspects import flagged_keys
from ..sql.expressions import numbers
from ..sql.relation import Relation
from .folding import ITEM, Folding, arrow_items

if TYPE_CHECKING:
    import pyarrow


PROBLEMS: Final = ReportTable(
    "diagnosis_problems",
    "Problems",
    "One row per problem, grouped by incident (most severe first), cause first.",
    table_columns("""
        incident int: incident number; problems of one incident share a cause
        place int: position in the incident, cause first
        severity string: `error`, `warning` or `info`
        title string: the problem in one sentence
        confidence string: `certain`, `likely` or `possible`
        reason string: reason for less than full certainty
        rule string: rule ID
        consequence_of string: rule of the causing problem
        count int: number of occurrences
        impact list: effect on messages, such as `messages_lost=3`
        first_time time: first occurrence
        last_time time: last occurrence
        state string: `ended` or `ongoing` at the end; empty: unknown
        broker string: affected broker
        topic string: topic
        group string: group
        client string: client ID, or address if unknown
        server string: address of the affected server
        queue_id int: queue
        message string: message id
        evidence list: evidence: time, capture, packet, and description
        filter string: Wireshark display filter for the evidence
        details list: additional details
        explanation string: explanation of the mechanism
        advice string: recommended action
        references list: public issues
    """),
    order=("incident", "place"),
    brief=("severity", "title", "rule", "count", "first_time", "confidence", "incident"),
    shown=30,
    aside=True,
)
LIMITS: Final = ReportTable(
    "diagnosis_limits",
    "Limits of the diagnosis",
    "One row per kind of traffic that the capture lacks, with the rules skipped because of it.",
    table_columns("""
        place int: order
        limit string: what the capture cannot show, or a limit reached
    """),
    order=("place",),
    shown=10,
    aside=True,
)
_PLAIN: Final = column_names(
    "incident title reason rule consequence_of count filter details explanation advice references"
)
_SUBJECT: Final = ("broker", "topic", "group", "client", "server")


def rows_of(diagnosis: Diagnosis) -> dict[str, list[dict[str, object]]]:
    """Return the rows of both tables."""
    limits = not_judged(diagnosis) + diagnosis.limits
    return {
        PROBLEMS.name: [
            _row_of(problem, place) for place, problem in enumerate(diagnosis.problems, 1)
        ],
        LIMITS.name: [{"place": place, "limit": text} for place, text in enumerate(limits, 1)],
    }


def _row_of(problem: Problem, place: int) -> dict[str, object]:
    subject = problem.subject
    row: dict[str, object] = {name: getattr(problem, name) for name in _PLAIN}
    row |= {"place": place, "severity": str(problem.severity)}
    row |= {"confidence": str(problem.confidence), "queue_id": subject.queue}
    row |= {name: getattr(subject, name) for name in _SUBJECT}
    row["message"] = subject.message
    row["impact"] = [f"{name}={number}" for name, number in problem.impact.items()]
    row["state"] = None if problem.state is None else str(problem.state)
    row["first_time"], row["last_time"] = problem.first_time // 1000, problem.last_time // 1000
    row["evidence"] = [
        " ".join(
            (
                text_of_time(evidence.time),
                evidence.capture,
                f"packet {evidence.packet}"
                if evidence.packet is not None
                else f"conversation {evidence.conversation}",
                evidence.what,
            )
        )
        for evidence in problem.evidence
    ]
    return row


_ROWS, _CONNECTION, _MESSAGE = range(3)
_BLOCK: Final = 128
"""most exchanges per block: larger ones have few more values in common"""
_BLOCK_BYTES: Final = 1 << 16
"""most bytes per block of several exchanges: a Spark worker gets ten thousand items at once"""


# Most values of a column are equal: a row for each exchange and rule would take four times the
# bytes and three times the CPU.
class _Block(msgspec.Struct, array_like=True, gc=False):
    """Exchanges for the states of some rules."""

    rules: tuple[str, ...]
    """rule ids"""
    of_flow: bool
    """the key depends only on the flow of an exchange"""
    count: int
    """rows"""
    columns: list[tuple[Any, ...]]
    """values by field of `ExchangeRecord`; a single value applies to all rows"""


_PLACE: Final = (TableColumn(SOURCE, "string", "", ""), TableColumn("host", "string", "", ""))


class _Row(msgspec.Struct, array_like=True, gc=False):
    """A connection, or a message with its attempts, for the state of a rule."""

    rule: str
    row: msgspec.Raw


_BLOCKS: Final = msgspec.json.Decoder(_Block)
_ROW: Final = msgspec.json.Decoder(_Row)
_CONNECTIONS: Final = msgspec.json.Decoder(ConversationRecord)
_MESSAGES: Final = msgspec.json.Decoder(ObservedMessage)


class FoundProblems(msgspec.Struct, gc=False):
    """Problems found by rules."""

    problems: list[Problem] = []

    def merge(self, other: FoundProblems) -> None:
        """Merge the problems of other keys."""
        self.problems += other.problems


# -- rows to rules --------------------------------------------------------------------------------


def _item(rule: str, key: str, at: int, kind: int, row: object) -> Item:
    return Item(key, at, kind, f'["{rule}",{json_text_of(row)}]')


def _exchange_items(rows: list[ExchangeRecord], known: Known) -> Iterator[Item]:  # noqa: ARG001
    takers = Takers(rules())
    flows: dict[Flow, list[ExchangeRecord]] = {}
    for row in rows:
        flows.setdefault(flow_of(row), []).append(row)
    chosen_rows: dict[tuple[str, tuple[str, ...], bool], list[ExchangeRecord]] = {}
    for flow, several in flows.items():
        of_key: dict[str, list[str]] = {}
        for one, rule in takers.of(several[0]):
            if one.of_flow:  # the key is the same for all exchanges of the flow
                key = one.key(several[0])
                if key is not None:
                    of_key.setdefault(key, []).append(rule.id)
            elif not (one.with_facts and flow.plain):
                for row in several:
                    key = one.key(row)
                    if key is not None:
                        chosen_rows.setdefault((key, (rule.id,), False), []).append(row)
        for key, ids in of_key.items():
            chosen_rows.setdefault((key, tuple(ids), True), []).extend(several)
    for (key, names, of_flow), chosen in chosen_rows.items():
        for begin in range(0, len(chosen), _BLOCK):
            yield from _blocks(key, names, of_flow, chosen[begin : begin + _BLOCK])


def _blocks(
    key: str, names: tuple[str, ...], of_flow: bool, rows: Sequence[ExchangeRecord]
) -> Iterator[Item]:
    """Yield rows as one item, or as several if they are long."""
    columns = [
        column[:1] if column.count(column[0]) == len(column) else column
        for column in zip(*map(msgspec.structs.astuple, rows), strict=True)
    ]
    block = json_text_of(_Block(names, of_flow, len(rows), columns))
    if len(block) > _BLOCK_BYTES and len(rows) > 1:
        half = len(rows) // 2
        yield from _blocks(key, names, of_flow, rows[:half])
        yield from _blocks(key, names, of_flow, rows[half:])
    else:
        yield Item(key, min(row.request_time or 0 for row in rows), _ROWS, block)


def _connection_items(rows: list[ConversationRecord], known: Known) -> Iterator[Item]:  # noqa: ARG001
    takers = [(rule.connections, rule) for rule in rules() if rule.connections is not None]
    for row in rows:
        for key_of, rule in takers:
            key = key_of(row)
            if key is not None:
                yield _item(rule.id, key, row.start_time, _CONNECTION, row)


def _message_items(report_input: ReportInput, known: Known) -> Relation:
    """Return the messages that need analysis, for the rules that judge messages."""
    kept = report_input.kept
    names = broker_names(report_input)
    produced = without_inner(report_input)
    failures = None
    if report_input.conversations is not None:
        failures = sends.connect_failures(report_input.conversations, names)
    flagged = flagged_keys(produced, names, failures, DEFAULT_TIMEOUT_US)
    # a single send that was stored in time, or expects no response, concerns no rule
    quick = (
        f"(coalesce(if(`call`, response_code in {numbers(send_codes.STORED)},"
        f" response_code in {numbers(STORED)})"
        f" and latency_us <= {long_us(DEFAULT_TIMEOUT_US)}, false) or status = 'oneway')"
    )
    others = produced.where(f"unique_key is not null and not {quick}")
    repeated = kept.noted(kept.engine.repeated(flagged))
    keys = repeated.union(others.select(f"{sends.KEY} as key")).distinct()
    chosen = report_input.exchanges.where(
        f"(request_code in {numbers(SENDS)} or {sends.CALL}) and unique_key is not null"
        f" and status != 'orphan' and request_time is not null and not {sends.OF_CONSUMERS}"
    ).join(keys, f"{sends.KEY} = key", "left semi", small=True)
    # The proxy's own requests show the outcome of a message if the call does not.
    of_message = f"partition by {sends.KEY} order by if({sends.CALL}, 0, 1), request_time"
    hosts = {
        "host": f"if(max({sends.CALL}) over (partition by {sends.KEY}),"
        f" first_value({sends.HOST}) over ({of_message}), {sends.HOST})"
    }
    placed = without_inner(report_input, chosen, of_calls=False).adding(hosts)
    names_of_ports = known.context.names_of_ports()
    hosted = _connections_of(report_input, placed)
    return kept.noted(
        kept.engine.by_groups(
            placed, hosted, "host", lambda sent, hops: _stitched(sent, hops, names_of_ports), ITEM
        )
    )


def _connections_of(report_input: ReportInput, placed: Relation) -> Relation:
    """Return the connections of some sends, and those that failed, with `host`."""
    if report_input.conversations is None:
        return report_input.kept.empty([*CONVERSATION_COLUMNS, *_PLACE])
    where = placed.select(SOURCE, "conversation").distinct()
    used = report_input.conversations.join(where, [SOURCE, "conversation"], "left semi")
    failed = report_input.conversations.where(sends.NEVER_OPENED)
    return used.union(failed).adding({"host": derived.address_of("client_address")})


def _stitched(
    sent: pyarrow.Table, connections: pyarrow.Table, names: dict[str, str]
) -> pyarrow.Table:
    """Return the attempts of one host as message items; `names` maps addresses to brokers."""
    store = AttemptStore()
    rows: dict[MessageIdentity, list[tuple[str, ExchangeRecord]]] = {}
    for batch in sent.to_batches():
        sources = map(str, batch.column(SOURCE).to_pylist())
        for source, row in zip(sources, exchanges_in(batch), strict=True):
            rows.setdefault((row.unique_key or "", row.topic), []).append((source, row))
    for batch in connections.to_batches():
        sources = map(str, batch.column(SOURCE).to_pylist())
        for source, connection in zip(sources, connections_in(batch), strict=True):
            store.source = source
            store.add_connection(connection)
    for identity, message_rows in rows.items():
        store.keep(identity, message_rows)
    takers = [(rule.messages, rule) for rule in rules() if rule.messages is not None]
    return arrow_items(
        _item(rule.id, key, message.attempts[0].begin, _MESSAGE, message)
        for message in store.messages(names)
        for key_of, rule in takers
        if (key := key_of(message)) is not None
    )


# -- folds ----------------------------------------------------------------------------------------


def _fold(items: Iterable[Item], known: Known) -> FoundProblems:
    """Return the problems of items sorted by key."""
    result = FoundProblems()
    for key, of_key in groupby(items, lambda item: item.key):
        states = _States(key)
        for item in of_key:
            states.add(item)
        result.problems += states.problems(known)
    return result


class _States:
    """The states of all rules for one key."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._states: dict[str, _State] = {}
        self._adders: dict[tuple[tuple[str, ...], Flow], list[Add]] = {}

    def _of(self, rule: str) -> _State:
        state = self._states.get(rule)
        if state is None:
            state = self._states[rule] = _State(rule, self.key)
        return state

    def add(self, item: Item) -> None:
        """Add the rows of an item."""
        if item.then == _ROWS:
            self._take(_BLOCKS.decode(item.text))
            return
        row = _ROW.decode(item.text)
        state = self._of(row.rule)
        if item.then == _CONNECTION:
            state.fold.add_connection(_CONNECTIONS.decode(row.row))
        else:
            state.add_message(_MESSAGES.decode(row.row))

    def _take(self, block: _Block) -> None:
        count = block.count
        columns = (
            repeat(values[0], count) if len(values) < count else values for values in block.columns
        )
        rows = map(ExchangeRecord, *columns)
        if not block.of_flow:
            several = list(rows)
            for name in block.rules:
                self._of(name).fold.add_exchanges(several)
            return
        flows: dict[Flow, FlowRows] = {}
        for row in rows:
            flow = flow_of(row)
            if flow not in flows:
                flows[flow] = FlowRows()
            flows[flow].append(row)
        for flow, of_flow in flows.items():
            adders = self._adders.get((block.rules, flow))
            if adders is None:
                # Flows contain names that a peer chooses, so their number has no limit of its own.
                if len(self._adders) >= MAX_FLOWS:
                    self._adders.clear()
                adders = [self._of(name).fold.adder_of(flow) for name in block.rules]
                self._adders[block.rules, flow] = adders
            for add in adders:
                add(of_flow)

    def problems(self, known: Known) -> list[Problem]:
        """Return the problems of all rules."""
        return [problem for state in self._states.values() for problem in state.problems(known)]


class _State:
    """The state of one rule for one key; messages may be folded separately."""

    def __init__(self, rule: str, key: str) -> None:
        definition = rule_of(rule)
        assert definition is not None
        self.rule, self.key = definition, key
        self._fold: Fold | None = None
        self._messages: list[ObservedMessage] = []

    @property
    def fold(self) -> Fold:
        """Return the state of exchanges and connections."""
        if self._fold is None:
            self._fold = self.rule.new_fold(self.key)
        return self._fold

    def add_message(self, message: ObservedMessage) -> None:
        """Add a message with its attempts."""
        if self.rule.joined_messages:
            self.fold.add_message(message)
        else:
            self._messages.append(message)

    def problems(self, known: Known) -> list[Problem]:
        """Return the problems of the rule."""
        folds = folds_of_messages(self.rule, self.key, self._messages)
        if self._fold is not None:
            folds.append(self._fold)
        return found_by(self.rule, folds, known.context)


def _tables(result: FoundProblems, known: Known) -> dict[str, list[dict[str, object]]]:
    """Return all problems, grouped into incidents, as rows of both tables."""
    limits: list[str] = []
    asked = [] if known.asked is None else [known.asked]
    problems = wanted(merged(result.problems, limits), asked, known.context)
    return rows_of(concluded(rules(), problems, known.context, limits))


FOLDING: Final = Folding(
    exchanges=_exchange_items,
    fold=_fold,
    sums=FoundProblems,
    merge=FoundProblems.merge,
    tables=_tables,
    connections=_connection_items,
    more=_message_items,
)

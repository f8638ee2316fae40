"""The rules of the diagnosis as a keyed fold: rows to (rule, key), each of which one state takes.

Rules: rows travel as JSON. Attempts of messages are stitched host by host, from the sends that the
query of the retry report chooses, so that few rows go there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from dissectors.remoting.code_sets import SENDS, STORED
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord, MessageIdentity

from .. import derived
from ..consuming.items import Item
from ..consuming.known import Known
from ..diagnosis.engine import concluded, folds_of_messages, found_by
from ..diagnosis.incidents import merged
from ..diagnosis.messages import LONG_US, AttemptStore, ObservedMessage
from ..diagnosis.problem import Problem
from ..diagnosis.registry import rule_of, rules, takers_of
from ..diagnosis.rule import Fold
from ..inputs.rows import connections_in, exchanges_in, json_text_of
from ..report import ReportInput
from ..schema import SOURCE
from ..sends import sends
from ..sends.broker_names import broker_names
from ..sends.telling import flagged_keys
from ..sql.expressions import numbers
from ..sql.relation import Relation
from .diagnosis_tables import rows_of
from .folding import ITEM, Folding, arrow_items

if TYPE_CHECKING:
    import pyarrow

_EXCHANGE, _CONNECTION, _MESSAGE = range(3)
_DECODERS: Final[tuple[msgspec.json.Decoder[object], ...]] = tuple(
    msgspec.json.Decoder(type_) for type_ in (ExchangeRecord, ConversationRecord, ObservedMessage)
)
"""by what an item is"""
_SEPARATOR: Final = "\x00"
"""between the id of a rule and a key, which may have it, too"""


class FoundProblems(msgspec.Struct, gc=False):
    """What rules found."""

    problems: list[Problem] = []

    def merge(self, other: FoundProblems) -> None:
        """Add what was found of other keys."""
        self.problems += other.problems


# -- rows to rules --------------------------------------------------------------------------------


def _item(rule: str, key: str, at: int, kind: int, text: str) -> Item:
    return Item(f"{rule}{_SEPARATOR}{key}", at, kind, text)


def _exchange_items(rows: list[ExchangeRecord], known: Known) -> Iterator[Item]:  # noqa: ARG001
    takers = takers_of(rules())
    for row in rows:
        text = None
        for one, rule in takers.of(row):
            key = one.key(row)
            if key is not None:
                text = text or json_text_of(row)
                yield _item(rule.id, key, row.request_time or 0, _EXCHANGE, text)


def _connection_items(rows: list[ConversationRecord], known: Known) -> Iterator[Item]:  # noqa: ARG001
    takers = [(rule.connections, rule) for rule in rules() if rule.connections is not None]
    for row in rows:
        for key_of, rule in takers:
            key = key_of(row)
            if key is not None:
                yield _item(rule.id, key, row.start_time, _CONNECTION, json_text_of(row))


def _message_items(given: ReportInput, known: Known) -> Relation:
    """Return the messages that need a closer look, for the rules that take messages."""
    names = broker_names(given)
    produced = sends.sends_of(given.exchanges)
    failures = None
    if given.conversations is not None:
        failures = sends.connect_failures(given.conversations, names)
    flagged = flagged_keys(produced, names, failures, LONG_US * 10 // 9)
    quick = (
        f"(coalesce(response_code in {numbers(STORED)} and latency_us <= {LONG_US}, false)"
        " or status = 'oneway')"
    )
    others = produced.where(f"unique_key is not null and not {quick}")
    repeated = given.kept.repeated(flagged)
    keys = repeated.union(others.select(f"{sends.KEY} as key")).distinct()
    chosen = given.exchanges.where(
        f"request_code in {numbers(SENDS)} and unique_key is not null and status != 'orphan'"
        f" and request_time is not null and not {sends.OF_CONSUMERS}"
    ).join(keys, f"{sends.KEY} = key", "left semi", small=True)
    placed = chosen.adding({"host": sends.HOST})
    names_of_ports = known.context.names_of_ports()
    if given.conversations is None:
        return given.kept.by_group(
            placed, "host", lambda sent: _stitched(sent, None, names_of_ports), ITEM
        )
    where = placed.select(SOURCE, "conversation").distinct()
    used = given.conversations.join(where, [SOURCE, "conversation"], "left semi")
    failed = given.conversations.where(sends.NEVER_OPENED)
    hosted = used.union(failed).adding({"host": derived.address_of("client")})
    return given.kept.by_groups(
        placed, hosted, "host", lambda sent, some: _stitched(sent, some, names_of_ports), ITEM
    )


def _stitched(
    sent: pyarrow.Table, connections: pyarrow.Table | None, names: dict[str, str]
) -> pyarrow.Table:
    """Return the attempts of one host as items of messages; `names` are brokers by address."""
    store = AttemptStore()
    rows: dict[MessageIdentity, list[tuple[str, ExchangeRecord]]] = {}
    for batch in sent.to_batches():
        sources = map(str, batch.column(SOURCE).to_pylist())
        for source, row in zip(sources, exchanges_in(batch), strict=True):
            rows.setdefault((row.unique_key or "", row.topic), []).append((source, row))
    for batch in connections.to_batches() if connections is not None else ():
        sources = map(str, batch.column(SOURCE).to_pylist())
        for source, connection in zip(sources, connections_in(batch), strict=True):
            store.source = source
            store.add_connection(connection)
    for identity, one in rows.items():
        store.keep(identity, one)
    takers = [(rule.messages, rule) for rule in rules() if rule.messages is not None]
    return arrow_items(
        _item(rule.id, key, message.attempts[0].begin, _MESSAGE, json_text_of(message))
        for message in store.messages(names)
        for key_of, rule in takers
        if (key := key_of(message)) is not None
    )


# -- folds ----------------------------------------------------------------------------------------


def _fold(items: Iterable[Item], known: Known) -> FoundProblems:
    """Return the problems of items that are sorted by rule and key."""
    found = FoundProblems()
    state: _State | None = None
    key = ""
    for item in items:
        if state is None or item.key != key:
            if state is not None:
                found.problems += state.problems(known)
            key, state = item.key, _State(item.key)
        state.add(item)
    if state is not None:
        found.problems += state.problems(known)
    return found


class _State:
    """What one rule makes of the rows of one key; messages may be folded apart."""

    def __init__(self, key: str) -> None:
        name, _, self.key = key.partition(_SEPARATOR)
        found = rule_of(name)
        assert found is not None
        self.rule = found
        self._fold: Fold | None = None
        self._messages: list[ObservedMessage] = []

    def add(self, item: Item) -> None:
        """Take a row."""
        value: object = _DECODERS[item.then].decode(item.text)
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

    def problems(self, known: Known) -> list[Problem]:
        """Return what was found."""
        folds = folds_of_messages(self.rule, self.key, self._messages)
        if self._fold is not None:
            folds.append(self._fold)
        return found_by(self.rule, folds, known.context)


def _tables(found: FoundProblems, known: Known) -> dict[str, list[dict[str, object]]]:
    """Return all problems, in incidents, as rows of both tables."""
    limits: list[str] = []
    problems = merged(found.problems, limits)
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

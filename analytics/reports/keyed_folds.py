"""Runs keyed folds (`folding`) over an input: here by the local engine, else by Spark's tasks.

Rules: what a fold needs of the rest of the input (`Known`) is small and made first, by the one
query that a report executes while it is built; reports share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from ..consuming.items import Item
from ..consuming.known import KNOWN_BY, Known
from ..inputs.rows import connections_in, exchanges_in, messages_in
from ..report import ReportInput, ReportTable
from ..sql.expressions import numbers
from ..sql.relation import Relation
from .folding import SHARE, Folding

T = TypeVar("T")


def known_of(given: ReportInput) -> Known:
    """Return what all rows together say; runs a job unless another report has."""
    return given.kept.once(SHARE, (), lambda: _known_of(given))


def _known_of(given: ReportInput) -> Known:
    if given.is_distributed:
        from .folding_on_spark import known_by_tasks

        return known_by_tasks(given)
    known = Known(with_connections=given.conversations is not None)
    for batch in given.kept.engine.batches(given.exchanges.select(*KNOWN_BY)):
        known.add_exchanges(exchanges_in(batch))
    return known


def folded(
    given: ReportInput, folding: Folding[T], known: Known, tables: Iterable[ReportTable]
) -> Mapping[str, Relation]:
    """Return the tables."""
    exchanges = given.exchanges
    if folding.requests is not None:
        exchanges = exchanges.where(f"request_code in {numbers(folding.requests)}")
    if given.is_distributed:
        from .folding_on_spark import folded_by_tasks

        return folded_by_tasks(given, exchanges, folding, known, tables)
    items = sorted(_items(given, exchanges, folding, known))
    return here(given, folding.tables(folding.fold(items, known), known), tables)


def here(
    given: ReportInput,
    rows: Mapping[str, list[dict[str, object]]],
    tables: Iterable[ReportTable],
) -> Mapping[str, Relation]:
    """Return tables whose rows this process has."""
    return {
        table.name: given.kept.here(rows.get(table.name, []), table.columns) for table in tables
    }


def _items(
    given: ReportInput, exchanges: Relation, folding: Folding[T], known: Known
) -> Iterator[Item]:
    batches = given.kept.engine.batches
    for batch in batches(exchanges):
        yield from folding.exchanges(exchanges_in(batch), known)
    if folding.messages is not None and given.messages is not None:
        for batch in batches(given.messages):
            yield from folding.messages(messages_in(batch), known)
    if folding.connections is not None and given.conversations is not None:
        for batch in batches(given.conversations):
            yield from folding.connections(connections_in(batch), known)

"""Run keyed folds (`folding`) over an input, locally or in Spark tasks.

The facts that a fold needs from the whole input (`Known`) are small and computed first; reports
share them.
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
from .folding import SHARE, Folding, here

T = TypeVar("T")


def known_of(report_input: ReportInput) -> Known:
    """Return the shared facts of all rows; runs a job unless cached."""
    return report_input.kept.once(SHARE, (), lambda: _known_of(report_input))


def _known_of(report_input: ReportInput) -> Known:
    if report_input.is_distributed:
        from .folding_on_spark import known_by_tasks

        return known_by_tasks(report_input)
    known = Known(with_connections=report_input.conversations is not None)
    for batch in report_input.kept.engine.batches(report_input.exchanges.select(*KNOWN_BY)):
        known.add_exchanges(exchanges_in(batch))
    return known


def folded(
    report_input: ReportInput, folding: Folding[T], known: Known, tables: Iterable[ReportTable]
) -> Mapping[str, Relation]:
    """Return the tables."""
    exchanges = report_input.exchanges
    if folding.requests is not None:
        exchanges = exchanges.where(f"request_code in {numbers(folding.requests)}")
    if report_input.is_distributed:
        from .folding_on_spark import folded_by_tasks

        return folded_by_tasks(report_input, exchanges, folding, known, tables)
    # All items in memory: beyond LOCAL_ROWS exchanges, Spark is the default.
    items = sorted(_items(report_input, exchanges, folding, known))
    return here(report_input, folding.tables(folding.fold(items, known), known), tables)


def _items(
    report_input: ReportInput, exchanges: Relation, folding: Folding[T], known: Known
) -> Iterator[Item]:
    batches = report_input.kept.engine.batches
    for batch in batches(exchanges):
        yield from folding.exchanges(exchanges_in(batch), known)
    if folding.messages is not None and report_input.messages is not None:
        for batch in batches(report_input.messages):
            yield from folding.messages(messages_in(batch), known)
    if folding.connections is not None and report_input.conversations is not None:
        for batch in batches(report_input.conversations):
            yield from folding.connections(connections_in(batch), known)

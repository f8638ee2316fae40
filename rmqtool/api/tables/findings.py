"""The table of findings about the capture itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final

from dissectors.decode.decoded_log import FINDING_COLUMNS, FindingRecord, finding_of
from dissectors.decode.pipeline import Decode
from dissectors.findings import FindingKind
from dissectors.where.fields import FieldSet, field_of_column

from .table import Table


def _batches(decode: Decode) -> Iterator[Sequence[FindingRecord]]:
    for _ in decode.records():
        yield [finding_of(info, decode.sources) for info in decode.take_findings()]
    yield [finding_of(info, decode.sources) for info in decode.take_findings()]


def _fields(_captures: Sequence[str]) -> FieldSet:
    fields = [field_of_column(c.name, c.type, c.unit, attrgetter(c.name)) for c in FINDING_COLUMNS]
    kinds = [
        replace(field, known=lambda: FindingKind.__members__) if field.name == "kind" else field
        for field in fields
    ]
    return FieldSet(kinds)


FINDINGS: Final[Table[FindingRecord]] = Table(
    "findings", FINDING_COLUMNS, _batches, _fields, lambda row: row.time, windowed=False
)

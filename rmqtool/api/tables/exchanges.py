"""The table of exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dissectors.rows.record import COLUMNS, ExchangeRecord

from .table import Table

if TYPE_CHECKING:
    from dissectors.where.fields import FieldSet


def time_of_exchange(row: ExchangeRecord) -> int | None:
    """Return the time of the request, or of the response if the request is missing."""
    return row.request_time if row.request_time is not None else row.response_time


def _fields(_captures: Sequence[str]) -> FieldSet:
    from dissectors.where.fields import exchange_fields

    return exchange_fields()


EXCHANGES: Final[Table[ExchangeRecord]] = Table(
    "exchanges", COLUMNS, lambda decode: decode.records(), _fields, time_of_exchange
)

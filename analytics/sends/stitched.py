"""The attempts of an input, stitched together once for the retry and isolation reports.

Rules: only messages that need it are looked at one by one (`suspects`, `telling`); all
other sends are one attempt each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from ..report import ReportInput
from ..schema import schema_of
from ..spark.expressions import adding, grouped
from . import sends
from .attempt_table import ATTEMPT_COLUMNS, MESSAGE_COLUMNS, attempts_here, with_attempts
from .attempts import DEFAULT_TIMEOUT_US
from .broker_names import broker_names
from .chains import Limits
from .hops import has_relays, with_what_brokers_said, without_inner
from .suspects import failures_of, suspects
from .telling import telling_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STITCHED = "stitched attempts"
"""The share of `ReportInput.kept` that these are."""

COUNTED = (
    *("queue_id", "topic", "responder", "host", "process", "group", "capture", "call", "status"),
    *("response_code", "response_name", "language", "version_name"),
)
"""What sends are counted by, once for all tables that count them."""


class Stitched(NamedTuple):
    """The sends of producers, and the attempts of those messages that need a closer look."""

    sends: DataFrame
    """all sends of clients, see `hops.without_inner`"""
    names: DataFrame
    """names of the brokers, see `broker_names`"""
    keys: DataFrame
    """`sends.KEY` of the messages that need it"""
    telling: DataFrame
    """the sends of these, see `sends.described`"""
    attempts: DataFrame
    """MESSAGE_COLUMNS and ATTEMPT_COLUMNS"""
    counts: DataFrame
    """the sends by COUNTED, and `times`: how many"""


def stitched(given: ReportInput, limits: Limits) -> Stitched:
    """Return the sends of an input and the attempts of those messages that need a look, once."""
    return given.kept.once(STITCHED, limits, lambda: _stitched(given, limits))


def _stitched(given: ReportInput, limits: Limits) -> Stitched:
    def kept(frame: DataFrame) -> DataFrame:  # few rows, and asked for by every table
        return given.kept.frame(frame, STITCHED)

    names = broker_names(given)
    produced = without_inner(given)
    failures = failures_of(given, names)
    keys, described = _telling(given, produced, names, failures, limits)
    telling = with_what_brokers_said(given, described, STITCHED)
    connected = sends.with_connections(telling, given.conversations)
    if given.small:
        rows = attempts_here(connected, failures, limits)
        schema = schema_of((*MESSAGE_COLUMNS, *ATTEMPT_COLUMNS))
        attempts = given.kept.here(given.exchanges.sparkSession, rows, schema, STITCHED)
    else:
        attempts = kept(with_attempts(connected, failures, limits))
    return Stitched(produced, names, keys, telling, attempts, _counts(given, produced))


def _counts(given: ReportInput, produced: DataFrame) -> DataFrame:
    """Return `Stitched.counts`; those of a small input are the sends themselves."""
    placed = adding(produced, {"host": sends.HOST, "process": sends.PROCESS})
    if given.small:
        return adding(placed, {"times": "1L"})
    return given.kept.frame(grouped(placed, COUNTED, {"times": "count(*)"}), STITCHED)


def _telling(
    given: ReportInput,
    produced: DataFrame,
    names: DataFrame,
    failures: DataFrame | None,
    limits: Limits,
) -> tuple[DataFrame, DataFrame]:
    """Return `Stitched.keys` and these sends, described: suspects where they are the same."""
    usual = limits.timeout_us == DEFAULT_TIMEOUT_US
    if not given.small and usual and not has_relays(given):
        keys, described = suspects(given)
        if described is not None:
            return keys, described
    else:
        keys = given.kept.frame(
            telling_keys(produced, names, failures, limits.timeout_us, given.small), STITCHED
        )
    chosen = produced.join(F.broadcast(keys), F.expr(f"{sends.KEY} = key"), "left_semi")
    return keys, given.kept.frame(sends.described(chosen, names), STITCHED)

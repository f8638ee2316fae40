"""Attempts of an input, combined once for the retry and isolation reports.

Rules: only messages that need it are analyzed individually (`suspects`, `telling`); all other sends
are one attempt each.
"""

from __future__ import annotations

from typing import NamedTuple

from ..report import ReportInput, column_names
from ..sql.relation import Relation
from . import sends
from .attempt_table import with_attempts
from .attempts import DEFAULT_TIMEOUT_US
from .broker_names import broker_names
from .chains import Limits
from .hops import has_relays, with_broker_outcomes, without_inner
from .suspects import failures_of, flagged_keys, suspects

STITCHED = "stitched attempts"
"""The share of `ReportInput.kept` that these are."""

COUNTED = column_names(
    "queue_id topic server_address host process group capture call outcome_class response_name"
    " language version_name"
)
"""Columns to group counted sends by, shared by all tables that count them."""


class Stitched(NamedTuple):
    """The sends of producers, and the attempts of messages that need analysis."""

    sends: Relation
    """all sends of clients, see `hops.without_inner`"""
    names: Relation
    """broker names, see `broker_names`"""
    keys: Relation
    """`sends.KEY` of messages that need analysis"""
    telling: Relation
    """sends of these messages, see `sends.described`"""
    attempts: Relation
    """MESSAGE_COLUMNS and ATTEMPT_COLUMNS"""
    counts: Relation
    """sends grouped by COUNTED, with `times` (sends), `messages`, and their `first` and `last`"""


def stitched(report_input: ReportInput, limits: Limits) -> Stitched:
    """Return the sends of an input and the analyzed attempts, computed once."""
    return report_input.kept.once(STITCHED, limits, lambda: _stitched(report_input, limits))


def _stitched(report_input: ReportInput, limits: Limits) -> Stitched:
    names = broker_names(report_input)
    # A relay repeats a send on its own connection: it would count as a second attempt.
    produced = without_inner(report_input)
    failures = failures_of(report_input, names)
    keys, described = _telling(report_input, produced, names, failures, limits)
    telling = with_broker_outcomes(report_input, described, STITCHED)
    connected = sends.with_connections(telling, report_input.conversations)
    attempts = with_attempts(report_input.kept, connected, failures, limits, STITCHED)
    return Stitched(produced, names, keys, telling, attempts, _counts(report_input, produced))


def _counts(report_input: ReportInput, produced: Relation) -> Relation:
    """Return `Stitched.counts`."""
    counted = {
        "times": "count(*)",
        "messages": f"sum({sends.MESSAGES})",
        "first": "min(request_time)",
        "last": "max(request_time)",
    }
    placed = produced.adding({"host": sends.HOST, "process": sends.PROCESS})
    return report_input.kept.frame(placed.grouped(COUNTED, counted), STITCHED)


def _telling(
    report_input: ReportInput,
    produced: Relation,
    names: Relation,
    failures: Relation | None,
    limits: Limits,
) -> tuple[Relation, Relation]:
    """Return `Stitched.keys` and their described sends, reusing equal suspects."""
    # `suspects` assumes the default timeout, and keeps the sends of relays
    usual = limits.timeout_us == DEFAULT_TIMEOUT_US
    if usual and not has_relays(report_input):
        keys, described = suspects(report_input)
        if described is not None:
            return keys, described
    else:
        flagged = flagged_keys(produced, names, failures, limits.timeout_us)
        keys = report_input.kept.noted(report_input.kept.engine.repeated(flagged), STITCHED)
    chosen = produced.join(keys, f"{sends.KEY} = key", "left semi", small=True)
    return keys, report_input.kept.frame(sends.described(chosen, names), STITCHED)

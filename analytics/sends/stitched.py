"""The attempts of an input, stitched together once for the retry and isolation reports.

Rules: only messages that need it are looked at one by one (`suspects`, `telling`); all
other sends are one attempt each.
"""

from __future__ import annotations

from typing import NamedTuple

from ..report import ReportInput
from ..sql.relation import Relation
from . import sends
from .attempt_table import with_attempts
from .attempts import DEFAULT_TIMEOUT_US
from .broker_names import broker_names
from .chains import Limits
from .hops import has_relays, with_what_brokers_said, without_inner
from .suspects import failures_of, suspects
from .telling import flagged_keys

STITCHED = "stitched attempts"
"""The share of `ReportInput.kept` that these are."""

COUNTED = (
    *("queue_id", "topic", "responder", "host", "process", "group", "capture", "call"),
    *("outcome_class", "response_name", "language", "version_name"),
)
"""What sends are counted by, once for all tables that count them."""


class Stitched(NamedTuple):
    """The sends of producers, and the attempts of those messages that need a closer look."""

    sends: Relation
    """all sends of clients, see `hops.without_inner`"""
    names: Relation
    """names of the brokers, see `broker_names`"""
    keys: Relation
    """`sends.KEY` of the messages that need it"""
    telling: Relation
    """the sends of these, see `sends.described`"""
    attempts: Relation
    """MESSAGE_COLUMNS and ATTEMPT_COLUMNS"""
    counts: Relation
    """the sends by COUNTED, with `times`: how many, and their `messages`"""


def stitched(given: ReportInput, limits: Limits) -> Stitched:
    """Return the sends of an input and the attempts of those messages that need a look, once."""
    return given.kept.once(STITCHED, limits, lambda: _stitched(given, limits))


def _stitched(given: ReportInput, limits: Limits) -> Stitched:
    names = broker_names(given)
    produced = without_inner(given)
    failures = failures_of(given, names)
    keys, described = _telling(given, produced, names, failures, limits)
    telling = with_what_brokers_said(given, described, STITCHED)
    connected = sends.with_connections(telling, given.conversations)
    attempts = with_attempts(given.kept, connected, failures, limits, STITCHED)
    return Stitched(produced, names, keys, telling, attempts, _counts(given, produced))


def _counts(given: ReportInput, produced: Relation) -> Relation:
    """Return `Stitched.counts`."""
    counted = {"times": "count(*)", "messages": f"sum({sends.MESSAGES})"}
    placed = produced.adding({"host": sends.HOST, "process": sends.PROCESS})
    return given.kept.frame(placed.grouped(COUNTED, counted), STITCHED)


def _telling(
    given: ReportInput,
    produced: Relation,
    names: Relation,
    failures: Relation | None,
    limits: Limits,
) -> tuple[Relation, Relation]:
    """Return `Stitched.keys` and these sends, described: suspects where they are the same."""
    usual = limits.timeout_us == DEFAULT_TIMEOUT_US
    if usual and not has_relays(given):
        keys, described = suspects(given)
        if described is not None:
            return keys, described
    else:
        flagged = flagged_keys(produced, names, failures, limits.timeout_us)
        keys = given.kept.repeated(flagged, STITCHED)
    chosen = produced.join(keys, f"{sends.KEY} = key", "left semi", small=True)
    return keys, given.kept.frame(sends.described(chosen, names), STITCHED)

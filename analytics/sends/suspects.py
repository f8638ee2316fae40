"""Sends that need a closer look, found once for all that take one: relays, retries, isolation.

Rules: a message is looked at if more than one request had its UNIQ_KEY, as on both sides of a relay
too, or if `telling.telling_keys` says so. Of a large input these are few, and what is asked of them
is asked without another look at all exchanges.
"""

from __future__ import annotations

from typing import NamedTuple

from ..report import ReportInput
from ..sql.relation import Relation
from . import sends
from .attempts import DEFAULT_TIMEOUT_US
from .broker_names import broker_names
from .telling import flagged_keys
from .unavailable import failed_connects

SUSPECTS = "suspect sends"
"""The share of `ReportInput.kept` that these are."""


class Suspects(NamedTuple):
    """The messages, and their sends with those that relays made."""

    keys: Relation
    """`sends.KEY` of each"""
    sends: Relation | None
    """`sends.described`; None: there are too many to keep all columns"""


def suspects(given: ReportInput) -> Suspects:
    """Return the suspects of an input, by the timeout that clients have by default."""
    return given.kept.once(SUSPECTS, None, lambda: _suspects(given))


def _suspects(given: ReportInput) -> Suspects:
    names = broker_names(given)
    failures = failures_of(given, names)
    every = sends.sends_and_calls_of(given.exchanges)
    flagged = flagged_keys(every, names, failures, DEFAULT_TIMEOUT_US)
    keys = given.kept.repeated(flagged, SUSPECTS)
    if keys.rows is None:
        return Suspects(keys, None)
    chosen = sends.described(sends.sends_and_calls_of(given.exchanges, keys), names)
    return Suspects(keys, given.kept.frame(chosen, SUSPECTS))


def failures_of(given: ReportInput, names: Relation) -> Relation | None:
    """Return the connects to brokers that failed; None: unknown, or there are none."""
    failed = failed_connects(given)
    if given.conversations is None or failed is None or given.kept.is_empty(failed):
        return None
    return sends.connect_failures(given.conversations, names)

"""Sends that need analysis, selected once for relays, retries, and isolation.

A message is selected if several requests share its UNIQ_KEY (including both sides of a relay), or
if one of its sends failed, was answered late, or started soon after a failed connect of the same
host. All others are one attempt each.
"""

from __future__ import annotations

from typing import NamedTuple

from ..report import ReportInput
from ..sql.relation import Relation
from . import sends
from .attempts import DEFAULT_TIMEOUT_US, SOON_US, long_us
from .broker_names import broker_names, with_names
from .unavailable import failed_connects

SUSPECTS = "suspect sends"
"""The share of `ReportInput.kept` that these are."""
_AFTER_S = SOON_US // 1_000_000
"""Seconds between a failed connect and the send of its message."""


class Suspects(NamedTuple):
    """The selected messages, and their sends including those of relays."""

    keys: Relation
    """`sends.KEY` of each message"""
    sends: Relation | None
    """`sends.described`; None: too many to keep all columns"""


def suspects(report_input: ReportInput) -> Suspects:
    """Return the suspects of an input, assuming the default timeout of clients."""
    return report_input.kept.once(SUSPECTS, None, lambda: _suspects(report_input))


def _suspects(report_input: ReportInput) -> Suspects:
    names = broker_names(report_input)
    failures = failures_of(report_input, names)
    all_sends = sends.sends_and_calls_of(report_input.exchanges)
    flagged = flagged_keys(all_sends, names, failures, DEFAULT_TIMEOUT_US)
    # numbers instead of texts: a collision selects both messages, which changes no result
    keys = report_input.kept.noted(report_input.kept.engine.repeated(flagged), SUSPECTS)
    if keys.rows is None:
        return Suspects(keys, None)
    # few in a large input: what needs them later does not scan all exchanges again
    chosen = sends.described(sends.sends_and_calls_of(report_input.exchanges, keys), names)
    return Suspects(keys, report_input.kept.frame(chosen, SUSPECTS))


def failures_of(report_input: ReportInput, names: Relation) -> Relation | None:
    """Return the failed connects to brokers, or None if there are none or they are unknown."""
    failed = failed_connects(report_input)
    if report_input.conversations is None or failed is None or report_input.kept.is_empty(failed):
        return None
    return sends.connect_failures(report_input.conversations, names)


def flagged_keys(
    all_sends: Relation, names: Relation, failures: Relation | None, timeout_us: int
) -> Relation:
    """Return `sends.KEY` of each send (`key`) and whether it is suspicious on its own (`wrong`).

    `failures` are `sends.connect_failures`.
    """
    took = "unix_micros(response_time) - unix_micros(request_time)"
    wrong = f"({sends.FAILED_ITSELF} or coalesce({took} > {long_us(timeout_us)}, false))"
    if failures is not None:
        all_sends = _with_failures(with_names(all_sends, names), failures)
        wrong = f"({wrong} or failed_host is not null)"
    return all_sends.select(f"{sends.KEY} as key", f"{wrong} as wrong")


def _with_failures(all_sends: Relation, failures: Relation) -> Relation:
    """Return sends with `failed_host`: a connect of the host failed during the send.

    A send is repeated for each such connect.
    """
    ended = _second_of("`end`")
    near = failures.select(
        "host as failed_host",
        "broker as failed_broker",
        "begin as failed_begin",
        "`end` as failed_end",
        f"explode(sequence({ended}, {ended} + {_AFTER_S})) as failed_second",
    )
    begin = "unix_micros(request_time)"
    # a failed connect counts if it began after the message was made, with 1 ms for rounding
    # The engines join by the second alone: the rest, with the costly address of the sender, is
    # evaluated only for the few matches.
    met = (
        f"{_second_of(begin)} = failed_second and array_contains(array(failed_host), {sends.HOST})"
        f" and {begin} between failed_end and failed_end + {SOON_US} and failed_broker != broker"
        " and failed_begin >= unix_micros(key_time) - 1000"
    )
    return all_sends.join(near, met, "left", small=True)


def _second_of(micros: str) -> str:
    return f"cast(floor({micros} / 1000000) as long)"

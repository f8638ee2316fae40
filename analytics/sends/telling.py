"""Which messages' attempts are looked at one by one: found among all sends of an input.

Rules: a message is looked at if more than one send of it was seen, or if one of its sends
failed, was answered late, or began soon after a connect of the same host had failed. All others
are one attempt each. Keys are compared as numbers (`sends.KEY`): two messages with one number are
both looked at, which changes no result. `Kept.repeated` finds those that are seen more than once.
"""

from __future__ import annotations

from ..sql.relation import Relation
from .attempts import SOON_US
from .births import lead_sql
from .broker_names import with_names
from .sends import FAILED_ITSELF, HOST, KEY

_AFTER_S = SOON_US // 1_000_000
"""Seconds after a failed connect in which the message must be sent."""


def flagged_keys(
    sends: Relation, names: Relation, failures: Relation | None, timeout_us: int
) -> Relation:
    """Return `sends.KEY` of each send (`key`) and whether it is looked at by itself (`wrong`).

    `failures` are `sends.connect_failures`.
    """
    took = "unix_micros(response_time) - unix_micros(request_time)"
    wrong = f"({FAILED_ITSELF} or coalesce({took} > {timeout_us * 9 // 10}, false))"
    if failures is not None:
        sends = _with_failures(with_names(sends, names), failures)
        wrong = f"({wrong} or failed_host is not null)"
    return sends.select(f"{KEY} as key", f"{wrong} as wrong")


def _with_failures(sends: Relation, failures: Relation) -> Relation:
    """Return sends with `failed_host`: a connect of the host failed while it was being sent.

    A send comes as often as there are such connects. Rows meet by the second alone, and what takes
    long, the sender's address and the birth of the message, is asked of the few that met.
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
    met = (
        f"{_second_of(begin)} = failed_second and array_contains(array(failed_host), {HOST})"
        f" and {begin} between failed_end and failed_end + {SOON_US} and failed_broker != broker"
        f" and failed_begin >= {begin} - {lead_sql('unique_key', begin)} - 1000"
    )
    return sends.join(near, met, "left", small=True)


def _second_of(micros: str) -> str:
    return f"cast(floor({micros} / 1000000) as long)"

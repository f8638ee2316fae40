"""Columns derived from exchanges for several reports, mostly as SQL text.

Rules: a response missing in the capture is not proof of a missing response: `with_outcome`
distinguishes these. Events of every healthy client are not failures, so that they do not hide real
ones.
"""

from __future__ import annotations

from dissectors.rows.outcome import (
    EXPECTED,
    FAILED,
    LONG_POLLS,
    NOT_DURABLE,
    OK,
    ONEWAY,
)

from .schema import SOURCE
from .sql.expressions import texts
from .sql.relation import Relation

NO_RESPONSE, UNKNOWN, WITHDRAWN = "no response", "unknown", "withdrawn"
"""Outcomes of requests without a response: never answered; not answered within the capture; a long
poll that the client ended with its connection.
"""

WAITS = f"coalesce(request_name in {texts(LONG_POLLS)}, false)"
"""SQL: the broker may hold the request until there is a message."""
HAPPENED = "coalesce(request_time, response_time)"
"""SQL: when an exchange began, or ended if only that was captured."""
OPERATION = "coalesce(request_name, '?')"
"""SQL: name of the request."""

_COUNTED = {
    "answered": (OK, NOT_DURABLE, EXPECTED, FAILED),
    "failed": (FAILED,),
    "not_durable": (NOT_DURABLE,),
    "no_response": (NO_RESPONSE,),
    "unknown": (UNKNOWN,),
    "withdrawn": (WITHDRAWN,),
    "oneway": (ONEWAY,),
}
"""Column that counts exchanges -> outcomes that it counts."""


def counted_by_outcome(*names: str) -> dict[str, str]:
    """Return, as SQL, columns that count exchanges, for rows with `outcome` and `exchanges`."""
    # Of few groups by outcome: a counter per outcome would be evaluated for each exchange.
    return {name: f"if(outcome in {texts(_COUNTED[name])}, exchanges, 0L)" for name in names}


def address_of(endpoint: str) -> str:
    """Return, as SQL, the address of ``address:port``, IPv6 without brackets."""
    port = f"length(substring_index({endpoint}, ':', -1))"
    address = f"substring({endpoint}, 1, length({endpoint}) - {port} - 1)"
    # No regular expression, and no characters counted for IPv4: both would take much of the time of
    # a pass over the exchanges.
    plain = f"substring_index({endpoint}, ':', 1)"
    return f"if(startswith({endpoint}, '['), btrim({address}, '[]'), {plain})"


def with_outcome(exchanges: Relation, conversations: Relation | None) -> Relation:
    """Return the exchanges with a column `outcome`: `outcome_class`, or why there is no response.

    `no response` requires proof in the packets: the connection ended, and both directions were
    captured completely. Other exchanges without a response are `unknown`: the capture ended first,
    has gaps, or does not show how connections ended.
    """
    if conversations is None:
        sound = exchanges.adding({"_sound": "false", "_left": "false"})
    else:
        # numbers are unique within a source, so no exchange is duplicated
        whole = conversations.where("directions = 'both' and coalesce(gaps, 0) = 0")
        left = "coalesce(ended_by = 'client', false) as _left"
        facts = whole.select(
            f"{SOURCE} as _source", "conversation as _conversation", "true as _sound", left
        )
        # Only exchanges without a response need the join; null keys match nothing. If rows are
        # shuffled by the key, nulls would all go to one task: each gets a number that no row has.
        none = "-1L - abs(opaque)" if conversations.is_large else "null"
        asked = f"if(status = 'unanswered', conversation, {none})"
        met = f"{SOURCE} = _source and {asked} = _conversation"
        sound = exchanges.join(facts, met, "left", small=True)
    # Proof needs both directions without gaps, and an end: a response would have been seen. A
    # client that closes its connection during a long poll no longer wants one.
    no_response = (
        f"case when not coalesce(_sound, false) or coalesce(`end` not in ('reset', 'closed'), true)"
        f" then '{UNKNOWN}' when _left and {WAITS} then '{WITHDRAWN}' else '{NO_RESPONSE}' end"
    )
    outcome = f"if(status = 'unanswered', {no_response}, outcome_class)"
    result = sound.adding({"outcome": outcome})
    return result.without("_sound", "_left", "_source", "_conversation")

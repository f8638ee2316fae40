"""Columns that several reports derive from the exchanges, each in one place: mostly as SQL text.

Rules: that the capture has no answer is not that none came: `with_outcome` tells these apart. What
every healthy client shows is not counted as a failure, so that it does not hide one.
"""

from __future__ import annotations

from typing import Final

from dissectors.remoting.topic_names import RETRY_PREFIX
from dissectors.rows.outcome import (
    EXPECTED,
    FAILED,
    LONG_POLLS,
    NO_TOPIC,
    NORMAL_ANSWERS,
    NOT_DURABLE,
    NOT_DURABLE_ANSWERS,
    OK,
    ONEWAY,
    ORPHAN,
    ROUTE_REQUEST,
)

from .schema import SOURCE
from .sql.expressions import text, texts
from .sql.relation import Relation

NO_ANSWER, UNKNOWN, WITHDRAWN = "no answer", "unknown", "withdrawn"
OUTCOMES = (
    *(OK, NOT_DURABLE, EXPECTED, FAILED, NO_ANSWER, WITHDRAWN, UNKNOWN),
    *(ONEWAY, ORPHAN),
)
"""What became of an exchange: answered; a message stored, but not on disk or on a slave in time;
answered with an error that is normal there; answered with a failure; never answered; a long poll
that the requester ended with its connection; not answered as far as the capture goes; no answer
expected; an answer of which the request was not captured."""

WAITS = f"coalesce(request_name in {texts(LONG_POLLS)}, false)"
"""SQL: the broker may hold the request back until there is a message."""
OUTCOME: Final = "outcome_class"
"""Column that older logs lack."""
OUTCOME_CLASS = (
    "case when status != 'answered' then status"
    f" when response_name is null or response_name in {texts(NORMAL_ANSWERS)} then '{OK}'"
    f" when response_name in {texts(NOT_DURABLE_ANSWERS)} then '{NOT_DURABLE}'"
    f" when response_name = '{NO_TOPIC}' and request_name = '{ROUTE_REQUEST}'"
    f" and contains(topic, {text(RETRY_PREFIX)}) then '{EXPECTED}' else '{FAILED}' end"
)
"""SQL: the column `outcome_class`, of rows of older logs that do not have it.

`dissectors.rows.outcome.outcome_class_of` as SQL; a test holds the two to each other.
"""
HAPPENED = "coalesce(request_time, response_time)"
"""SQL: when an exchange began, or ended where only that was seen."""
OPERATION = "coalesce(request_name, '?')"
"""SQL: name of the request."""

_COUNTED = {
    "answered": (OK, NOT_DURABLE, EXPECTED, FAILED),
    "failed": (FAILED,),
    "not_durable": (NOT_DURABLE,),
    "no_answer": (NO_ANSWER,),
    "unknown": (UNKNOWN,),
    "withdrawn": (WITHDRAWN,),
    "oneway": (ONEWAY,),
}
"""Column that counts exchanges -> outcomes that it counts."""


def counted_by_outcome(*names: str) -> dict[str, str]:
    """Return, as SQL, some columns that count exchanges: of rows with `outcome` and `exchanges`.

    To group by the outcome and take these of the few groups spares each exchange a counter for
    each of them.
    """
    return {name: f"if(outcome in {texts(_COUNTED[name])}, exchanges, 0L)" for name in names}


def address_of(endpoint: str) -> str:
    """Return, as SQL, ``address:port`` without the port, IPv6 without brackets.

    Without a regular expression, and for IPv4 without counting characters: both would take much of
    the time of a pass over the exchanges.
    """
    port = f"length(substring_index({endpoint}, ':', -1))"
    address = f"substring({endpoint}, 1, length({endpoint}) - {port} - 1)"
    plain = f"substring_index({endpoint}, ':', 1)"
    return f"if(startswith({endpoint}, '['), btrim({address}, '[]'), {plain})"


def with_outcome(exchanges: Relation, conversations: Relation | None) -> Relation:
    """Return the exchanges with a column `outcome`, one of `OUTCOMES`.

    `no answer` is said only where the packets show it: the connection ended, both directions were
    captured, and nothing of it is missing. All else that was not answered is `unknown`: the
    capture ended first, has holes, or does not say how connections went.
    """
    if conversations is None:
        sound = exchanges.adding({"_sound": "false", "_left": "false"})
    else:
        # numbers are unique within a source, so no exchange is doubled
        whole = conversations.where("directions = 'both' and coalesce(gaps, 0) = 0")
        left = "coalesce(ended_by = 'client', false) as _left"
        facts = whole.select(
            f"{SOURCE} as _source", "conversation as _conversation", "true as _sound", left
        )
        # Only exchanges without an answer need it; for a null nothing is looked up.
        asked = "if(status = 'unanswered', conversation, null)"
        met = f"{SOURCE} = _source and {asked} = _conversation"
        sound = exchanges.join(facts, met, "left", small=True)
    no_answer = (
        f"case when not coalesce(_sound, false) or coalesce(`end` not in ('reset', 'closed'), true)"
        f" then '{UNKNOWN}' when _left and {WAITS} then '{WITHDRAWN}' else '{NO_ANSWER}' end"
    )
    outcome = f"if(status = 'unanswered', {no_answer}, outcome_class)"
    found = sound.adding({"outcome": outcome})
    return found.without("_sound", "_left", "_source", "_conversation")

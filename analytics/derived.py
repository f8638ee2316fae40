"""Columns that several reports derive from the exchanges, each in one place: mostly as SQL text.

Rules: that the capture has no answer is not that none came: `with_outcome` tells these apart. What
every healthy client shows is not counted as a failure, so that it does not hide one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dissectors.remoting.topic_names import RETRY_PREFIX
from dissectors.rows.outcome import LONG_POLLS, NORMAL_ANSWERS, NOT_DURABLE_ANSWERS
from dissectors.rows.record import ONEWAY, ORPHAN

from .schema import SOURCE
from .spark.expressions import adding, text, texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OK, FAILED, NO_ANSWER, UNKNOWN = "ok", "failed", "no answer", "unknown"
NOT_DURABLE, EXPECTED, WITHDRAWN = "stored, not durable", "expected", "withdrawn"
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
IS_NOT_DURABLE = (
    f"coalesce(status = 'answered' and response_name in {texts(NOT_DURABLE_ANSWERS)}, false)"
)
"""SQL: the message is stored, but not on disk or on a slave in time."""
IS_EXPECTED = (
    "coalesce(status = 'answered' and request_name = 'GET_ROUTEINFO_BY_TOPIC'"
    f" and response_name = 'TOPIC_NOT_EXIST' and contains(topic, {text(RETRY_PREFIX)}), false)"
)
"""SQL: a consumer asks for its retry topic before a broker has made it."""
IS_FAILURE = (
    f"coalesce(status = 'answered' and response_name not in {texts(NORMAL_ANSWERS)}"
    f" and response_name not in {texts(NOT_DURABLE_ANSWERS)} and not {IS_EXPECTED}, false)"
)
"""SQL: the answer says that something is wrong; an exchange without answer: no."""
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


def with_outcome(exchanges: DataFrame, conversations: DataFrame | None) -> DataFrame:
    """Return the exchanges with a column `outcome`, one of `OUTCOMES`.

    `no answer` is said only where the packets show it: the connection ended, both directions were
    captured, and nothing of it is missing. All else that was not answered is `unknown`: the
    capture ended first, has holes, or does not say how connections went.
    """
    if conversations is None:
        sound = adding(exchanges, {"_sound": "false", "_left": "false"})
    else:
        # numbers are unique within a source, so no exchange is doubled
        whole = conversations.where("directions = 'both' and coalesce(gaps, 0) = 0")
        left = "coalesce(ended_by = 'client', false) as _left"
        facts = whole.selectExpr(
            f"{SOURCE} as _source", "conversation as _conversation", "true as _sound", left
        )
        # Only exchanges without an answer need it; for a null nothing is looked up.
        asked = "if(status = 'unanswered', conversation, null)"
        met = F.expr(f"{SOURCE} = _source and {asked} = _conversation")
        sound = exchanges.join(F.broadcast(facts), met, "left").drop("_source", "_conversation")
    no_answer = (
        f"case when not coalesce(_sound, false) or coalesce(`end` not in ('reset', 'closed'), true)"
        f" then '{UNKNOWN}' when _left and {WAITS} then '{WITHDRAWN}' else '{NO_ANSWER}' end"
    )
    answered = (
        f"case when {IS_NOT_DURABLE} then '{NOT_DURABLE}' when {IS_EXPECTED} then '{EXPECTED}'"
        f" when {IS_FAILURE} then '{FAILED}' else '{OK}' end"
    )
    outcome = (
        f"case status when 'answered' then {answered} "
        f"when 'unanswered' then {no_answer} else status end"
    )
    return adding(sound, {"outcome": outcome}).drop("_sound", "_left")

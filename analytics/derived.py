"""Columns that several reports derive from the exchanges, each in one place: mostly as SQL text.

Rules: that the capture has no answer is not that none came: `with_outcome` tells these apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dissectors.outcome import LONG_POLLS, NORMAL_ANSWERS

from .expressions import adding, texts
from .schema import SOURCE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OK, FAILED, NO_ANSWER, UNKNOWN = "ok", "failed", "no answer", "unknown"
OUTCOMES = (OK, FAILED, NO_ANSWER, UNKNOWN, "oneway", "orphan")
"""What became of an exchange: answered, answered with a failure, never answered, not answered as
far as the capture goes, no answer expected, an answer of which the request was not captured."""

WAITS = f"coalesce(request_name in {texts(LONG_POLLS)}, false)"
"""SQL: the broker may hold the request back until there is a message."""
IS_FAILURE = (
    f"coalesce(status = 'answered' and response_name not in {texts(NORMAL_ANSWERS)}, false)"
)
"""SQL: the answer says that something is wrong; an exchange without answer: no."""
HAPPENED = "coalesce(request_time, response_time)"
"""SQL: when an exchange began, or ended where only that was seen."""
OPERATION = "coalesce(request_name, '?')"
"""SQL: name of the request."""


def address_of(endpoint: str) -> str:
    """Return, as SQL, ``address:port`` without the port, IPv6 without brackets.

    Without a regular expression, which would take most of the time of a pass over the exchanges.
    """
    port = f"length(substring_index({endpoint}, ':', -1))"
    return f"btrim(substring({endpoint}, 1, length({endpoint}) - {port} - 1), '[]')"


def address(endpoint: str) -> Column:
    """Return a column ``address:port`` without the port, IPv6 without brackets."""
    return F.expr(address_of(endpoint))


def waits_on_purpose() -> Column:
    """Return whether the broker may hold the request back until there is a message."""
    return F.expr(WAITS)


def is_failure() -> Column:
    """Return whether the answer says that something is wrong; an exchange without answer: no."""
    return F.expr(IS_FAILURE)


def happened() -> Column:
    """Return when an exchange began, or ended where only that was seen."""
    return F.expr(HAPPENED)


def with_outcome(exchanges: DataFrame, conversations: DataFrame | None) -> DataFrame:
    """Return the exchanges with a column `outcome`, one of `OUTCOMES`.

    `no answer` is said only where the packets show it: the connection ended, both directions were
    captured, and nothing of it is missing. All else that was not answered is `unknown`: the
    capture ended first, has holes, or does not say how connections went.
    """
    if conversations is None:
        sound = adding(exchanges, {"_sound": "false"})
    else:
        # numbers are unique within a source, so no exchange is doubled
        whole = conversations.where("directions = 'both' and coalesce(gaps, 0) = 0")
        keys = F.broadcast(whole.selectExpr(SOURCE, "conversation", "true as _sound"))
        sound = exchanges.join(keys, [SOURCE, "conversation"], "left")
    no_answer = f"if(_sound and `end` in ('reset', 'closed'), '{NO_ANSWER}', '{UNKNOWN}')"
    outcome = (
        f"case status when 'answered' then if({IS_FAILURE}, '{FAILED}', '{OK}') "
        f"when 'unanswered' then {no_answer} else status end"
    )
    return adding(sound, {"outcome": outcome}).drop("_sound")

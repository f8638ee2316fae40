"""Columns that several reports derive from the exchanges, each in one place.

Rules: a broker is called by its name where the requests to its address agree on one; a name that a
request carries is that of the broker it was meant for, which an asynchronous retry leaves as it was
(https://github.com/apache/rocketmq/issues/1497), so single requests are outvoted. A proxy is sent
requests for many brokers and has no such name: it is called by its address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dissectors.outcome import LONG_POLLS, NORMAL_ANSWERS

from .expressions import adding, grouped, texts
from .schema import SOURCE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OK, FAILED, NO_ANSWER, UNKNOWN = "ok", "failed", "no answer", "unknown"
OUTCOMES = (OK, FAILED, NO_ANSWER, UNKNOWN, "oneway", "orphan")
"""What became of an exchange: answered, answered with a failure, never answered, not answered as
far as the capture goes, no answer expected, an answer of which the request was not captured."""

NOT_TO_A_BROKER = (
    "REGISTER_BROKER",
    "UNREGISTER_BROKER",
    "BROKER_HEARTBEAT",
    "QUERY_DATA_VERSION",
    "GET_BROKER_MEMBER_GROUP",
    "CONTROLLER_REGISTER_BROKER",
    "CONTROLLER_APPLY_BROKER_ID",
    "CONTROLLER_GET_NEXT_BROKER_ID",
    "CONTROLLER_GET_REPLICA_INFO",
    "CONTROLLER_ALTER_SYNC_STATE_SET",
    "CONTROLLER_ELECT_MASTER",
)
"""Requests to a name server or controller: the broker that they name is the one that asks."""

AGREEMENT = 0.8
"""Share of the requests to an address that must name the same broker."""

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


def broker_names(counted: DataFrame) -> DataFrame:
    """Return (responder, broker) for the addresses whose requests agree on a broker name.

    `counted` has `operation`, `responder`, `broker_name` and `exchanges`, a count; addresses that
    no request names are not in the result.
    """
    telling = counted.where(f"broker_name != '' and operation not in {texts(NOT_TO_A_BROKER)}")
    named = grouped(telling, ["responder", "broker_name"], {"exchanges": "sum(exchanges)"})
    chosen = grouped(
        named,
        ["responder"],
        {
            "broker": "max_by(broker_name, struct(exchanges, broker_name))",
            "_agreement": "max(exchanges) / sum(exchanges)",
        },
    )
    return chosen.where(f"_agreement >= {AGREEMENT}").select("responder", "broker")


def with_names(frame: DataFrame, names: DataFrame) -> DataFrame:
    """Return `frame` with `broker`: the name that `names` has for its `responder`, else that."""
    renamed = F.broadcast(names.withColumnRenamed("broker", "_broker"))
    joined = frame.join(renamed, "responder", "left")
    return adding(joined, {"broker": "coalesce(_broker, responder)"}).drop("_broker")


def with_broker(exchanges: DataFrame) -> DataFrame:
    """Return the exchanges with a column `broker`: the responder's name, else its address."""
    counted = exchanges.selectExpr(
        "responder", "broker_name", f"{OPERATION} as operation", "1L as exchanges"
    )
    return with_names(exchanges, broker_names(counted))

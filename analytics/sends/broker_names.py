"""What the broker at an address is called: one rule for all reports.

Rules: a name goes to the address where its share of the requests is largest, because a request
carries the name of the broker that it was meant for, which the retry of an asynchronous send leaves
as it was (https://github.com/apache/rocketmq/issues/1497): such retries do not rename the broker
that they were sent to. A proxy is sent requests for many brokers: it has the name that nearly all
ask for, or none and is called by its address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .derived import OPERATION
from .expressions import adding, grouped, texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .reports import ReportInput

BROKER_NAMES = "broker names"
"""The share of `ReportInput.kept` that these are."""
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
_AGREEMENT = 0.8
"""Share of the requests to an address at home to several names that must name the same one."""
_AT_HOME = 0.7
"""A name is at home where its share of the requests is at least this part of its largest share."""


def broker_names(given: ReportInput, counted: Callable[[], DataFrame] | None = None) -> DataFrame:
    """Return (responder, broker) for the addresses of an input that have a name, found once.

    `counted` gives what `names_of` takes, from a report that has counted the requests anyhow; else
    they are counted.
    """

    def names() -> DataFrame:
        known = _counted(given.exchanges) if counted is None else counted()
        return given.kept.frame(names_of(known), BROKER_NAMES)

    return given.kept.once(BROKER_NAMES, None, names)


def _counted(exchanges: DataFrame) -> DataFrame:
    named = exchanges.where("broker_name != '' and responder is not null")
    asked = adding(named, {"operation": OPERATION})
    return grouped(asked, ("operation", "responder", "broker_name"), {"exchanges": "count(*)"})


def names_of(counted: DataFrame) -> DataFrame:
    """Return (responder, broker); an address that no request names is not in the result.

    `counted` has `operation`, `responder`, `broker_name` and `exchanges`, a count.
    """
    to_brokers = f"operation not in {texts(NOT_TO_A_BROKER)}"
    named = grouped(
        counted.where(f"broker_name != '' and responder is not null and {to_brokers}"),
        ("responder", "broker_name"),
        {"asked": "sum(exchanges)"},
    )
    shares = adding(named, {"share": "asked / sum(asked) over (partition by responder)"})
    best = adding(shares, {"best": "max(share) over (partition by broker_name)"})
    chosen = grouped(
        best.where(f"share >= best * {_AT_HOME}"),
        ("responder",),
        {
            "broker": "max_by(broker_name, struct(asked, broker_name))",
            "share": "max(share)",
            "names": "count(*)",
        },
    )
    telling = chosen.where(f"names = 1 or share >= {_AGREEMENT}")
    return telling.select("responder", "broker")


def with_names(frame: DataFrame, names: DataFrame) -> DataFrame:
    """Return `frame` with `broker`: the name that `names` has for its `responder`, else that."""
    renamed = F.broadcast(names.withColumnRenamed("broker", "_broker"))
    joined = frame.join(renamed, "responder", "left")
    return adding(joined, {"broker": "coalesce(_broker, responder)"}).drop("_broker")

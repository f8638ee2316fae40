"""What the broker at an address is called: one rule for all reports.

Rules: a name goes to the address where its share of the requests is largest, because a request
carries the name of the broker that it was meant for, which the retry of an asynchronous send leaves
as it was (https://github.com/apache/rocketmq/issues/1497): such retries do not rename the broker
that they were sent to. A proxy is sent requests for many brokers: it has the name that nearly all
ask for, or none and is called by its address. An address that no request names, as those of older
clients do not, has the name that routes and registrations give to it, and so has its VIP channel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dissectors.remoting.broker_addresses import SEPARATOR

from ..derived import OPERATION
from ..spark.expressions import adding, grouped, texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..report import ReportInput

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

_PORT = "substring_index(responder, ':', -1)"
_VIP = (
    f"concat(substring(responder, 1, length(responder) - length({_PORT})),"
    f" try_cast({_PORT} as int) - 2)"
)
"""SQL: address of the VIP channel of a broker, two ports below (MixAll.brokerVIPChannel)."""


def broker_names(given: ReportInput, counted: Callable[[], DataFrame] | None = None) -> DataFrame:
    """Return (responder, broker) for the addresses of an input that have a name, found once.

    `counted` gives what `names_of` takes, from a report that has counted the requests anyhow; else
    they are counted.
    """

    def names() -> DataFrame:
        known = _counted(given.exchanges) if counted is None else counted()
        both = _first_of(names_of(known), routed_names(given.exchanges))
        return given.kept.frame(both, BROKER_NAMES)

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


def routed_names(exchanges: DataFrame) -> DataFrame:
    """Return (responder, broker, rank) by what NameServers told and were told; rank 2: VIP channel.

    An address that several brokers are said to have, as a proxy's is, has none of their names.
    """
    address = f"substring_index(told, '{SEPARATOR}', -1)"
    told = exchanges.where("size(brokers) > 0").selectExpr("explode(brokers) as told")
    each = told.selectExpr(
        f"{address} as responder",
        f"substring(told, 1, length(told) - length({address}) - 1) as broker",
    )
    counted = grouped(each, ("responder", "broker"), {"times": "count(*)"})
    chosen = grouped(
        counted,
        ("responder",),
        {
            "broker": "max_by(broker, struct(times, broker))",
            "share": "max(times) / sum(times)",
        },
    ).where(f"share >= {_AGREEMENT}")
    main = chosen.selectExpr("responder", "broker", "1 as rank")
    vip = chosen.selectExpr(f"{_VIP} as responder", "broker", "2 as rank")
    return main.unionByName(vip.where("responder is not null"))


def _first_of(asked: DataFrame, routed: DataFrame) -> DataFrame:
    """Return the names that requests give, and for other addresses those of routes."""
    every = adding(asked, {"rank": "0"}).unionByName(routed)
    best = {"broker": "min_by(broker, struct(rank, broker))"}
    return grouped(every, ("responder",), best)


def with_names(frame: DataFrame, names: DataFrame) -> DataFrame:
    """Return `frame` with `broker`: the name that `names` has for its `responder`, else that."""
    renamed = F.broadcast(names.withColumnRenamed("broker", "_broker"))
    joined = frame.join(renamed, "responder", "left")
    return adding(joined, {"broker": "coalesce(_broker, responder)"}).drop("_broker")

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

from dissectors.remoting.broker_addresses import SEPARATOR

from ..derived import OPERATION
from ..sql.expressions import texts
from ..sql.relation import Relation

if TYPE_CHECKING:
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
    f"substring(responder, 1, length(responder) - length({_PORT}))"
    f" || cast(try_cast({_PORT} as int) - 2 as string)"
)
"""SQL: address of the VIP channel of a broker, two ports below (MixAll.brokerVIPChannel)."""


def broker_names(given: ReportInput, counted: Callable[[], Relation] | None = None) -> Relation:
    """Return (responder, broker) for the addresses of an input that have a name, found once.

    `counted` gives what `names_of` takes, from a report that has counted the requests anyhow; else
    they are counted.
    """

    def names() -> Relation:
        known = _counted(given.exchanges) if counted is None else counted()
        both = _first_of(names_of(known), routed_names(given.exchanges))
        return given.kept.frame(both, BROKER_NAMES)

    return given.kept.once(BROKER_NAMES, None, names)


def _counted(exchanges: Relation) -> Relation:
    named = exchanges.where("broker_name != '' and responder is not null")
    asked = named.adding({"operation": OPERATION})
    return asked.grouped(("operation", "responder", "broker_name"), {"exchanges": "count(*)"})


def names_of(counted: Relation) -> Relation:
    """Return (responder, broker); an address that no request names is not in the result.

    `counted` has `operation`, `responder`, `broker_name` and `exchanges`, a count.
    """
    to_brokers = f"operation not in {texts(NOT_TO_A_BROKER)}"
    requests = counted.where(f"broker_name != '' and responder is not null and {to_brokers}")
    named = requests.grouped(
        ("responder", "broker_name"),
        {"asked": "sum(exchanges)"},
    )
    shares = named.adding({"share": "asked / sum(asked) over (partition by responder)"})
    best = shares.adding({"best": "max(share) over (partition by broker_name)"})
    chosen = best.where(f"share >= best * {_AT_HOME}").grouped(
        ("responder",),
        {
            "broker": "max_by(broker_name, named_struct('a', asked, 'b', broker_name))",
            "share": "max(share)",
            "names": "count(*)",
        },
    )
    telling = chosen.where(f"names = 1 or share >= {_AGREEMENT}")
    return telling.select("responder", "broker")


def routed_names(exchanges: Relation) -> Relation:
    """Return (responder, broker, rank) by what NameServers told and were told; rank 2: VIP channel.

    An address that several brokers are said to have, as a proxy's is, has none of their names.
    """
    address = f"substring_index(told, '{SEPARATOR}', -1)"
    told = exchanges.where("size(brokers) > 0").select("explode(brokers) as told")
    each = told.select(
        f"{address} as responder",
        f"substring(told, 1, length(told) - length({address}) - 1) as broker",
    )
    counted = each.grouped(("responder", "broker"), {"times": "count(*)"})
    chosen = counted.grouped(
        ("responder",),
        {
            "broker": "max_by(broker, named_struct('a', times, 'b', broker))",
            "share": "max(times) / sum(times)",
        },
    ).where(f"share >= {_AGREEMENT}")
    main = chosen.select("responder", "broker", "1 as rank")
    vip = chosen.select(f"{_VIP} as responder", "broker", "2 as rank")
    return main.union(vip.where("responder is not null"))


def _first_of(asked: Relation, routed: Relation) -> Relation:
    """Return the names that requests give, and for other addresses those of routes."""
    every = asked.adding({"rank": "0"}).union(routed)
    best = {"broker": "min_by(broker, named_struct('a', rank, 'b', broker))"}
    return every.grouped(("responder",), best)


def with_names(relation: Relation, names: Relation) -> Relation:
    """Return a relation with `broker`: what `names` has for its `responder`, else that."""
    known = names.select("responder", "broker as _broker")
    joined = relation.join(known, ["responder"], "left", small=True)
    return joined.adding({"broker": "coalesce(_broker, responder)"}).without("_broker")

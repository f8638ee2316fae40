"""The names of the brokers in an input, by the one rule for all views: `dissectors.rows`.

A query counts what routes and requests say; the rule decides here, over few rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dissectors.rows.broker_names import MAX_ADDRESSES, NAMING_REQUESTS, BrokerNames
from dissectors.rows.outcome import OK

from ..derived import OPERATION
from ..report import TableColumn
from ..sql.expressions import texts
from ..sql.relation import Relation

if TYPE_CHECKING:
    from ..report import ReportInput

BROKER_NAMES = "broker names"
"""The share of `ReportInput.kept` that these are."""
_COLUMNS = (
    TableColumn("responder", "string", "", "address and port"),
    TableColumn("broker", "string", "", "its name"),
)


def broker_names(given: ReportInput, counted: Callable[[], Relation] | None = None) -> Relation:
    """Return (responder, broker) for the addresses of an input that have a name, found once.

    `counted` gives requests with `operation`, `responder`, `broker_name`, `outcome`, and
    `exchanges`, a count, from a report that has counted them anyhow; else they are counted.
    """

    def names() -> Relation:
        known = BrokerNames()
        requests = _counted(given.exchanges) if counted is None else counted()
        for row in given.kept.rows(_asked(requests)).to_pylist():
            name, count, served = row["broker_name"], int(row["asked"]), bool(row["served"])
            known.add_asked(row["responder"], name, count, served)
        for row in given.kept.rows(_routed(given.exchanges)).to_pylist():
            known.add_routed([row["told"]], int(row["times"]))
        found = [
            {"responder": address, "broker": name}
            for address, name in sorted(known.names_with_vip().items())
        ]
        return given.kept.here(found, _COLUMNS, BROKER_NAMES)

    return given.kept.once(BROKER_NAMES, None, names)


def _counted(exchanges: Relation) -> Relation:
    named = exchanges.where("broker_name != '' and responder is not null")
    asked = named.adding({"operation": OPERATION, "outcome": "outcome_class"})
    return asked.grouped(
        ("operation", "responder", "broker_name", "outcome"), {"exchanges": "count(*)"}
    )


def _asked(counted: Relation) -> Relation:
    """Return how often requests to an address carry a name: the most frequent ones."""
    naming = f"operation in {texts(NAMING_REQUESTS)}"
    requests = counted.where(f"broker_name != '' and responder is not null and {naming}")
    told = requests.adding({"served": f"outcome = '{OK}'"})
    named = told.grouped(("responder", "broker_name", "served"), {"asked": "sum(exchanges)"})
    return named.ordered(("asked desc", "responder", "broker_name", "served"), MAX_ADDRESSES)


def _routed(exchanges: Relation) -> Relation:
    """Return how often NameServers say or hear ``name=address``."""
    told = exchanges.where("size(brokers) > 0").select("explode(brokers) as told")
    return told.grouped(("told",), {"times": "count(*)"}).ordered(
        ("times desc", "told"), MAX_ADDRESSES
    )


def with_names(relation: Relation, names: Relation) -> Relation:
    """Return a relation with `broker`: what `names` has for its `responder`, else that."""
    known = names.select("responder", "broker as _broker")
    joined = relation.join(known, ["responder"], "left", small=True)
    return joined.adding({"broker": "coalesce(_broker, responder)"}).without("_broker")

"""Names of the brokers in an input, by the shared rule in `dissectors.rows`.

A query counts the names in routes and requests; the rule then decides over few rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dissectors.rows.broker_names import MAX_ADDRESSES, NAMING_REQUESTS, BrokerNames
from dissectors.rows.outcome import OK

from ..cells import CellTable
from ..derived import OPERATION
from ..report import table_columns
from ..sql.expressions import texts
from ..sql.relation import Relation

if TYPE_CHECKING:
    from ..report import ReportInput

BROKER_NAMES = "broker names"
"""The share of `ReportInput.kept` that these are."""
ROUTES = CellTable("routes", ("told",), {"times": "sum"})
"""How often routes name broker addresses."""
_COLUMNS = table_columns("""
    server_address string: address and port
    broker string: its name
""")


def broker_names(
    report_input: ReportInput, counted: Callable[[], Relation] | None = None
) -> Relation:
    """Return `server_address` and `broker` of each named address, computed once.

    `counted` are requests with `operation`, `server_address`, `broker_name`, `outcome`, and the
    count `exchanges`, if the report has counted them already.
    """
    return _found(report_input, counted)[1]


def known_brokers(report_input: ReportInput) -> BrokerNames:
    """Return the broker names with the addresses of VIP channels."""
    return _found(report_input, None)[0]


def _found(
    report_input: ReportInput, counted: Callable[[], Relation] | None
) -> tuple[BrokerNames, Relation]:
    def names() -> tuple[BrokerNames, Relation]:
        known = BrokerNames()
        requests = _counted(report_input.exchanges) if counted is None else counted()
        for row in report_input.kept.rows(_asked(requests)).to_pylist():
            name, count, served = row["broker_name"], int(row["asked"]), bool(row["served"])
            known.add_requested(row["server_address"], name, count, served)
        routed = report_input.kept.cells(ROUTES, lambda: _routed(report_input.exchanges))
        for row in report_input.kept.rows(
            routed.ordered(("times desc", "told"), MAX_ADDRESSES)
        ).to_pylist():
            known.add_routed([row["told"]], int(row["times"]))
        named = [
            {"server_address": address, "broker": name}
            for address, name in sorted(known.names_with_vip().items())
        ]
        return known, report_input.kept.here(named, _COLUMNS, BROKER_NAMES)

    return report_input.kept.once(BROKER_NAMES, None, names)


def _counted(exchanges: Relation) -> Relation:
    named = exchanges.where("broker_name != '' and server_address is not null")
    # the same columns as the counts of the overview
    asked = named.adding({"operation": OPERATION, "outcome": "outcome_class"})
    return asked.grouped(
        ("operation", "server_address", "broker_name", "outcome"), {"exchanges": "count(*)"}
    )


def _asked(counted: Relation) -> Relation:
    """Return how often requests to an address carry each name, most frequent first."""
    naming = f"operation in {texts(NAMING_REQUESTS)}"
    requests = counted.where(f"broker_name != '' and server_address is not null and {naming}")
    requests_served = requests.adding({"served": f"outcome = '{OK}'"})
    named = requests_served.grouped(
        ("server_address", "broker_name", "served"), {"asked": "sum(exchanges)"}
    )
    return named.ordered(("asked desc", "server_address", "broker_name", "served"), MAX_ADDRESSES)


def _routed(exchanges: Relation) -> Relation:
    """Return how often routes contain each ``name=address``."""
    named = exchanges.where("size(brokers) > 0").select("explode(brokers) as told")
    return named.grouped(("told",), {"times": "count(*)"})


def with_names(relation: Relation, names: Relation) -> Relation:
    """Return a relation with `broker`: the name of its `server_address`, or the address itself."""
    known = names.select("server_address", "broker as _broker")
    joined = relation.join(known, ["server_address"], "left", small=True)
    return joined.adding({"broker": "coalesce(_broker, server_address)"}).without("_broker")

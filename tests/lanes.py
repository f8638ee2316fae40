"""Which tests share a worker of pytest-xdist, and in which order the workers take them.

Rules: a file is a lane, so fixtures of modules are made once; files that share a session fixture
that is dear (Spark) are one lane, without their neighbours that do without it, and so are files
that share a cluster, which ends with its lane, or what is asked of Java's classes. Long lanes come
first. Those of clusters mostly wait: they take half of the workers at most, the others compute
meanwhile.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController


class Lane(NamedTuple):
    """Tests that run on one worker, one after the other."""

    name: str
    patterns: tuple[str, ...]
    """node ids: one must fit, and none with an exclamation mark"""
    waits: bool = False
    """its processes do most of the work, and it waits for them"""
    apart: bool = False
    """its tests share nothing: each is a lane of its own"""


def _cluster(*names: str) -> Lane:
    patterns = tuple(f"tests/cluster/*/test_{name}" for name in names)
    return Lane(names[0], patterns, waits=True)


LANES: Final = (
    Lane(
        "spark reports",
        (
            *(f"tests/analytics/reports/test_{name}.py::*" for name in ("consumers", "diagnosis")),
            *(f"tests/analytics/sends/test_{name}.py::*" for name in ("hops", "suspects")),
            "tests/rmqtool/report/test_command.py::*",
            "tests/test_licence_border.py::test_report_runs*",
        ),
    ),
    Lane(
        "spark",
        (
            *("tests/analytics/inputs/*", "tests/analytics/spark/*"),
            *(f"tests/analytics/test_{name}.py::*" for name in ("table_files", "result")),
            "tests/analytics/sql/test_dialect.py::*",
            "tests/analytics/test_report_hostile.py::*[[]on Spark*",
            "tests/dissectors/decode/test_decoded_log.py::test_spark_reads_it",
            *(
                f"tests/rmqtool/api/test_{name}.py::*"
                for name in ("capture_spark", "docs", "examples")
            ),
        ),
    ),
    # A lane shares one cluster of the newest release; what kills brokers for good is its end.
    _cluster("cluster.py::*", "messages.py::*", "producer_core.py::*", "producer_faults.py::*"),
    _cluster(
        "message_rows.py::*",
        "producer_kinds.py::*[[]5*",
        *("producer_refusals.py::test_a_[bft]*", "producer_refusals.py::test_tls_where*"),
        *("replay_faults.py::*", "replay_pace.py::*", "send_command.py::*"),
    ),
    _cluster("replay_samples.py::*[[]5*"),
    _cluster("replay_samples.py::*[[]4*"),
    _cluster("producer_refusals.py::*"),
    _cluster("producer_kinds.py::*[[]4*"),
    _cluster("sandbox_clients.py::*[[]4*"),
    _cluster("sandbox_clients.py::*", "sandbox_faults.py::*"),
    # It waits for minutes: begun last, it would be what all wait for.
    Lane("live faults", ("tests/rmqtool/diagnose/test_live_faults.py::*",), waits=True),
    Lane(
        "classes",
        ("tests/cluster/decoding/test_oracle.py::*", "tests/test_reflection*.py::*"),
    ),
    Lane("other clusters", ("tests/cluster/*",), waits=True),
    Lane("growth", ("tests/dissectors/wireshark/test_growth.py::*",), apart=True),
    Lane("live", ("tests/rmqtool/live/*",)),
    Lane("damage", ("tests/dissectors/wireshark/test_damage.py::*",)),
    Lane("samples", ("tests/dissectors/wireshark/test_samples.py::*",)),
    Lane("traffic", ("tests/dissectors/decode/test_any_traffic.py::*",), apart=True),
    Lane(
        "sources",
        tuple(
            f"tests/test_{name}.py::*" for name in ("architecture", "facts", "foreign", "licence*")
        ),
    ),
    Lane("transport", ("tests/replay/transport/*",)),
    Lane("robustness", ("tests/replay/sandbox/test_robustness.py::*",)),
)
"""the first that fits a node id counts, longest first; any other test is in the lane of its file"""


@cache
def place_of(node_id: str) -> int:
    """Return the place in LANES of the lane of a test, behind them all where it has none."""
    for place, lane in enumerate(LANES):
        fits = [one for one in lane.patterns if fnmatchcase(node_id, one.removeprefix("!"))]
        if fits and not any(one.startswith("!") for one in fits):
            return place
    return len(LANES)


@cache
def lane_of(node_id: str) -> str:
    """Return the name of the lane that a test runs in."""
    place = place_of(node_id)
    if place == len(LANES):
        return node_id.partition("::")[0]
    return node_id if LANES[place].apart else LANES[place].name


def _waits(tests: dict[str, bool]) -> bool:
    """Return whether tests of a lane, of which it is known whether they ended, are such a lane."""
    place = place_of(next(iter(tests)))
    return place < len(LANES) and LANES[place].waits


class LaneScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each worker one lane after the other."""

    def _split_scope(self, nodeid: str) -> str:
        return lane_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give a worker the first lane, or the first that computes where enough of them wait."""
        queue = self.workqueue
        lanes = sorted(queue, key=lambda name: place_of(next(iter(queue[name]))))
        if self._waiting() >= max(1, self.numnodes // 2):
            lanes = [name for name in lanes if not _waits(queue[name])] or lanes
        queue.move_to_end(lanes[0], last=False)
        super()._assign_work_unit(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Give a worker's lane to another one, without the test that ended the worker.

        xdist runs that test again: on each new worker in turn, for hours.
        """
        pending = (
            (tests, test)
            for tests in self.assigned_work[node].values()
            for test, ended in tests.items()
            if not ended
        )
        tests, crashed = next(pending, ({}, None))
        if crashed is not None:
            tests[crashed] = True
        super().remove_node(node)
        return crashed

    def _waiting(self) -> int:
        """Return how many workers are in a lane that waits."""
        return sum(
            any(_waits(tests) and not all(tests.values()) for tests in lanes.values())
            for lanes in self.assigned_work.values()
        )

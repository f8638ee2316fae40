"""The shared cluster as a pytest fixture; tests that cannot have it skip with the reason.

A `conftest.py` that wants it imports `rocketmq` from here and calls `end_with_lane`; tests carry
`@pytest.mark.cluster`. One that breaks the cluster heals it; topics are of one test alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest

from tests.lanes import lane_of

from .clients.hosts import end_hosts
from .servers.artifacts import Unavailable, class_path, java_program
from .servers.cluster import BrokerSpec, Cluster


def _network() -> str:
    """Return addresses of this worker alone: several workers may have a cluster at a time."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return f"127.77.{190 + int(worker)}"


_SETTINGS = {
    "maxMessageSize": 100_000,
    # ms; a 5.x broker notes only every three seconds what has ended, and asks needlessly before
    "transactionTimeOut": 5000,
    "transactionCheckInterval": 1000,
}
"""of brokers that find bodies of some size too large, and ask soon what became of a transaction"""
_shared: list[Cluster] = []
"""the cluster of the lane that runs; none where no test has asked for it"""


@pytest.fixture(scope="module")
def rocketmq() -> Cluster:
    """One NameServer and two masters of the newest release, shared by the tests of a lane."""
    if _shared and not all(node.alive() for node in (*_shared[0].namesrvs, *_shared[0].brokers)):
        end_shared()  # a test failed before it healed what it broke
    if not _shared:
        specs = [BrokerSpec(name, settings=_SETTINGS) for name in ("broker-a", "broker-b")]
        _shared.append(started(Cluster(specs, network=_network())))
    return _shared[0]


def end_shared() -> None:
    """End the cluster of a lane and what runs its clients; nothing where there is none."""
    end_hosts()
    while _shared:
        _shared.pop().stop()


def end_with_lane(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End what the lane of a test shares, unless the next test is of that lane or of its module.

    Brokers are at work also where nobody asks them for anything. A test that is tried a second time
    has the fixtures of the first.
    """
    if _is_tried_again(item):
        return
    if nextitem is None or (
        lane_of(nextitem.nodeid) != lane_of(item.nodeid) and nextitem.path != item.path
    ):
        end_shared()


def _is_tried_again(item: pytest.Item) -> bool:
    """Return whether pytest-rerunfailures runs a test, which has ended, once more."""
    marker = item.get_closest_marker("flaky")
    failed = getattr(item, "_test_failed_statuses", {})
    tried: int = getattr(item, "execution_count", 1)
    return marker is not None and any(failed.values()) and tried <= marker.kwargs.get("reruns", 1)


@pytest.fixture(scope="session", autouse=True)
def java_hosts() -> Iterator[None]:
    """What runs Java programs for all tests of the session ends with it."""
    yield
    end_shared()


def started(cluster: Cluster) -> Cluster:
    """Start a cluster; skip where there is no Java or nothing to run."""
    try:
        return cluster.start()
    except Unavailable as reason:
        skip_or_fail(str(reason))


@contextmanager
def running(cluster: Cluster) -> Iterator[Cluster]:
    """Start a cluster, and stop it in the end; skip where there is no Java or nothing to run."""
    started(cluster)
    try:
        yield cluster
    finally:
        cluster.stop()


def require_jars(releases: Iterable[str]) -> None:
    """Get Java and the jars of releases; skip where they cannot be had."""
    try:
        java_program("java")
        for release in releases:
            class_path(release)
    except Unavailable as reason:
        skip_or_fail(str(reason))


def skip_or_fail(reason: str) -> NoReturn:
    """Skips for that reason; where RMQTOOL_REQUIRE_CLUSTER is set, as in CI, that is a failure."""
    if os.environ.get("RMQTOOL_REQUIRE_CLUSTER"):
        pytest.fail(reason)
    pytest.skip(reason)

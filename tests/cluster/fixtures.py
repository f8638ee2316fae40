"""The session's cluster as a pytest fixture; tests that cannot have it skip with the reason.

A `conftest.py` that wants it imports `rocketmq` from here; tests carry `@pytest.mark.cluster`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest

from .artifacts import Unavailable, class_path, java_program
from .cluster import BrokerSpec, Cluster
from .hosts import end_hosts


def _network() -> str:
    """Return addresses of this worker alone: several workers may have a cluster at a time."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return f"127.77.{190 + int(worker)}"


@pytest.fixture(scope="session")
def rocketmq() -> Iterator[Cluster]:
    """One NameServer and two masters of the newest release, shared by all tests of the session."""
    cluster = Cluster([BrokerSpec("broker-a"), BrokerSpec("broker-b")], network=_network())
    with running(cluster):
        yield cluster


@pytest.fixture(scope="session", autouse=True)
def java_hosts() -> Iterator[None]:
    """What runs Java programs for all tests of the session ends with it."""
    yield
    end_hosts()


@contextmanager
def running(cluster: Cluster) -> Iterator[Cluster]:
    """Start a cluster, and stop it in the end; skip where there is no Java or nothing to run."""
    try:
        cluster.start()
    except Unavailable as reason:
        skip_or_fail(str(reason))
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

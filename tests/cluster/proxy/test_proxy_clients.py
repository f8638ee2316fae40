"""Real clients say the same through the proxy as without it, against real clusters.

`python -m tests.cluster proxied` runs all scenarios both ways; here are some of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.cluster.clients.clients import run_mqadmin
from tests.cluster.fixtures import skip_or_fail
from tests.cluster.scenarios.scene import Scenario
from tests.cluster.servers.artifacts import Unavailable
from tests.cluster.servers.cluster import Cluster
from tests.replay.proxy.proxied import proxied

from .scenes import ALL, Pairs, network_of_worker

pytestmark = pytest.mark.cluster
OF_4X = (
    *("send-sync", "send-async", "send-oneway", "send-ordered", "send-delay", "transaction"),
    *("request-reply", "push-orderly", "push-broadcast", "push-retry-dlq", "push-rebalance"),
    *("lite-pull", "mqadmin", "tls-client"),
)
OF_5X = (
    *("send-batch", "send-timer", "send-vip", "send-binary-header", "transaction"),
    *("request-reply", "push-filter-sql", "push-retry-dlq", "push-rebalance", "pop-push"),
    *("two-groups", "mqadmin", "tls-client", "go-client", "cpp-client"),
    *("grpc-send", "grpc-python", "grpc-go", "grpc-go-tls"),
)
CHOSEN = {f"{name}-{one}" for one, names in (("4x", OF_4X), ("5x", OF_5X)) for name in names}


@pytest.fixture(scope="module")
def pairs() -> Iterator[Pairs]:
    with closing(Pairs(network_of_worker())) as found:
        yield found


@pytest.mark.flaky(reruns=0)  # `Pairs.compared` itself runs again what differs
@pytest.mark.parametrize(
    "scenario",
    sorted((one for one in ALL if one.name in CHOSEN), key=lambda one: one.cluster.__qualname__),
    ids=lambda one: one.name,
)
def test_clients_say_the_same(pairs: Pairs, scenario: Scenario) -> None:
    try:
        found = pairs.compared(scenario)
    except Unavailable as reason:
        skip_or_fail(str(reason))
    assert found.direct.printed
    assert found.unlike == [], found.outputs
    assert found.counts["connections"] > 2  # the brokers', too
    assert found.counts["rewritten responses"] >= 1


def test_mqadmin_stays_on_the_proxy(rocketmq: Cluster) -> None:
    with proxied(rocketmq.namesrv_text) as proxy:
        listed = run_mqadmin(["clusterList"], proxy.namesrv)
        fronts = {f"{one.host}:{one.port}" for one in proxy.proxy.fronts.known()}
        assert len(fronts) == 2
        assert all(front in listed for front in fronts)
        assert "127.77." not in listed
        assert proxy.proxy.counts["connections"] >= 3  # statistics come from the brokers

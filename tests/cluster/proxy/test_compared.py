"""How runs of a scenario through a proxy are compared with those without: no cluster is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import cast

import pytest

from tests.cluster.scenarios import SCENARIOS
from tests.cluster.scenarios.scene import Scenario
from tests.cluster.servers.cluster import Cluster

from .scenes import RUNS, Pair, Pairs, Said

SENT = "SEND_OK\nSEND_OK"
BUSY = f"{SENT}\n10:00:00.000 WARN  Client broker busy"


class _Runs(Pairs):
    """Pairs of clusters whose clients write what is given here: (direct, through) for each run."""

    def __init__(self, *runs: tuple[str, str]) -> None:
        super().__init__(0)
        self._runs = iter(runs)
        self.started = 0

    def _of(self, make: Callable[[], Cluster]) -> Pair:
        self.started += make is not self._make
        self._make = make
        return cast(Pair, self)

    def said(self, _: Scenario) -> tuple[Said, Said, Counter[str]]:
        direct, through = next(self._runs)
        return _said(direct), _said(through), Counter()


def _said(output: str) -> Said:
    return Said.of([output])._replace(has_failed=output.startswith("failed"))


def test_what_differs_in_each_run_is_found() -> None:
    runs = _Runs((SENT, BUSY), (f"{SENT}\nSEND_OK", BUSY), (SENT, BUSY))
    found = runs.compared(SCENARIOS[0])
    assert found.unlike == ["+WARN  Client broker busy"]
    assert runs.started == found.runs == RUNS  # each on new clusters
    assert found.outputs.count(BUSY) == RUNS


@pytest.mark.parametrize("second", [(SENT, SENT), (BUSY, SENT), (f"{SENT}\nSEND_OK", SENT)])
def test_what_differs_once_is_chance(second: tuple[str, str]) -> None:
    found = _Runs((SENT, BUSY), second).compared(SCENARIOS[0])
    assert found.unlike == []
    assert found.runs == 2


def test_a_client_that_fails_once_runs_again() -> None:
    found = _Runs((SENT, "failed: 1"), (SENT, SENT)).compared(SCENARIOS[0])
    assert found.unlike == []
    assert found.runs == 2


def test_clients_that_fail_each_time_are_no_success() -> None:
    through = _Runs((SENT, "failed: a"), (SENT, "failed: b"), (SENT, "failed: c"))
    assert through.compared(SCENARIOS[0]).unlike[-1] == "through: failed"
    both = _Runs(*[("failed: a", "failed: a")] * RUNS).compared(SCENARIOS[0])
    assert both.unlike == ["direct: failed", "through: failed"]


def test_equal_runs_are_not_repeated() -> None:
    assert _Runs((SENT, SENT)).compared(SCENARIOS[0]).runs == 1


def test_ids_and_numbers_do_not_differ() -> None:
    said = [
        Said.of([f"CorrelationId: {one}, InvokeID: {number}, RT: 3ms"])
        for one, number in (
            ("0a1b2c3d-0e4f-4a5b-8c6d-7e8f90a1b2c3", -7012),
            ("c4fe1eee-12cd-4fd3-95f6-7a5ee21c0b9d", 812),
        )
    ]
    assert not said[0].unlike(said[1])


def test_members_that_join_share_messages_by_chance() -> None:
    """A message that the group did not get is a difference, also while members join."""

    def given(client: str, number: int) -> str:
        return (
            f'{{"kind":"given","client":"{client}","msgId":"A{number}"}}\nScalingTopic 1 {number} 0'
        )

    first = Said.of([given("one", 1), given("two", 2)], scaling=True)
    twice = Said.of([f"{given('one', 1)}\n{given('one', 2)}", given("two", 2)], scaling=True)
    lost = Said.of([given("one", 1), ""], scaling=True)
    assert not twice.unlike(first)
    assert sum(lost.unlike(first).values()) == 2


def test_what_is_sent_for_a_while_counts_once() -> None:
    sent = '{"kind":"send","begin":%d,"status":"%s","items":[]}'
    once = Said.of([sent % (1, "SEND_OK")])
    twice = Said.of([f"{sent % (1, 'SEND_OK')}\n{sent % (2, 'SEND_OK')}"])
    other = Said.of([f"{sent % (1, 'SEND_OK')}\n{sent % (2, 'FLUSH_DISK_TIMEOUT')}"])
    assert not twice.unlike(once)
    assert other.unlike(once)


def test_columns_are_as_wide_as_their_addresses() -> None:
    said = [
        Said.of([f"broker-a  {address:<{len(address) + 4}}V5_5_0"])
        for address in ("127.0.0.1:10911", "127.77.220.11:10911")
    ]
    assert not said[0].unlike(said[1])

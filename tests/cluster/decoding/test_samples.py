"""The samples are those of the table, small, described, and tell nothing of a machine."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cases import in_one
from tests.cluster.recording.record import ALL_TOGETHER, LARGEST, check
from tests.cluster.scenarios import SCENARIOS
from tests.cluster.servers.artifacts import HERE

SAMPLES = HERE.parents[1] / "samples"
CAPTURES = sorted(path for path in SAMPLES.glob("*.pcap*") if ".expected." not in path.name)
README = SAMPLES / "README.md"


def test_every_scenario_is_recorded_and_every_capture_has_its_scenario() -> None:
    recorded = {path.name.split(".")[0] for path in CAPTURES}
    assert recorded == {scenario.name for scenario in SCENARIOS}


def test_every_capture_has_a_row_in_the_readme() -> None:
    rows = re.findall(r"`([^`]+\.(?:pcap|pcapng|gz|json))`", README.read_text())
    told = [*SAMPLES.glob("*.faults.json"), *SAMPLES.glob("*.clients.json")]
    files = {path.name for path in (*CAPTURES, *told)}
    assert files <= set(rows)


@in_one([*CAPTURES, *sorted(SAMPLES.glob("*.clients.json"))], lambda path: path.name)
def test_capture_is_small_and_tells_nothing_of_a_machine(path: Path) -> None:
    assert path.stat().st_size <= LARGEST
    check([path])


def test_samples_are_small_together() -> None:
    assert sum(path.stat().st_size for path in SAMPLES.iterdir()) <= ALL_TOGETHER


def test_names_are_unique() -> None:
    names = [scenario.name for scenario in SCENARIOS]
    assert len(names) == len(set(names))

"""Each attack of the catalogue: in little memory, twice the input for twice the work."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.rmqtool.command import ROOT

from .cases import CASES as TABLE
from .catalogue import ATTACKS
from .measure import PEER, Cost
from .peers import PEERS

MORE = 2.3
"""what twice the input may cost"""
SLACK_WORK, SLACK_WRITTEN = 20_000, 65_536

CASES = [
    (name, " ".join(one for one in command if one != "{}"))
    for name, attack in ATTACKS.items()
    for command in attack.commands
] + [(name, PEER) for name in PEERS]


def test_every_named_case_is_held() -> None:
    named = {name for case in TABLE for name in case.attacks}
    assert named == {*ATTACKS, *PEERS}
    for case in TABLE:
        assert case.attacks or case.tests, case
        if not case.attacks:
            assert case.doubling, case
            assert case.memory or all(one.startswith("attacks/") for one in case.tests), case
        for test in case.tests:
            path, _, function = test.partition("::")
            assert f"def {function}(" in (ROOT / "tests" / path).read_text(), test


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[Cost]]:
    command = [sys.executable, "-m", "tests.attacks.measure", str(tmp_path_factory.mktemp("a"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[tuple[str, str], list[Cost]] = {}
    for line in done.stdout.splitlines():
        cost = Cost(**json.loads(line))
        found.setdefault((cost.attack, cost.command), []).append(cost)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("attack", "command"), CASES, ids=lambda one: str(one))
def test_twice_the_input_is_twice_the_work_in_little_memory(
    costs: dict[tuple[str, str], list[Cost]], attack: str, command: str
) -> None:
    start = costs["", command][0].work if command != PEER else 0
    once, twice = costs[attack, command]
    for one in (once, twice):
        assert one.status in ((0,) if command == PEER else (0, 1)), one
        assert "should not have happened" not in one.said
        assert "MemoryError" not in one.said
    least = once.work - start
    assert twice.work - start < MORE * max(least, 0) + SLACK_WORK, (start, once, twice)
    assert twice.written < MORE * once.written + SLACK_WRITTEN, (once, twice)

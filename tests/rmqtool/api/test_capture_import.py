"""`import rmqtool` loads nothing; a question loads what it needs and no more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rmqtool
from tests.test_architecture import HEAVY

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "samples" / "send-sync-5x.pcap"


def loaded(code: str) -> set[str]:
    """Return the modules that a statement loads into a fresh interpreter."""
    program = f"import sys; before = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_it_loads_one_module() -> None:
    assert loaded("import rmqtool") - {"__future__"} == {"rmqtool"}


@pytest.mark.slow
def test_naming_a_capture_loads_nothing_heavy() -> None:
    modules = loaded(f"import rmqtool; rmqtool.read({str(SAMPLE)!r})")
    assert modules & {*HEAVY, "typer", "rich"} == set()


@pytest.mark.slow
def test_reading_rows_loads_no_library_of_frames() -> None:
    modules = loaded(f"import rmqtool; list(rmqtool.read({str(SAMPLE)!r}).exchanges('has topic'))")
    assert modules & {*HEAVY, "typer", "rich", "analytics"} == set()


def test_everything_that_is_promised_is_there() -> None:
    assert set(rmqtool.__all__) <= set(dir(rmqtool))
    for name in rmqtool.__all__:
        assert getattr(rmqtool, name) is not None
    assert not hasattr(rmqtool, "nothing_of_the_kind")

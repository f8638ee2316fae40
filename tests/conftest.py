"""What all tests share: which implementation runs, profiles of hypothesis, tools that are absent.

`RMQTOOL_PURE=1` runs the decode path from its sources although compiled modules are there.
`HYPOTHESIS_PROFILE=thorough` looks much longer for counterexamples.
"""

from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import HealthCheck, settings

from tests.pure import implementation, import_sources, wants_sources

if wants_sources():
    import_sources()

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "ci", max_examples=60, deadline=None, print_blob=True, suppress_health_check=_SLOW
)
settings.register_profile(
    "thorough", max_examples=2000, deadline=None, print_blob=True, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_report_header() -> str:
    return f"decode path: {implementation()}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("tshark") and shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")

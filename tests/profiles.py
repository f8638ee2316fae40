"""Profiles of hypothesis: the suite tries fixed examples, `make explore` random ones, many more.

`make explore` also takes every sample where the suite takes some.

Rules: a counterexample that `make explore` finds becomes an `@example` of its test, so the suite
tries it from then on. A test that needs more or fewer examples than others says so by `examples`,
which keeps the proportion in both profiles.
"""

from __future__ import annotations

import os
from typing import Final

from hypothesis import HealthCheck, settings

DEFAULT: Final = "default"
EXPLORE: Final = "explore"
_NUMBER: Final = {DEFAULT: 30, EXPLORE: 1500}
_UNWANTED: Final = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.function_scoped_fixture,
]
"""health checks that depend on the speed of the machine, or forbid a fixture that keeps nothing"""


def load() -> None:
    """Load the profile that HYPOTHESIS_PROFILE names; the fixed examples without it."""
    for name, number in _NUMBER.items():
        settings.register_profile(
            name,
            max_examples=number,
            deadline=None,
            derandomize=name == DEFAULT,
            print_blob=True,
            suppress_health_check=_UNWANTED,
        )
    settings.load_profile(_profile())


def explores() -> bool:
    """Whether many examples are tried."""
    return _profile() == EXPLORE


def _profile() -> str:
    return os.environ.get("HYPOTHESIS_PROFILE", DEFAULT)


def examples(factor: float) -> settings:
    """Return the settings of a test that tries `factor` times as many examples as others."""
    return settings(max_examples=max(1, round(settings().max_examples * factor)))

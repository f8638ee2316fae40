"""Many cases in one test: one test for each would cost more than what they look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Case = TypeVar("Case")


def in_one(
    cases: Iterable[Case] | Callable[[], Iterable[Case]], name: Callable[[Case], object] = repr
) -> Callable[[Callable[[Case], None]], Callable[[], None]]:
    """Make a test of one case a test of all; a failure says the name of its case.

    A function that returns the cases is called when the test runs.
    """

    def made(test: Callable[[Case], None]) -> Callable[[], None]:
        def test_of_all() -> None:
            for case in cases() if callable(cases) else cases:
                try:
                    test(case)
                except Exception as error:
                    error.add_note(f"case: {name(case)}")
                    raise

        test_of_all.__name__, test_of_all.__doc__ = test.__name__, test.__doc__
        return test_of_all

    return made

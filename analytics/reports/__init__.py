"""Reports, one module each, with lookup by name.

The contract of a report is `analytics.report`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..report import Report

REPORT_MODULES: tuple[str, ...] = (
    "diagnosis",
    "latency",
    "retries",
    "isolation",
    "delivery",
    "consumers",
    "overview",
    "quality",
)
"""Modules here with a `REPORT`, in the order shown by `all`.

`rmqtool report --help` reads them, so this module imports nothing else.
"""


def report_names() -> list[str]:
    """Return the names of all reports, in order."""
    return list(REPORT_MODULES)


def report_of(name: str) -> Report:
    """Return the report with that name; raise KeyError if there is none."""
    if name not in REPORT_MODULES:
        raise KeyError(name)
    report: Report = import_module(f"{__name__}.{name}").REPORT
    return report

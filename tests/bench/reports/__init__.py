"""Measures the reports against DuckDB and pandas: `python -m tests.bench.reports`."""

from __future__ import annotations

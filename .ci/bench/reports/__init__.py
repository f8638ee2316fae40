"""Measures the reports against DuckDB and pandas: `python -m bench.reports`."""

from __future__ import annotations

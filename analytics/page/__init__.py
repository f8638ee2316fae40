"""Render report tables as one self-contained HTML page with charts.

May import the contract in `report` and computed results; no Spark."""

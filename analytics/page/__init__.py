"""Render report tables as one self-contained HTML page with charts.

May import the contract in `report`, computed results in `result` and `compare`, and `dissectors`,
the ladder also `life`; no Spark.
"""

"""Builds tables as Spark SQL text, and executes it in this process with DuckDB.

May import `analytics.schema` and `dissectors.histogram`; knows no Spark. The engine that executes
the same text on Spark is `analytics.spark.engine`.
"""

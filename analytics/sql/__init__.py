"""Build tables as Spark SQL text, and execute it in this process with DuckDB.

The engine that executes the same text on Spark is `analytics.spark.engine`.
"""

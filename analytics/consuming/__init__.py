"""Folds rows of messages and exchanges to what consumers got and did; knows nothing of Spark.

May import `analytics.diagnosis`, `analytics.life`, `analytics.inputs.rows`, `dissectors`.
"""

"""Fold rows of messages and exchanges to what consumers got and did; know nothing of Spark.

May import `report`, `diagnosis`, `life.again`, `inputs.rows` and `dissectors`.
"""

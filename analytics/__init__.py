"""Turn rows of decoded logs into reports, on Spark.

May import `dissectors` and, of the active side, only the pure `replay.fault`.
"""

"""Turn rows of decoded logs into reports, on Spark.

May import `dissectors` and, of `replay`, only the pure `replay.fault`."""

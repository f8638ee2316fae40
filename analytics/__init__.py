"""Turn rows of decoded logs into reports, on Spark."""

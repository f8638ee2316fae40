"""Tells the life of single messages: what happened to them, in order, and what cannot be seen.

Pure: no Spark, no capture; may import `dissectors` only."""

"""Fold rows of messages and exchanges to the activity of consumers; independent of Spark."""

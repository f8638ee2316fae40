"""Captures read by ranges and decoded by shares of their connections, each by another task.

May import the reading of captures, the conversations and the whole decode."""

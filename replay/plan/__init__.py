"""Decide which captured messages are replayed, when, and with which changes."""

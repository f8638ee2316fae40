"""Decode replication between brokers: what a slave fetched and how far behind it is.

Knows no capture; may import `expert` and `histogram`."""

"""Decode replication between brokers: what a slave fetched and how far behind it is.

May import `expert` and `histogram`; knows no capture.
"""

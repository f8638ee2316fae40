"""Decode replication between brokers: transfers of a slave, and its lag."""

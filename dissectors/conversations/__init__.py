"""Decode one TCP connection: what it speaks, its two directions, its commands, its row.

May import `tcp`, `remoting`, `replication` and `rows`; pairs no requests with responses."""

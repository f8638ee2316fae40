"""Decode one TCP connection: what it speaks, its two directions, its commands, its row.

May import `tcp`, `tls`, `remoting`, `replication`, `http2`, `grpc`, `rows` and the modules beside;
pairs no requests with responses.
"""

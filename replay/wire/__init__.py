"""Requests over connections, without I/O: operations, connections, channels."""

"""Assemble gRPC calls, without I/O: their messages, and their row columns."""

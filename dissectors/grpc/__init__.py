"""Put calls of gRPC together, without I/O: their messages, and what rows have of them.

May import `http2`, `budget`, `remoting.command`, `remoting.headers` and `remoting.row_facts`.
"""

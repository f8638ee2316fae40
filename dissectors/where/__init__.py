"""Turn a filter expression (`--where`) into a test of rows.

May import `rows`, `remoting`, `grpc` and the modules beside.
"""

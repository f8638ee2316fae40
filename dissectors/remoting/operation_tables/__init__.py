"""Tables of operations: contents of each request code, and meaning of each response code.

Imports nothing else of the project but the reader of such tables.
"""

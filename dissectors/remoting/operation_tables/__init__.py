"""Tables of operations: what each request code carries, and what each response code says.

Imports nothing else of the project but the reader of such tables.
"""

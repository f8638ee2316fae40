"""The fields of every header class, as text; `headers.py` is what others import.

Imports nothing else of the project but the reader of such tables.
"""

"""Tables of the protocol: what an operation carries, and the fields of every header class.

Imports nothing else of the project. One module per family; `codes.py` and `headers.py` put them
together and are what others import.
"""

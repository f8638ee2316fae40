"""Tables of the protocol: what an operation carries, and the fields of every header class.

One module a family; `codes.py` and `headers.py` put them together and are what others import.
"""

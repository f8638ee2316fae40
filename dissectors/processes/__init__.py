"""Decode on several processes: start them, give each its share, put together what they send.

May import `decode`, `conversations`, `message_rows`, `rows`, `where`, `tcp` and the modules
beside.
"""

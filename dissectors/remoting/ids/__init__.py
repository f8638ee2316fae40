"""Take identifiers apart: message ids, POP receipts, recall handles, trace contexts.

May import `endpoint` and `remoting.topic_names`.
"""

"""Take identifiers apart: message ids, POP receipts, recall handles, trace contexts."""

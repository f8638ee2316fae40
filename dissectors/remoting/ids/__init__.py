"""Take identifiers apart: message ids, POP receipts, recall handles, trace contexts.

May import `dissectors.endpoint` and `dissectors.remoting.topic_names`."""

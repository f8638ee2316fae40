"""Bodies that rows of exchanges need; all others are skipped.

Batch sends and responses with messages are counted, heartbeats name groups, routes and cluster
descriptions name brokers; some bodies give facts (`row_facts`).
"""

from __future__ import annotations

from typing import Final

from .code_sets import MESSAGE_BODIES
from .codes import RequestCode, ResponseCode
from .row_facts.bodies import BODY_REQUESTS

COUNTED_REQUEST: Final = int(RequestCode.SEND_BATCH_MESSAGE)
"""The request with counted messages."""
NAMING_REQUEST: Final = int(RequestCode.HEART_BEAT)
"""The request with group names."""
WANTED_REQUESTS: Final = (COUNTED_REQUEST, *BODY_REQUESTS)
"""Requests with bodies for rows of exchanges."""
CARRYING_REQUESTS: Final = (*WANTED_REQUESTS, *MESSAGE_BODIES)
"""Requests with bodies for rows of exchanges or of messages."""
WANTED_RESPONSE: Final = int(ResponseCode.SUCCESS)
"""The only response code with bodies for rows."""
MESSAGE_FIELDS: Final = ("nextBeginOffset", "restNum", "indexLastUpdate")
"""Ext fields that identify responses to pull, pop, and query: their bodies have messages."""

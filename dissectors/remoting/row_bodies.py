"""Which bodies a row of an exchange takes something from; all others are passed over.

Batch sends and responses with messages are counted, heartbeats name their groups, routes and
descriptions of a cluster name brokers; some bodies give facts (`row_facts`).
RocketMQ: SendMessageRequestHeader.batch, HeartbeatData, PullMessageResponseHeader,
PopMessageResponseHeader, QueryMessageResponseHeader, TopicRouteData, ClusterInfo.
"""

from __future__ import annotations

from typing import Final

from .code_sets import MESSAGE_BODIES
from .codes import RequestCode, ResponseCode
from .row_facts.bodies import BODY_REQUESTS

COUNTED_REQUEST: Final = int(RequestCode.SEND_BATCH_MESSAGE)
"""The request whose messages are counted."""
NAMING_REQUEST: Final = int(RequestCode.HEART_BEAT)
"""The request whose groups are named."""
WANTED_REQUESTS: Final = (COUNTED_REQUEST, *BODY_REQUESTS)
"""Requests of whose body a row needs something."""
CARRYING_REQUESTS: Final = (*WANTED_REQUESTS, *MESSAGE_BODIES)
"""Requests of whose body a row needs something, or rows of messages do."""
WANTED_RESPONSE: Final = int(ResponseCode.SUCCESS)
"""The only response code of whose body a row needs something."""
MESSAGE_FIELDS: Final = ("nextBeginOffset", "restNum", "indexLastUpdate")
"""Ext fields by which the responses to pull, pop and query are told: their bodies have messages."""

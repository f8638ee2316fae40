"""Names of groups that mean something to RocketMQ, and what names may consist of.

RocketMQ: MixAll, TraceConstants, TopicValidator, Validators.
"""

from __future__ import annotations

import re
from typing import Final

INNER_PRODUCER: Final = "CLIENT_INNER_PRODUCER"
"""producer group that each Java client has"""
TRACER_PREFIX: Final = "_INNER_TRACE_PRODUCER"
"""of the producer groups that send traces, to a topic of any name"""
NAME: Final = re.compile(r"[%|a-zA-Z0-9_-]+")
"""what a topic or a group is called"""

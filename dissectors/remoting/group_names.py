"""Group names with a meaning to RocketMQ, and the pattern of names.

RocketMQ: MixAll, TraceConstants, TopicValidator, Validators.
"""

from __future__ import annotations

import re
from typing import Final

INNER_PRODUCER: Final = "CLIENT_INNER_PRODUCER"
"""producer group of every Java client"""
TRACER_PREFIX: Final = "_INNER_TRACE_PRODUCER"
"""prefix of producer groups that send traces, to any topic"""
NAME: Final = re.compile(r"[%|a-zA-Z0-9_-]+")
"""valid names of topics and groups"""

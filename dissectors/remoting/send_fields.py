"""Wire names of header fields: sends in both forms, and other requests.

Those of sends come from the header tables. The first form has Java's names, the second a letter for
each; code that reads or writes sends uses the names of the form of the request code. RocketMQ:
SendMessageRequestHeader, SendMessageRequestHeaderV2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from .code_sets import V2_SENDS
from .header_tables import HEADER_CLASSES


class SendFields(NamedTuple):
    """Ext field names of one form, in the order of producers."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: str
    queue_id: str
    sys_flag: str
    born_timestamp: str
    flag: str
    properties: str
    reconsume_times: str
    unit_mode: str
    max_reconsume_times: str
    batch: str
    broker_name: str
    """in the first form a field that all requests share"""


RPC_BROKER_NAME: Final = "bname"
"""Broker name field that all requests share."""


TOPICS: Final = ("topic", "originTopic")
"""Topic fields of other requests: the first non-empty one counts."""
GROUPS: Final = ("consumerGroup", "group", "producerGroup")
"""Group fields of other requests; the first non-empty one counts."""
BROKERS: Final = (RPC_BROKER_NAME, "brokerName")
"""Broker fields of other requests; the first non-empty one counts."""
OFFSETS: Final = ("queueOffset", "commitOffset", "offset")
"""Queue offset fields of other requests; the first non-empty one counts."""

DEFAULT_REGION: Final = "DefaultRegion"
"""Default MSG_REGION in responses of a broker (MixAll.DEFAULT_TRACE_REGION_ID)."""


def first_of(fields: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    """Return the first non-empty field of these, or the value of the last one."""
    value = None
    for name in names:
        value = fields.get(name)
        if value:
            break
    return value


def _java_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _fields_of(header: str) -> SendFields:
    wires = {field.name: field.wire for field in HEADER_CLASSES[header]}
    wires.setdefault("brokerName", wires[RPC_BROKER_NAME])
    return SendFields(*(wires[_java_name(name)] for name in SendFields._fields))


V1: Final = _fields_of("SendMessageRequestHeader")
V2: Final = _fields_of("SendMessageRequestHeaderV2")


def send_fields_of(code: int) -> SendFields:
    """Return the field names of a send with this request code; the long ones for other codes."""
    return V2 if code in V2_SENDS else V1

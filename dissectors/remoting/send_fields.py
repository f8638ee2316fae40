"""Names of the fields of a send header on the wire, in both of its forms, and those of others.

Those of a send come from the header tables. The first form has Java's names, the second a letter
for each; code that reads or writes sends takes the names of the form that the request code asks
for.
RocketMQ: SendMessageRequestHeader, SendMessageRequestHeaderV2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from .code_sets import V2_SENDS
from .header_tables.classes import HEADER_CLASSES


class SendFields(NamedTuple):
    """Ext field names of one form, in the order in which producers write them."""

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
    """the first form has it among the fields of all requests"""


RPC_BROKER_NAME: Final = "bname"
"""Broker name among the fields that all requests have in common."""


TOPICS: Final = ("topic", "originTopic")
"""Fields of other requests that name the topic: the first that says something counts."""
GROUPS: Final = ("consumerGroup", "group", "producerGroup")
"""Fields of other requests that name the group, likewise."""
BROKERS: Final = (RPC_BROKER_NAME, "brokerName")
"""Fields of other requests that name the broker, likewise."""
OFFSETS: Final = ("queueOffset", "commitOffset", "offset")
"""Fields of other requests that say a queue offset, likewise."""

DEFAULT_REGION: Final = "DefaultRegion"
"""MSG_REGION in the answer of a broker that was told none (MixAll.DEFAULT_TRACE_REGION_ID)."""


def first_of(fields: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    """Return the first of these fields that is not empty, else what the last one is."""
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
    """Return the names in a send with this request code; the long ones for any other code."""
    return V2 if code in V2_SENDS else V1

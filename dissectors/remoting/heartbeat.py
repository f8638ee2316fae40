"""The groups that a heartbeat announces: the one column of a row that comes from a JSON body.

RocketMQ: HeartbeatData, ProducerData, ConsumerData.
"""

from __future__ import annotations

import msgspec

MAX_GROUPS = 64
"""groups of one heartbeat that are named; a client process has a handful"""


class _Member(msgspec.Struct):
    groupName: str = ""


class _Heartbeat(msgspec.Struct):
    consumerDataSet: list[_Member] = []
    producerDataSet: list[_Member] = []


_decoder = msgspec.json.Decoder(_Heartbeat)


def groups_of(body: bytes) -> str | None:
    """Consumer groups, then producer groups, each sorted, joined by commas; None for none."""
    try:
        heartbeat = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    consumers = sorted({member.groupName for member in heartbeat.consumerDataSet})
    producers = sorted({member.groupName for member in heartbeat.producerDataSet})
    names = [name for name in (*consumers, *producers) if name]
    return ",".join(dict.fromkeys(names[:MAX_GROUPS])) or None

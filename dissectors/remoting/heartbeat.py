"""The groups that a heartbeat announces: the one column of a row that comes from a JSON body.

RocketMQ: HeartbeatData, ProducerData, ConsumerData.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from ..foreign import read_json
from .bodies.spelling import with_java_names
from .fastjson.codec import DEPTH_LIMIT, decode_json
from .fastjson.spelling import ignored_by_fastjson2

HEARTBEAT_CLASSES: Final = ("HeartbeatData", "ProducerData", "ConsumerData", "SubscriptionData")
"""the classes of a heartbeat's body"""
MAX_GROUPS: Final = 64
"""groups of one heartbeat that are named; a client process has a handful"""


class Groups(NamedTuple):
    """What a heartbeat says of its groups."""

    names: str | None
    """consumer groups, then producer groups, each sorted, joined by commas; None for none"""
    problem: str | None = None
    """why not all of the body was understood; None when all was"""
    note: str | None = None
    """how releases of RocketMQ differ in reading it; None: they do not"""


class _Member(msgspec.Struct, forbid_unknown_fields=True):
    """A group as Java writes it; what is not wanted is passed over."""

    groupName: str = ""
    consumeFromWhere: msgspec.Raw = msgspec.Raw()
    consumeType: msgspec.Raw = msgspec.Raw()
    messageModel: msgspec.Raw = msgspec.Raw()
    subscriptionDataSet: msgspec.Raw = msgspec.Raw()
    unitMode: msgspec.Raw = msgspec.Raw()


class _Heartbeat(msgspec.Struct, forbid_unknown_fields=True):
    consumerDataSet: list[_Member] = []
    producerDataSet: list[_Member] = []
    clientID: msgspec.Raw = msgspec.Raw()
    heartbeatFingerprint: msgspec.Raw = msgspec.Raw()
    withoutSub: msgspec.Raw = msgspec.Raw()


_decoder: Final = msgspec.json.Decoder(_Heartbeat)


def groups_of(body: bytes) -> Groups:
    """Return the groups that a heartbeat's body names; never raises."""
    # Few brackets cannot be nested deep: the typed decoder passes over what is not wanted.
    if body.count(b"{") + body.count(b"[") <= DEPTH_LIMIT:
        heartbeat = read_json(_decoder, body)
        if heartbeat is not None:
            consumers = {member.groupName for member in heartbeat.consumerDataSet}
            producers = {member.groupName for member in heartbeat.producerDataSet}
            return Groups(_joined(consumers, producers))
    result = decode_json(body)
    if not isinstance(result.value, dict):
        return Groups(None, result.problem or "no heartbeat but a single value")
    value, others = with_java_names(result.value, HEARTBEAT_CLASSES)
    consumers = _names_in(value.get("consumerDataSet"))
    producers = _names_in(value.get("producerDataSet"))
    note = ignored_by_fastjson2(others) if others else None
    return Groups(_joined(consumers, producers), result.problem, note)


def _names_in(members: object) -> set[str]:
    found = members if isinstance(members, list) else [members]  # one alone, as Java reads it
    names = (member.get("groupName") for member in found if isinstance(member, dict))
    return {str(name) for name in names if isinstance(name, str) or type(name) is int}


def _joined(consumers: set[str], producers: set[str]) -> str | None:
    names = [name for name in (*sorted(consumers), *sorted(producers)) if name]
    return ",".join(dict.fromkeys(names[:MAX_GROUPS])) or None

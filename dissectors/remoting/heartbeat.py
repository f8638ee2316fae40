"""Groups in a heartbeat: the only row column from a JSON body.

RocketMQ: HeartbeatData, ProducerData, ConsumerData.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from ..foreign import read_json
from .bodies.classes import with_java_names
from .fastjson.codec import decode_json
from .fastjson.reader import DEPTH_LIMIT, ignored_by_fastjson2

HEARTBEAT_CLASSES: Final = ("HeartbeatData", "ProducerData", "ConsumerData", "SubscriptionData")
"""classes in the body of a heartbeat"""
MAX_GROUPS: Final = 64
"""maximum groups listed per heartbeat; a client process has a handful"""


class Groups(NamedTuple):
    """Groups of a heartbeat."""

    names: str | None
    """consumer groups, then producer groups, each sorted, joined with commas; or None"""
    problem: str | None = None
    """why the body was not decoded completely, or None"""
    note: str | None = None
    """how RocketMQ releases differ in reading it, or None"""


class _Member(msgspec.Struct, forbid_unknown_fields=True):
    """A group as Java writes it; unneeded members are skipped."""

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
_text_decoder: Final = msgspec.json.Decoder(str)


def groups_of(body: bytes) -> Groups:
    """Return the groups in the body of a heartbeat; never raises."""
    heartbeat = _heartbeat_of(body)
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


def client_id_of(body: bytes) -> str | None:
    """Return the client ID in the body of a heartbeat, or None; never raises."""
    heartbeat = _heartbeat_of(body)
    if heartbeat is not None:
        return read_json(_text_decoder, bytes(heartbeat.clientID))
    value = decode_json(body).value
    name = value.get("clientID") if isinstance(value, dict) else None
    return name if isinstance(name, str) else None


def _heartbeat_of(body: bytes) -> _Heartbeat | None:
    """Return a heartbeat as Java writes it, or None for others."""
    # Few brackets cannot nest deeply; the depth of members that are skipped is not checked.
    if body.count(b"{") + body.count(b"[") > DEPTH_LIMIT:
        return None
    return read_json(_decoder, body)


def _names_in(members: object) -> set[str]:
    # Java also accepts a single group instead of a list.
    groups = members if isinstance(members, list) else [members]
    names = (member.get("groupName") for member in groups if isinstance(member, dict))
    return {str(name) for name in names if isinstance(name, str) or type(name) is int}


def _joined(consumers: set[str], producers: set[str]) -> str | None:
    names = [name for name in (*sorted(consumers), *sorted(producers)) if name]
    return ",".join(dict.fromkeys(names[:MAX_GROUPS])) or None

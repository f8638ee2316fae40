"""The groups that a heartbeat announces: the one column of a row that comes from a JSON body.

RocketMQ: HeartbeatData, ProducerData, ConsumerData.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from ..foreign import read_json
from .fastjson.codec import DEPTH_LIMIT, decode_json

MAX_GROUPS: Final = 64
"""groups of one heartbeat that are named; a client process has a handful"""


class Groups(NamedTuple):
    """What a heartbeat says of its groups."""

    names: str | None
    """consumer groups, then producer groups, each sorted, joined by commas; None for none"""
    problem: str | None = None
    """why not all of the body was understood; None when all was"""


class _Member(msgspec.Struct):
    groupName: str = ""


class _Heartbeat(msgspec.Struct):
    consumerDataSet: list[_Member] = []
    producerDataSet: list[_Member] = []


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
    consumers = _names_in(result.value.get("consumerDataSet"))
    producers = _names_in(result.value.get("producerDataSet"))
    return Groups(_joined(consumers, producers), result.problem)


def _names_in(members: object) -> set[str]:
    if not isinstance(members, list):
        return set()
    names = (member.get("groupName") for member in members if isinstance(member, dict))
    return {name for name in names if isinstance(name, str)}


def _joined(consumers: set[str], producers: set[str]) -> str | None:
    names = [name for name in (*sorted(consumers), *sorted(producers)) if name]
    return ",".join(dict.fromkeys(names[:MAX_GROUPS])) or None

"""Bodies that are not as Java writes them: read as RocketMQ's own classes read them."""

from __future__ import annotations

import pytest

from dissectors.findings import FindingKind
from dissectors.remoting.bodies.registry import decode_body
from dissectors.remoting.heartbeat import groups_of
from dissectors.remoting.row_facts.bodies import request_body_facts
from tests.traffic.commands import Command
from tests.traffic.decoded import decode_segments
from tests.traffic.talk import Talk

from ..odd_bodies import BODIES, DOTNET, HEARTBEAT, LOCK, recorded

_, OLD, NEW = recorded()
CODES = {HEARTBEAT: 34, LOCK: 41}
NO_TYPES = "5}"
"""what is in a body of which a value stays of another type than Java's"""


def holds(wanted: object, found: object) -> bool:
    """Whether all that was found is what Java makes of it; Java's defaults are left out."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        ignored = {"more"} | ({"GroupName"} if "groupName" in found else set())
        known = {
            name: one for name, one in found.items() if one is not None and name not in ignored
        }
        return all(name in wanted and holds(wanted[name], one) for name, one in known.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(holds, wanted, found))
    return wanted == found


def members(answer: dict[str, object] | None, name: str) -> list[str]:
    """The groups that Java's object has."""
    listed = (answer or {}).get(name) or []
    assert isinstance(listed, list)
    return sorted(one["groupName"] for one in listed if one.get("groupName"))


@pytest.mark.parametrize("index", range(len(BODIES)))
def test_the_body_has_the_members_of_javas(index: int) -> None:
    name, text = BODIES[index]
    body = decode_body(CODES[name], False, 0, text.encode(), {})
    old, new = OLD[index], NEW[index]
    assert old is not None
    value = body.value
    assert isinstance(value, dict)
    if isinstance(value.get("producerDataSet"), dict):
        value["producerDataSet"] = [value["producerDataSet"]]
    assert holds(old, value) or NO_TYPES in text
    ignored = [note for note in body.notes if "(fastjson2) ignores" in note]
    assert bool(ignored) == (old != new)


@pytest.mark.parametrize("index", [i for i, (name, _) in enumerate(BODIES) if name == HEARTBEAT])
def test_the_groups_are_javas(index: int) -> None:
    body = BODIES[index][1].encode()
    old, new = OLD[index], NEW[index]
    groups = groups_of(body)
    names = dict.fromkeys([*members(old, "consumerDataSet"), *members(old, "producerDataSet")])
    assert groups.names == (",".join(names) or None)
    assert groups.problem is None
    assert (groups.note is not None) == (old != new)
    assert old is not None
    assert f"client={old['clientID']}" in request_body_facts(34, body)


def test_a_lock_of_a_client_in_dotnet() -> None:
    for name, text in BODIES:
        if name == LOCK:
            facts = request_body_facts(41, text.encode())
            assert facts == ["client=c", "group=G", "queues_asked=1"]


def test_a_heartbeat_of_a_client_in_dotnet() -> None:
    """Its row names the groups and its finding the releases that ignore it."""
    heartbeat = Command(34, 1, language="DOTNET", version=453, body=DOTNET.encode())
    answer = Command(0, 1, 1)
    talk = Talk().open().say(0, heartbeat.frame).say(1, answer.frame)
    outcome = decode_segments(talk.segments)
    (pdu,) = [pdu for pdu in outcome.pdus if pdu.head.code == 34]
    assert pdu.groups == "G,P"
    assert pdu.facts is not None
    assert "subscription=G T TAG *" in pdu.facts
    assert outcome.kinds == {FindingKind.RELEASES_DIFFER: 1}
    assert outcome.findings[0].detail.startswith(
        "RocketMQ 5.4 and later (fastjson2) ignores ClientID"
    )

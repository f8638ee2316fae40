"""The class tables against the facts: every class, member and enum value."""

from __future__ import annotations

import re

from dissectors.remoting.bodies.classes import CLASSES, ENUMS, ShortMember, java_type_of

from ..protocol_facts import table

ADDED = {
    "ConsumerOffsetSerializeWrapper": {"groupTopicMap", "pullOffsetTable"},  # of the manager object
    "DataVersion": {"timestatmp"},  # so spelled in 3.2.6
    "QueueData": {"topicSynFlag"},  # 3.2.6 to 4.6.1
    "TopicRouteData": {"topicQueueMappingInfo"},  # of a NameServer that is not Java's
}
LATER = {"PopCheckPoint": {"sp"}, "MessageModel": {"LITE_SELECTIVE"}}
"""Members and constants of 5.4 and 5.5, which tests/test_reflection_bodies.py compares."""
OF_LITE_TOPICS = {
    *("LiteSubscriptionCtlRequestBody", "LiteSubscriptionDTO", "OffsetOption", "ClientGroup"),
    *("GetBrokerLiteInfoResponseBody", "GetParentTopicInfoResponseBody", "LiteLagInfo"),
    *("GetLiteTopicInfoResponseBody", "GetLiteClientInfoResponseBody"),
    "GetLiteGroupInfoResponseBody",
}
"""of 5.5, which tests/test_reflection_bodies.py compares"""
NOT_IN_THE_FACTS = {"GetBrokerClusterAclConfigResponseBody", "PlainAccessConfig"}  # ACL 1.0


def facts_type(text: str) -> str:
    """The type of the facts as the tables write it: collections by interface, plain scalars."""
    known = {"AtomicLong": "long", "Properties": "Map<String, String>", "long[]": "List<Long>"}
    if text in known:
        return known[text]
    text = re.sub(r"\b(Concurrent|ConcurrentHash|Hash|Tree)Map\b", "Map", text)
    return re.sub(r"\b(Hash|Tree)Set\b", "Set", text)


def own_type(cell: str | ShortMember) -> str:
    return cell.java_type if isinstance(cell, ShortMember) else cell


def test_every_class_and_member_of_the_facts() -> None:
    bodies = table("bodies.json")
    names = set()
    for name, entry in bodies.items():
        assert isinstance(entry, dict)
        if "enum" in entry:
            known = [one for one in ENUMS[name] if one not in LATER.get(name, ())]
            assert known == entry["enum"]
            continue
        names.add(name)
        expected = {field["json"]: facts_type(field["java_type"]) for field in entry["fields"]}
        found = {member: own_type(cell) for member, cell in CLASSES[name].items()}
        for member in ADDED.get(name, set()) | LATER.get(name, set()):
            assert member not in expected
            del found[member]
        assert found == expected, name
    assert set(CLASSES) == names | NOT_IN_THE_FACTS | OF_LITE_TOPICS
    assert len(bodies) == 112


def test_every_type_is_known() -> None:
    for members in CLASSES.values():
        for cell in members.values():
            java_type_of(own_type(cell))


def test_members_are_in_the_order_of_the_writer() -> None:
    for name, members in CLASSES.items():
        assert list(members) == sorted(members), name


def test_long_names_do_not_meet_other_members() -> None:
    for members in CLASSES.values():
        longs = [cell.long_name for cell in members.values() if isinstance(cell, ShortMember)]
        assert len(set(longs)) == len(longs)
        assert not set(longs) & set(members)

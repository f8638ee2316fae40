"""Bytes and texts that the Java classes wrote: some spelled here, all of them in the facts.

The spelled ones let the tests stand by themselves; where the facts are at hand, every vector is
tested as well.
"""

from __future__ import annotations

from .protocol_facts import table

STORED_V4 = bytes.fromhex(
    "0000009ddaa320a73610a6860000000300000000000000000000002a00000000075bcd1500000000"
    "0000018bcfe568000a0000090000c8220000018bcfe5687b0a00000100002a9f00000000"
    "0000000000000000" + "0000000568656c6c6f" + "09546f70696354657374" + "0034"
    "554e49515f4b45590137463030303030313044394331384234414143323742314333443543303030300254414753"
    "015461674102"
)
"""A V1 record with IPv4 hosts: topic TopicTest, body hello."""

STORED_V6 = bytes.fromhex(
    "000000b5daa320a73610a6860000000300000000000000000000002a00000000075bcd1500000030"
    "0000018bcfe56800" + "fd000000000000000000000000000009" + "0000c822" + "0000018bcfe5687b"
    "fd000000000000000000000000000001" + "00002a9f" + "00000000" + "0000000000000000"
    "0000000568656c6c6f" + "09546f70696354657374" + "0034"
    "554e49515f4b45590137463030303030313044394331384234414143323742314333443543303030300254414753"
    "015461674102"
)
"""The same with IPv6 hosts."""

BATCH = bytes.fromhex(
    "00000035" + "00000000" * 3 + "00000003" + "6f6e65" + "001c"
    "4b455953016b31025741495401747275650254414753015461674102"
    "0000002d" + "00000000" * 3 + "00000003" + "74776f" + "0014"
    "5741495401747275650254414753015461674202"
)
"""A batch of two messages."""

REGISTRATION = bytes.fromhex(
    "78da636060b0a8564ace2fcd2b492d52b232d0512a2e492c490d4b2d2acecccf030b9464e6a60205730b94ac0ccd0d"
    "10a09681818111886543f20b329343806a144c80d04c21d8d3cfddc7353ec4d15da11aa488293a1648320000521b1b"
    "60"
)
"""A compressed registration of one topic."""

ROUTE = (
    '{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},'
    '"brokerName":"broker-a","cluster":"DefaultCluster","enableActingMaster":false}],'
    '"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,'
    '"topicSysFlag":0,"writeQueueNums":4}]}'
)
"""A route with bare integer keys."""

RESET_OFFSET = '{"offsetTable":{{"brokerName":"broker-a","queueId":2,"topic":"TopicTest"}:123}}'
"""A map whose key is an object."""

POP_TABLES = (
    '{"mqPopTable":{{"brokerName":"b","queueId":2,"topic":"T"}:{"droped":false}},'
    '"mqTable":{{"$ref":"$.mqPopTable.null"}:{"locked":true}}}'
)
"""A reference that is a map key, to a place without a name."""


def _group(name: str) -> list[dict[str, str]]:
    found = table("vectors.json")[name]
    assert isinstance(found, list)
    return found


def stored_vectors() -> list[dict[str, str]]:
    """Stored messages: name, hex, offsetMsgId."""
    return _group("stored_messages")


def json_vectors() -> list[dict[str, str]]:
    """JSON bodies: name, text."""
    return _group("json_bodies")


def text_vectors() -> dict[str, str]:
    """POP, recall and trace strings by name."""
    return {vector["name"]: vector["value"] for vector in _group("strings")}


def other_vectors() -> dict[str, dict[str, str]]:
    """All other vectors by name."""
    return {vector["name"]: vector for vector in _group("other")}

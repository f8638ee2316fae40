"""Meanings of numbers: flag bits, permissions, levels, times, and their header fields."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.flags import (
    DELAY_LEVELS,
    MEANINGS,
    PULL_FLAGS,
    TRANSACTION_TYPES,
    UNIT_FLAGS,
    delay_of,
    describe_broker_id,
    describe_command_flag,
    describe_duration_ms,
    describe_perm,
    describe_send_back_level,
    describe_time_ms,
    meaning_of,
)
from dissectors.remoting.header_tables import CLASSLESS, FieldType
from dissectors.remoting.headers import HEADERS

from .protocol_facts import table


def test_message_sys_flag() -> None:
    describe = partial(meaning_of, "SendMessageRequestHeader", "sysFlag")
    assert describe(0) is None
    assert describe(0x04) == "TRANSACTION_PREPARED"
    assert describe(0x30) == "BORNHOST_V6|STOREHOST_V6"
    assert describe(0x301) == "COMPRESSED|COMPRESSION_ZLIB"


def test_bits_of_other_flags() -> None:
    describe = partial(meaning_of, "PullMessageRequestHeader", "sysFlag")
    assert describe(6) == "SUSPEND|SUBSCRIPTION"
    assert describe(0) is None
    assert describe(0x41) == "COMMIT_OFFSET|0x40"
    assert meaning_of("AnyHeader", "topicSysFlag", 3) == "UNIT|UNIT_SUB"
    assert describe_command_flag(0) == ["REQUEST"]
    assert describe_command_flag(1) == ["RESPONSE"]
    assert describe_command_flag(2) == ["REQUEST", "ONEWAY"]
    assert describe_command_flag(3) == ["RESPONSE", "ONEWAY"]


@pytest.mark.parametrize(
    ("perm", "text"),
    [(0, "---"), (2, "-W-"), (4, "R--"), (6, "RW-"), (7, "RWX"), (14, "RW- PRIORITY"),
     (22, "RW- 0x10")],
)  # fmt: skip
def test_permissions(perm: int, text: str) -> None:
    assert describe_perm(perm) == text


def test_transactions() -> None:
    assert [TRANSACTION_TYPES.get(value) for value in (0, 4, 8, 12, 1)] == [
        "NOT_TYPE",
        "PREPARED",
        "COMMIT",
        "ROLLBACK",
        None,
    ]


def test_delay_levels() -> None:
    assert len(DELAY_LEVELS) == 18
    assert (delay_of(1), delay_of(3), delay_of(5), delay_of(18)) == ("1s", "10s", "1m", "2h")
    assert delay_of(99) == "2h"
    assert delay_of(0) is delay_of(-1) is None
    assert describe_send_back_level(-1) == "dead-letter queue"
    assert describe_send_back_level(0) == "the broker decides by reconsumeTimes"
    assert describe_send_back_level(4) == "30s"


def test_times_and_durations() -> None:
    assert describe_time_ms(1700000000123) == "2023-11-14T22:13:20.123Z"
    assert describe_time_ms(253402300799999) == "9999-12-31T23:59:59.999Z"
    assert describe_time_ms(0) is describe_time_ms(-5) is describe_time_ms(1 << 62) is None
    assert describe_duration_ms(60000) == "1m"
    assert describe_duration_ms(90500) == "1m 30s 500ms"
    assert describe_duration_ms(90061000) == "1d 1h 1m 1s"
    assert describe_duration_ms(999) is None


def test_broker_ids() -> None:
    assert [describe_broker_id(value) for value in (0, 1, -1)] == ["master", "slave", None]


@pytest.mark.parametrize(
    ("header", "field", "value", "text"),
    [
        ("PullMessageRequestHeader", "sysFlag", 6, "SUSPEND|SUBSCRIPTION"),
        ("SendMessageRequestHeaderV2", "sysFlag", 4, "TRANSACTION_PREPARED"),
        ("SendMessageRequestHeaderV2", "sysFlag", 0, None),
        ("SendMessageRequestHeaderV2", "queueId", 3, None),
        ("PopMessageRequestHeader", "queueId", -1, "any queue"),
        ("PopMessageRequestHeader", "initMode", 1, "MAX"),
        ("PopMessageResponseHeader", "reviveQid", 999, "ordered consumption"),
        ("CreateTopicRequestHeader", "perm", 6, "RW-"),
        ("EndTransactionRequestHeader", "commitOrRollback", 8, "COMMIT"),
        ("PullMessageResponseHeader", "suggestWhichBrokerId", 1, "slave"),
        ("PullMessageResponseHeader", "forbiddenType", 2, "by the consumer group"),
        ("PullMessageRequestHeader", "requestSource", -1, "SDK"),
        ("PullMessageRequestHeader", "suspendTimeoutMillis", 15000, "15s"),
        ("RegisterBrokerRequestHeader", "brokerId", 0, "master"),
        ("ElectMasterRequestHeader", "brokerId", 1, None),
        ("ResetOffsetRequestHeader", "timestamp", -1, "the end of the queue"),
        ("ConsumerSendMsgBackRequestHeader", "delayLevel", 3, "10s"),
        (None, "bornTimestamp", 1700000000000, "2023-11-14T22:13:20.000Z"),
        ("SendMessageRequestHeaderV2", "bornTimestamp", "soon", None),
        ("SendMessageRequestHeaderV2", "unitMode", True, None),
        (None, "topic", "T", None),
    ],
)
def test_meanings_of_header_fields(
    header: str | None, field: str, value: object, text: str | None
) -> None:
    assert meaning_of(header, field, value) == text


def test_meanings_are_of_fields_that_exist_and_hold_numbers() -> None:
    numbers = {FieldType.INT, FieldType.LONG}
    tables = (*HEADERS.values(), *CLASSLESS.values())
    everywhere = {f.name for fields in tables for f in fields if f.type in numbers}
    for header, field in MEANINGS:
        if header == "*":
            assert field in everywhere, field
        else:
            assert field in {f.name for f in HEADERS[header] if f.type in numbers}, (header, field)


@given(st.integers())
def test_any_number_can_be_described(value: int) -> None:
    assert isinstance(describe_command_flag(value), list)
    assert isinstance(describe_perm(value), str)
    for header, field in MEANINGS:
        meaning = meaning_of(None if header == "*" else header, field, value)
        assert meaning is None or meaning


def test_bits_are_those_of_the_protocol() -> None:
    constants = table("constants.json")
    pull = constants["pull_sys_flag"]
    topic = constants["topic_sys_flag"]
    perm = constants["perm"]
    assert isinstance(pull, dict)
    assert isinstance(topic, dict)
    assert isinstance(perm, dict)
    assert {f"FLAG_{name}": bit for bit, name in PULL_FLAGS.items()} == pull
    assert {f"FLAG_{name}": bit for bit, name in UNIT_FLAGS.items()} == topic
    assert describe_perm(perm["PERM_READ"] | perm["PERM_INHERIT"]) == "R-X"
    assert describe_perm(perm["PERM_WRITE"] | perm["PERM_PRIORITY"]) == "-W- PRIORITY"

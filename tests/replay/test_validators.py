"""What is refused before it is sent: names, bodies, batches and properties."""

from __future__ import annotations

import pytest

from replay.message import Message
from replay.validators import (
    NOT_FOR_SENDS,
    why_not_batch,
    why_not_encoded,
    why_not_group,
    why_not_message,
    why_not_topic,
    why_not_user_properties,
)

MOST = 4 * 1024 * 1024


@pytest.mark.parametrize("topic", ["T", "a" * 127, "%RETRY%g", "ns%topic", "a|b_c-9"])
def test_topics_that_java_takes(topic: str) -> None:
    assert why_not_topic(topic) is None


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("", "blank"),
        (" \t", "blank"),
        ("a" * 128, "128 characters"),
        ("a b", "characters that no topic"),
        ("topic\n", "characters that no topic"),
        ("thème", "characters that no topic"),
        *((topic, "only brokers") for topic in sorted(NOT_FOR_SENDS)),
    ],
)
def test_topics_that_java_refuses(topic: str, reason: str) -> None:
    problem = why_not_topic(topic)
    assert problem is not None
    assert reason in problem.reason
    assert problem.hint


@pytest.mark.parametrize(
    ("group", "fits"),
    [("g", True), ("a" * 120, True), ("a" * 121, False), ("", False), ("DEFAULT_PRODUCER", False)],
)
def test_groups(group: str, fits: bool) -> None:
    assert (why_not_group(group) is None) is fits


@pytest.mark.parametrize(
    ("body", "code"), [(b"", 13), (b"x", None), (bytes(MOST), None), (bytes(MOST + 1), 13)]
)
def test_bodies(body: bytes, code: int | None) -> None:
    problem = why_not_message(Message("T", body), MOST)
    assert (problem.code if problem else None) == code


@pytest.mark.parametrize(
    "message",
    [
        Message("T", b"b", tags="a\x01b"),
        Message("T", b"b", keys="k\x02"),
        Message("T", b"b", properties={"a\x01": "b"}),
        Message("T", b"b", properties={"a": "b\x02"}),
    ],
)
def test_a_separator_inside_a_property_is_refused(message: Message) -> None:
    problem = why_not_message(message, MOST)
    assert problem is not None
    assert "control character" in problem.reason


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "empty"),
        ([Message("A", b"b"), Message("B", b"b")], "topics A and B"),
        ([Message("A", b"b"), Message("A", b"b", wait_store_ok=False)], "WAIT"),
        ([Message("A", b"b"), Message("A", b"b").with_delay_level(1)], "delayed"),
        ([Message("A", b"b").with_delivery_at(5)], "delayed"),
        ([Message("%RETRY%g", b"b")], "retry topic"),
        ([Message("A", b"b"), Message("A", b"")], "empty"),
    ],
)
def test_batches_that_java_refuses(messages: list[Message], reason: str) -> None:
    problem = why_not_batch(messages, MOST)
    assert problem is not None
    assert reason in problem.reason


def test_a_batch_that_java_takes() -> None:
    assert why_not_batch([Message("A", b"b"), Message("A", b"c", tags="t")], MOST) is None


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({"KEYS": "x"}, "KEYS"),
        ({"UNIQ_KEY": "x"}, "UNIQ_KEY"),
        ({"DELAY": "1"}, "DELAY"),
        ({" ": "x"}, "blank"),
        ({"a": ""}, "blank"),
        ({"a": "\x01"}, "a"),
    ],
)
def test_properties_that_applications_may_not_set(properties: dict[str, str], name: str) -> None:
    problem = why_not_user_properties(properties)
    assert problem is not None
    assert name in problem.reason


def test_properties_that_applications_may_set() -> None:
    assert why_not_user_properties({"a": "1", "CHECK_IMMUNITY_TIME_IN_SECONDS": "5"}) is None


def test_properties_of_more_than_a_broker_stores() -> None:
    assert why_not_encoded(bytes(32767)) is None
    problem = why_not_encoded(bytes(32768))
    assert problem is not None
    assert problem.code == 13

"""Which answers are failures, and which are only worth a look."""

from __future__ import annotations

import pytest

from dissectors.rows.outcome import (
    EXPECTED,
    FAILED,
    NOT_DURABLE,
    OK,
    is_failure,
    is_notable,
    outcome_class_of,
)


@pytest.mark.parametrize(
    ("name", "notable", "failure"),
    [
        (None, False, False),
        ("SUCCESS", False, False),
        ("PULL_NOT_FOUND", False, False),
        ("FLUSH_DISK_TIMEOUT", True, False),
        ("SLAVE_NOT_AVAILABLE", True, False),
        ("FLUSH_SLAVE_TIMEOUT", True, False),
        ("SYSTEM_BUSY", True, True),
        ("UNKNOWN(9999)", True, True),
    ],
)
def test_a_stored_message_is_no_failure(name: str | None, notable: bool, failure: bool) -> None:
    assert (is_notable(name), is_failure(name)) == (notable, failure)


@pytest.mark.parametrize(
    ("status", "request_name", "response_name", "topic", "expected"),
    [
        ("answered", "SEND_MESSAGE_V2", "SUCCESS", "Orders", OK),
        ("answered", "SEND_MESSAGE_V2", "FLUSH_DISK_TIMEOUT", "Orders", NOT_DURABLE),
        ("answered", "SEND_MESSAGE_V2", "SYSTEM_BUSY", "Orders", FAILED),
        ("answered", "PULL_MESSAGE", "PULL_NOT_FOUND", "Orders", OK),
        ("answered", "GET_ROUTEINFO_BY_TOPIC", "TOPIC_NOT_EXIST", "%RETRY%group", EXPECTED),
        ("answered", "GET_ROUTEINFO_BY_TOPIC", "TOPIC_NOT_EXIST", "Orders", FAILED),
        ("answered", "PULL_MESSAGE", "TOPIC_NOT_EXIST", "%RETRY%group", FAILED),
        ("unanswered", "SEND_MESSAGE_V2", None, "Orders", "unanswered"),
        ("orphan", None, "SYSTEM_BUSY", None, "orphan"),
    ],
)
def test_outcome_classes(
    status: str, request_name: str | None, response_name: str | None, topic: str | None,
    expected: str,
) -> None:  # fmt: skip
    assert outcome_class_of(status, request_name, response_name, topic) == expected

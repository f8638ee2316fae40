"""Parts of `send`: lines of any bytes, histograms, summaries."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from replay.errors import RouteError, SendFailed
from replay.message import Attempt, Message, MessageQueue, SendResult, SendStatus
from rmqtool.send.input_lines import BadLine, LineReader, Outgoing
from rmqtool.send.options import InputForm, delivery_of
from rmqtool.send.results import Bars, Ended, SendSummary, json_of, rows_of, summary_lines
from rmqtool.ui.console import UNLIMITED, Terminal
from rmqtool.ui.status import CommandError

QUEUE = MessageQueue("T", "broker-a", 1)
PLAIN = Terminal(False, UNLIMITED, False)


def _reader(form: InputForm) -> LineReader:
    return LineReader(form, Outgoing(0, Message("T", b"")))


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_any_line_is_a_message_or_a_reason(lines: list[bytes]) -> None:
    for form in InputForm:
        reader = _reader(form)
        for number, line in enumerate(lines, 1):
            read = reader.read(line)
            if isinstance(read, BadLine):
                assert read.number == number
                assert read.reason
            else:
                assert (read is None) == (not line.strip())


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
_MEMBERS = (
    *("topic", "body", "body_base64", "tags", "keys", "properties", "flag"),
    *("delay_level", "deliver_at", "order_key", "broker", "queue"),
)


@given(st.dictionaries(st.sampled_from(_MEMBERS), _JSON, max_size=4))
def test_any_object_is_a_message_or_a_reason(members: dict[str, object]) -> None:
    read = _reader(InputForm.jsonl).read(json.dumps(members).encode())
    assert isinstance(read, (BadLine, Outgoing))
    if isinstance(read, Outgoing):
        assert ("body" in members) != ("body_base64" in members) or None in members.values()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"body":"x","queue":1}', "no broker"),
        ('{"body":"x","broker":"b","order_key":"k"}', "each chooses"),
        ('{"body":"x","body_base64":"eA=="}', "either"),
        ("{}", "either"),
        ('{"body_base64":"?"}', "not base64"),
        ('{"body":"x","delay_level":19}', "delay_level"),
        ('{"body":"x","delay_level":true}', "delay_level"),
        ('{"body":"x","deliver_at":"soon"}', "not a valid time"),
        ('{"body":"x","delay_level":1,"deliver_at":"+5s"}', "only one can apply"),
        ('{"body":"x","keys":[1]}', "keys"),
        ('{"body":"x","properties":{"TAGS":"x"}}', "RocketMQ's own"),
        ('{"body":"x","properties":{"a":{}}}', "neither text nor number"),
        ("[1]", "not a JSON object"),
    ],
)
def test_what_is_wrong_with_a_line(line: str, reason: str) -> None:
    read = _reader(InputForm.jsonl).read(line.encode())
    assert isinstance(read, BadLine)
    assert reason in read.reason


@pytest.mark.parametrize(
    "member", ['"order_key":"k"', '"broker":"b"', '"broker":"b","queue":1', '"delay_level":1']
)
def test_a_half_message_has_no_queue_of_its_own_and_no_delay(member: str) -> None:
    line = f'{{"body":"x",{member}}}'.encode()
    pattern = Outgoing(0, Message("T", b""))
    read = LineReader(InputForm.jsonl, pattern, in_transactions=True).read(line)
    assert isinstance(read, BadLine)
    assert "which --transaction does not have" in read.reason
    assert isinstance(LineReader(InputForm.jsonl, pattern).read(line), Outgoing)


def test_the_delay_of_a_line_replaces_that_of_the_command_line() -> None:
    pattern = Outgoing(0, Message("T", b"").with_delay_level(3))
    reader = LineReader(InputForm.jsonl, pattern)
    for line, kept in (
        (b'{"body":"x","deliver_at":"2026-11-20T10:00:00"}', {"TIMER_DELIVER_MS": "1795168800000"}),
        (b'{"body":"x","delay_level":4}', {"DELAY": "4"}),
        (b'{"body":"x"}', {"DELAY": "3"}),
    ):
        read = reader.read(line)
        assert isinstance(read, Outgoing)
        assert read.message.properties == kept


def test_times_of_delivery() -> None:
    assert delivery_of("x", "2026-11-20T10:00:00") == 1795168800000
    assert delivery_of("x", "+90s") - delivery_of("x", "+60s") in range(29_000, 30_001)
    with pytest.raises(CommandError, match="not a valid time"):
        delivery_of("x", "10:00")


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=200))
@example([499_122_176])
@example([2**63 - 1, 0])
def test_bars_count_every_value_once_and_where_it_belongs(values: list[int]) -> None:
    bars = Bars()
    for value in values:
        bars.add(value)
    rows = bars.rows()
    assert [bar.number for bar in rows] == [
        sum(bar.least <= value < bar.beyond for value in values) for bar in rows
    ]
    assert sum(bar.number for bar in rows) == len(values)
    assert rows[0].number
    assert rows[-1].number
    for one, other in pairwise(rows):
        assert one.beyond == other.least


def _ended(*attempts: Attempt, stored: bool = True) -> Ended:
    message = Message("T", b"body", properties={"UNIQ_KEY": "KEY"})
    outgoing = (Outgoing(1, message),)
    if stored:
        result = SendResult(SendStatus.SEND_OK, "KEY", QUEUE, attempts=attempts)
        return Ended(outgoing, result, None)
    error = SendFailed("T", attempts, 5, RouteError("no route", "look\x1b there"))
    return Ended(outgoing, None, error)


GOOD = Attempt(2, QUEUE, "h:1", 1_000_000, 3_000_000, code=0)
BUSY = Attempt(1, QUEUE, "h:1", 0, 500_000, code=2, remark="busy\x1b[2J")
LOST = Attempt(1, QUEUE, "h:1", 0, 700_000, "lost", error="ended")


def test_a_summary_counts_messages_attempts_and_doubts() -> None:
    summary = SendSummary()
    for ended in (
        _ended(GOOD),
        _ended(BUSY, GOOD),
        _ended(LOST, GOOD),
        _ended(LOST, stored=False),
        _ended(BUSY, stored=False),
        _ended(stored=False),
    ):
        summary.add(ended)
    assert (summary.messages, summary.failed, summary.retried) == (6, 3, 2)
    assert summary.statuses == {"SEND_OK": 3}
    assert summary.twice.count == summary.unknown.count == 1
    broker = summary.brokers["broker-a"]
    assert (broker.attempts, broker.failed, broker.latency.count) == (7, 4, 5)
    assert {(f.code, f.name): f.count for f in summary.failures.values()} == {
        (2, "SYSTEM_BUSY"): 2,
        (None, "lost"): 2,
        (10005, "SendFailed"): 1,
    }
    text = "\n".join(summary_lines(summary, 2.0, PLAIN))
    assert "6 messages in 2.00 s, 3/s" in text
    assert "possibly stored twice" in text
    assert "failed without a response, possibly stored" in text
    assert "\x1b" not in text
    assert summary.latency.count == 3
    assert (summary.latency.smallest, summary.latency.largest) == (2000, 3000)


def test_memory_does_not_grow_with_the_messages() -> None:
    summary = SendSummary()
    for number in range(3000):
        attempt = Attempt(1, QUEUE, "h:1", 0, 1, f"kind-{number}", error="x" * 9)
        summary.add(_ended(attempt, stored=False))
    assert len(summary.failures) <= 201
    assert sum(failure.count for failure in summary.failures.values()) == 3000


def test_a_json_object_says_every_attempt() -> None:
    one = json.loads(json_of(_ended(BUSY, GOOD)))
    assert [attempt["code_name"] for attempt in one["attempts"]] == ["SYSTEM_BUSY", "SUCCESS"]
    assert one["latency_us"] == 3000
    failed = json.loads(json_of(_ended(LOST, stored=False)))
    assert failed["status"] == "failed"
    assert failed["error"]["kind"] == "SendFailed"
    assert failed["attempts"][0]["outcome"] == "lost"


def test_a_message_that_was_not_tried_is_a_line_too() -> None:
    (row,) = rows_of(_ended(stored=False))
    assert row.attempt is None

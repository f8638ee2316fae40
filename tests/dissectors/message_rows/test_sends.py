"""Messages of sends are the same as lines, columns and objects, whatever the headers hold."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from hypothesis import example, given
from hypothesis import strategies as st

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.rows.message_record import MESSAGE_COLUMNS
from dissectors.rows.tables import row_encoder
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, send, sent
from tests.traffic.talk import Talk

from ..decode.log_columns import assert_log
from .seen import SAMPLES, rows_of_run

OPTIONS = DecodeOptions(messages=True)
V1, V2, BATCH, REPLY = 10, 310, 320, 324
LETTERS = {
    "a": "producerGroup", "b": "topic", "e": "queueId", "f": "sysFlag", "g": "bornTimestamp",
    "i": "properties", "j": "reconsumeTimes", "l": "maxReconsumeTimes", "n": "bname",
}  # fmt: skip
by_column = row_encoder((column.name, column.type) for column in MESSAGE_COLUMNS)
numbers = st.sampled_from(
    ["0", "7", "4", "8", "-1", "1700000000123", "99999999999999999", "9223372036854775807", "007",
     "9223372036854775808", "+5", "-0", "", "x", "٣"]
)  # fmt: skip
topics = st.sampled_from(
    ["T", "", "%RETRY%G", "%DLQ%G", "SCHEDULE_TOPIC_XXXX", "ü", "a" * 65, '"', "%x"]
)
properties = st.lists(
    st.tuples(
        st.sampled_from(
            ["UNIQ_KEY", "KEYS", "TAGS", "WAIT", "DELAY", "TIMER_DELIVER_MS", "__transactionId__",
             "__STARTDELIVERTIME", "RETRY_TOPIC", "PGROUP"]
        ),
        st.sampled_from(["a", "", "3", "1700000000123", "ü", "a b"]),
    ),
    max_size=4,
).map(lambda pairs: "\x02".join(f"{name}\x01{value}" for name, value in pairs))  # fmt: skip
ids = st.sampled_from(
    ["0A00000100002A9F00000000000000FF", "0a00000100002a9f00000000000000ff", "x", "",
     "0A00000100002A9FFFFFFFFFFFFFFFFF", "0A00000100002A9F0000000000000 FF",
     f"{'0' * 31}9{'0' * 4}2A9F{'F' * 16}", "0A00000100002A9F00000000000000FF,y"]
)  # fmt: skip


def assert_both(path: str) -> None:
    """Compare lines and columns of a capture's messages with its rows."""
    rows = rows_of_run(Decode([path], OPTIONS))
    lines = list(Decode([path], OPTIONS).message_lines())
    assert b"".join(one.data for one in lines) == by_column(rows)
    assert sum(sum(one.counts) for one in lines) == len(rows)
    assert_log([path])


@given(
    st.sampled_from([V1, V2, BATCH, REPLY]),
    st.fixed_dictionaries(
        {"b": topics},
        optional={
            "a": topics, "e": numbers, "f": numbers, "g": numbers, "i": properties, "j": numbers,
            "l": numbers, "n": topics,
        },
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "msgId": ids, "queueId": numbers, "queueOffset": numbers, "transactionId": ids,
            "recallHandle": st.sampled_from(["x", "djEgVCBicm9rZXItYSAxNzAwMDAwMDAwMTIzIEs="]),
        },
    ),
    st.sampled_from([0, 0, 0, 1, 2, 10, 11]),
    st.sampled_from([None, "", "FOUND", "ü"]),
    st.sampled_from([0, 1_700_000_000_000_000_000, (1 << 32) * 10**9 - 10**8]),
    st.booleans(),
    st.booleans(),
)  # fmt: skip
@example(
    V2,
    {"b": "T", "g": "1", "i": "KEYS\x01k"},
    {"msgId": "x", "queueId": "3"},
    0,
    None,
    0,
    True,
    True,
)
def test_any_values(
    code: int,
    asked: dict[str, str],
    answered: dict[str, str],
    outcome: int,
    remark: str | None,
    first: int,
    named: bool,
    binary: bool,
) -> None:
    ext = asked if code in (V2, BATCH) else {LETTERS[name]: text for name, text in asked.items()}
    request = Command(code, 7, ext=ext, body=b"body", binary=binary)
    talk = Talk(at=first).open()
    if named:
        talk.say(0, Command(35, 6, 0, ext={"clientID": "me@1"}).frame)
    talk.say(0, request.frame)
    talk.say(1, request.answer(outcome, ext=answered, remark=remark).frame)
    talk.say(0, Command(code, 8, 2, ext=ext).frame)
    talk.say(0, Command(code, 9, ext=ext, remark="asked").frame)
    talk.say(1, Command(0, 9, 1, ext=answered).frame)
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(pcap_of(talk.segments))
        file.flush()
        assert_both(file.name)


@pytest.mark.parametrize("name", ["capture \udcff.pcap", 'quo"te.pcap'])
def test_any_name_of_a_capture(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes((SAMPLES / "push-consumer-4x.pcap").read_bytes())
    assert_both(str(path))


def test_a_usual_send() -> None:
    talk = Talk().open()
    talk.say(0, send(1).frame)
    talk.say(1, sent(1).frame)
    talk.say(0, send(2, binary=True).frame)
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(pcap_of(talk.segments))
        file.flush()
        first, second = rows_of_run(Decode([file.name], OPTIONS))
    assert (first.event, first.request_name, first.queue_id) == ("stored", "SEND_MESSAGE_V2", 2)
    assert (first.born_time, first.commit_log_offset) == (1795168800000 * 1_000_000, 255)
    assert (first.tags, first.keys, first.original_topic) == ("created", None, "Orders")
    assert (second.event, second.end, second.queue_offset) == ("sent", "open", None)
    assert second.unique_key is not None
    assert second.unique_key.endswith("2")

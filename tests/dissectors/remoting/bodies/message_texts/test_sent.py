"""The message of a send, written from body and header, is what decoding and showing it gives."""

from __future__ import annotations

import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissectors.remoting.bodies.body import BodyInput
from dissectors.remoting.bodies.custom import NamedDecoder, decoding_with
from dissectors.remoting.bodies.message_texts import text_of_sent
from dissectors.remoting.bodies.messages import decode_raw_message
from tests.dissectors.stored_records import TEXTS

from .shown import NEAR_MS, UNIQUE_KEY, shown

NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([0, 4, 8, 12, "1x"])
PROPERTIES = st.lists(
    st.tuples(st.sampled_from(["UNIQ_KEY", "KEYS", "TAGS", "POP_CK", "WAIT", "x", ""]), TEXTS)
).map(lambda pairs: "\x02".join("\x01".join(pair) for pair in pairs))
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "topic": st.sampled_from(["Orders", 'a"b', "ü"]),
        "queueId": NUMBERS,
        "flag": NUMBERS,
        "sysFlag": NUMBERS,
        "bornTimestamp": NUMBERS | st.just(NEAR_MS + 5),
        "reconsumeTimes": NUMBERS,
        "properties": PROPERTIES | st.text(max_size=20),
    },
)


def holds(body: bytes, fields: dict[str, object]) -> bool:
    """Return whether a message was written; both ways must agree about it."""
    text = text_of_sent(body, fields, NEAR_MS)
    if text is None:
        return False
    decoded = decode_raw_message(BodyInput("raw-message", 10, False, body, {}, None, fields))
    assert text == shown(decoded)
    assert (decoded.problem, decoded.notes) == (None, ())
    return True


@given(st.binary(max_size=40) | TEXTS.map(str.encode), FIELDS)
@example(b"hello", {"topic": "Orders", "properties": f"UNIQ_KEY\x01{UNIQUE_KEY}\x02WAIT\x01true"})
@example(b"a text of more than seven bytes", {"properties": "KEYS\x01 a  b \x02TAGS\x01t\x02"})
def test_any_message(body: bytes, fields: dict[str, object]) -> None:
    flag = fields.get("sysFlag")
    compressed = isinstance(flag, int) and flag & 1 != 0
    unwritable = "\ud800" <= max(str(fields.get("properties", "")) or "a") <= "\udfff"
    assert holds(body, fields) is not (compressed or unwritable or not body)


@pytest.mark.parametrize(
    ("topic", "body", "flag"),
    [
        ("RMQ_SYS_TRACE_TOPIC", b"Pub\x011\x01x", 0),
        ("MyTrace", b"Pub\x011\x01x", 0),
        ("OFFSET_MOVED_EVENT", b"{}", 0),
        ("T", zlib.compress(b"text"), 1),
        ("T", b"", 0),
    ],
)
def test_what_needs_more_than_copying_is_left(topic: str, body: bytes, flag: int) -> None:
    assert holds(b"x", {"topic": "T"})
    assert not holds(body, {"topic": topic, "sysFlag": flag})


def test_decoders_of_a_user_are_asked() -> None:
    assert holds(b"x", {"topic": "T"})
    with decoding_with([NamedDecoder("mine", lambda _: {"is": "mine"})]):
        assert not holds(b"x", {"topic": "T"})


def test_threads_do_not_share_what_is_written() -> None:
    """Programs read captures in several threads; plain modules are switched anywhere."""
    texts = [
        f"UNIQ_KEY\x01{UNIQUE_KEY[:-4]}{number:04X}\x02KEYS\x01{number}" for number in range(4)
    ]

    def written(text: str, times: int = 200) -> set[bytes | None]:
        fields: dict[str, object] = {"topic": text[-1], "properties": text}
        return {text_of_sent(b"x" * 9, fields, NEAR_MS) for _ in range(times)}

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(texts)) as pool:
            found = list(pool.map(written, texts))
    finally:
        sys.setswitchinterval(before)
    assert found == [written(text, 1) for text in texts]

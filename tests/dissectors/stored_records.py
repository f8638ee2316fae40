"""Stored messages of any kind, for property tests of those who read records."""

from __future__ import annotations

from hypothesis import strategies as st

from dissectors.remoting.messages.message import StoredMessage

TEXTS = st.sampled_from(
    ("a", "-7", "9" * 30, "0 1 2 0 1 broker-a 0 5", 'say "so"', "C:\\", "ü\x7f", "x\x01y", "\t")
)
MESSAGES = st.builds(
    StoredMessage,
    topic=st.sampled_from(
        ("Orders", "Others", "%RETRY%group", "ü" * 40, 'a"b', "", "SCHEDULE_TOPIC_XXXX")
    ),
    body=st.binary(max_size=40),
    properties=st.dictionaries(
        st.sampled_from(
            (
                "KEYS", "UNIQ_KEY", "TAGS", "PGROUP", "__transactionId__", "RETRY_TOPIC", "POP_CK",
                "DELAY", "TIMER_OUT_MS", "TIMER_DELIVER_MS", "__STARTDELIVERTIME", "x", "WAIT",
            )
        ),
        TEXTS,
    ),
    queue_id=st.integers(-1, 2),
    queue_offset=st.integers(-(1 << 63), (1 << 63) - 1),
    physical_offset=st.integers(-(1 << 63), (1 << 63) - 1),
    sys_flag=st.sampled_from([0, 1, 4, 0x40]),
    born_timestamp=st.integers(-(1 << 63), (1 << 63) - 1) | st.just(1_700_000_000_123),
    store_timestamp=st.integers(-1, 1 << 42),
    born_host=st.sampled_from(["10.0.0.1:1234", "[fd00::1]:1"]),
    store_host=st.sampled_from(["10.0.0.9:10911", "10.0.0.8:10911", "[fd00::9]:10911"]),
    reconsume_times=st.integers(0, 3),
).map(lambda message: message.sealed())  # fmt: skip

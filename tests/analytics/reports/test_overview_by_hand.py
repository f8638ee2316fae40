"""The tables of the overview that add up, against the same counted by hand from decoded rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest

from dissectors.decode.pipeline import Decode
from dissectors.remoting.versions import VERSIONS, ordinal_of
from dissectors.rows.outcome import LONG_POLLS
from dissectors.rows.record import ExchangeRecord
from tests.analytics.reported import Tables, tables_from, tables_of
from tests.analytics.rows import report_input, row
from tests.expected import SAMPLES

NAMES = ("push-consumer-5x", "fault-disk-full-5x", "dead-letters-4x")
SENDS = ("SEND_MESSAGE", "SEND_MESSAGE_V2", "SEND_BATCH_MESSAGE")
GOOD = ("ok", "stored, not durable")


@pytest.fixture(scope="module", params=NAMES)
def recorded(request: pytest.FixtureRequest) -> tuple[Tables, Sequence[ExchangeRecord]]:
    """The tables of a capture, and its requests."""
    capture = str(SAMPLES / f"{request.param}.pcap")
    rows = [one for some in Decode([capture]).records() for one in some if one.status != "orphan"]
    assert rows
    return tables_of("overview", [capture]), rows


def test_topics(recorded: tuple[Tables, Sequence[ExchangeRecord]]) -> None:
    tables, rows = recorded
    totals: Counter[str] = Counter()
    sends: dict[str, list[ExchangeRecord]] = defaultdict(list)
    pulls: dict[str, list[int]] = defaultdict(list)
    for one in rows:
        if one.topic is None:
            continue
        totals[one.topic] += (one.request_name not in LONG_POLLS) * (one.latency_us or 0)
        if one.request_name in SENDS and one.outcome_class in GOOD:
            sends[one.topic].append(one)
        if one.request_name == "PULL_MESSAGE" and one.outcome_class in GOOD:
            pulls[one.topic].append(one.message_count or 0)
    found = tables["topics"]
    assert {one["topic"]: one["total_us"] for one in found} == totals
    shares = [total / totals.total() for _, total in totals.most_common()]
    assert [one["time_share"] for one in found] == pytest.approx(shares)
    assert [one["cumulative"] for one in found] == pytest.approx(
        [sum(shares[: place + 1]) for place in range(len(shares))]
    )
    for one in found:
        topic = str(one["topic"])
        stored = sum(send.message_count or 1 for send in sends[topic])
        body = sum(send.body_bytes or 0 for send in sends[topic])
        loaded = [count for count in pulls[topic] if count]
        assert one["send_batch"] == (stored / len(sends[topic]) if stored else None)
        assert one["message_bytes"] == (pytest.approx(body / stored) if stored else None)
        assert one["fetch_batch"] == (sum(loaded) / len(loaded) if loaded else None)
        empty = 1 - len(loaded) / len(pulls[topic]) if pulls[topic] else None
        assert one["empty_share"] == (None if empty is None else pytest.approx(empty))


def test_sizes_have_every_stored_message_once(
    recorded: tuple[Tables, Sequence[ExchangeRecord]],
) -> None:
    tables, rows = recorded
    expected: Counter[tuple[str, int]] = Counter()
    for one in rows:
        if one.request_name in SENDS and one.outcome_class in GOOD and one.topic:
            if one.topic.startswith(("%RETRY%", "%DLQ%")):
                continue
            count = one.message_count or 1
            size = (one.body_bytes or 0) // count
            expected[one.topic, 1 << (size.bit_length() - 1) if size else 0] += count
    found = {(one["topic"], one["from_bytes"]): one["messages"] for one in tables["message_sizes"]}
    assert found == expected


def test_topology(recorded: tuple[Tables, Sequence[ExchangeRecord]]) -> None:
    tables, rows = recorded
    expected: Counter[tuple[str, str, str]] = Counter()
    for one in rows:
        if one.topic is None:
            continue
        good = one.outcome_class in GOOD
        if one.request_name in SENDS and not one.topic.startswith(("%RETRY%", "%DLQ%")):
            count = (one.message_count or 1) if good else 0
            expected[one.topic, "produces", str(one.group)] += count
        if one.request_name == "PULL_MESSAGE":
            expected[one.topic, "consumes", str(one.group)] += (one.message_count or 0) * good
    found = {
        (one["topic"], one["role"], one["party"]): one["messages"] for one in tables["topology"]
    }
    assert found == dict(expected)


def test_errors_over_time_are_the_errors(
    recorded: tuple[Tables, Sequence[ExchangeRecord]],
) -> None:
    tables, rows = recorded
    expected = Counter(
        one.response_name for one in rows if one.outcome_class in ("failed", "stored, not durable")
    )
    found: Counter[object] = Counter()
    for one in tables["errors_over_time"]:
        if one["error"] not in ("no response", "unknown"):
            found[one["error"]] += one["exchanges"]  # type: ignore[assignment]
    assert found == expected


def bugs_of(version: str, language: str = "JAVA") -> str:
    """Return what the report says of a version."""
    values = {"version": ordinal_of(version), "version_name": version, "language": language}
    tables = tables_from("overview", report_input([row(0, **values)]), "client_versions")
    (found,) = tables["client_versions"]
    assert found["clients"] == 1
    assert found["client_share"] == 1
    assert isinstance(found["known_bugs"], list)
    return " ".join(found["known_bugs"])


@pytest.mark.parametrize(
    ("issue", "has", "has_not"),
    [
        ("apache/rocketmq#1781", "V4_6_1", "V4_7_0"),
        ("apache/rocketmq#2730", "V4_8_0", "V4_9_0"),
        ("apache/rocketmq#7779", "V4_9_7", "V4_9_8"),
        ("apache/rocketmq#7779", "V5_1_3", "V5_1_4"),
        ("apache/rocketmq#7812", "V5_1_4", "V5_2_0"),
        ("apache/rocketmq#5838", "V5_2_0", "V5_3_0"),
        ("apache/rocketmq#8599", "V5_3_0", "V5_3_1"),
    ],
)
def test_a_version_has_a_bug_until_it_is_fixed(issue: str, has: str, has_not: str) -> None:
    assert issue in bugs_of(has)
    assert issue not in bugs_of(has_not)
    assert issue not in bugs_of(has, "GO")


def test_the_newest_has_no_known_bug() -> None:
    assert bugs_of("V5_5_0") == ""
    assert "V5_5_0" in VERSIONS

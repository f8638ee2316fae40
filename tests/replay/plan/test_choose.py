"""Which sends are replayed."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dissectors.decode.pipeline import Decode
from dissectors.where.fields import exchange_fields
from dissectors.where.filter import compile_where
from replay.captured.captured_send import CapturedSend, SkipReason, messages_of
from replay.plan.choose import (
    OptionalKind,
    SampleBy,
    Selection,
    in_sample,
    kind_of,
    record_of_captured,
    refusal_of,
)

from ..replayed import START, captured, read, sample, seen


@pytest.mark.parametrize(
    ("topic", "kind"),
    [
        ("Orders", None),
        ("%RETRY%readers", OptionalKind.retry),
        ("%DLQ%readers", OptionalKind.dlq),
        ("RMQ_SYS_TRACE_TOPIC", OptionalKind.trace),
        ("rmq_sys_TRACE_DATA_region", OptionalKind.trace),
        ("SCHEDULE_TOPIC_XXXX", OptionalKind.system),
        ("rmq_sys_wheel_timer", OptionalKind.system),
        ("TBW102", OptionalKind.system),
        ("DefaultHeartBeatSyncerTopic", OptionalKind.system),
        ("RMQ_SYS_ROCKSDB_OFFSET_TOPIC", OptionalKind.system),
        ("%LMQ%$Orders$one", OptionalKind.system),
        ("DefaultCluster_REPLY_TOPIC", OptionalKind.replies),
        ("ns%Orders", None),
    ],
)
def test_kinds_of_topics(topic: str, kind: OptionalKind | None) -> None:
    assert kind_of(topic) is kind
    refusal = refusal_of(captured(seen(topic=topic)), Selection())
    assert (refusal is not None) is (kind is not None)
    if kind is not None:
        assert (
            refusal_of(captured(seen(topic=topic)), Selection(include=frozenset((kind,)))) is None
        )


def test_a_time_window_has_its_start_and_not_its_end() -> None:
    one = captured(seen(5))
    assert refusal_of(one, Selection(since=START + 5, until=START + 6)) is None
    for choice in (Selection(since=START + 6), Selection(until=START + 5)):
        refusal = refusal_of(one, choice)
        assert refusal is not None
        assert refusal.why is SkipReason.NOT_IN_TIME


def test_a_filter_sees_the_row_that_decode_shows() -> None:
    name = "fault-disk-full-plain-5x.pcap"
    rows = {r.request_packet: r for rows in Decode([sample(name)]).records() for r in rows}
    sends = [one for one in read(name) if isinstance(one, CapturedSend)]
    for one in sends:
        shown = record_of_captured(one)
        assert shown == rows[shown.request_packet]
        assert (shown.request_packet == one.seen.origin.packet) is (one.response.attempts == 1)
    where = compile_where("queue_id == 1 and latency < 1s", exchange_fields())
    chosen = [one for one in sends if refusal_of(one, Selection(where=where)) is None]
    assert 0 < len(chosen) < len(sends)
    assert {one.response.queue_id for one in chosen} == {1}


def test_a_filter_sees_the_same_in_a_log() -> None:
    one = captured(seen(queue=3, properties={"TAGS": "paid"}))
    one.seen.messages = messages_of(one.seen, one.header)  # type: ignore[assignment]
    fields = exchange_fields()
    for text in ("tags == paid", "queue_id == 3", "unique_key == K1", "status == unanswered"):
        assert compile_where(text, fields)(record_of_captured(one)), text


def sampled(keys: list[str], choice: Selection, **values: object) -> set[str]:
    found = set()
    for number, key in enumerate(keys):
        one = captured(seen(number, key=f"U{number}", properties={"KEYS": key}, **values))  # type: ignore[arg-type]
        message = messages_of(one.seen, one.header)[0]
        if in_sample(one, message, choice):  # type: ignore[arg-type]
            found.add(f"{key}/{number}")
    return found


def test_a_sample_keeps_a_keys_messages_together_and_has_its_size() -> None:
    keys = [f"order-{number % 400}" for number in range(1200)]
    found = sampled(keys, Selection(sample=Fraction(1, 4)))
    by_key = {name.split("/")[0] for name in found}
    assert len(found) == 3 * len(by_key)
    assert 60 < len(by_key) < 140


def test_a_smaller_sample_is_part_of_a_larger_one() -> None:
    keys = [f"order-{number}" for number in range(300)]
    small = sampled(keys, Selection(sample=Fraction(1, 10)))
    large = sampled(keys, Selection(sample=Fraction(1, 2)))
    assert small < large


def test_the_sharding_key_goes_before_other_keys() -> None:
    choice = Selection(sample=Fraction(1, 2))
    for shard in ("a", "b", "c", "d"):
        chosen = set()
        for number in range(20):
            properties = {"KEYS": f"k{number}", "__SHARDINGKEY": shard}
            one = captured(seen(number, key=f"U{number}", properties=properties))
            chosen.add(in_sample(one, messages_of(one.seen, one.header)[0], choice))  # type: ignore[arg-type]
        assert len(chosen) == 1


def test_a_sample_by_topic_takes_whole_topics() -> None:
    choice = Selection(sample=Fraction(1, 2), sample_by=SampleBy.topic)
    sizes = {len(sampled([str(n) for n in range(9)], choice, topic=f"T{t}")) for t in range(12)}
    assert sizes == {0, 9}


def test_half_a_character_is_a_key_like_any_other() -> None:
    halves = [chr(code) for code in range(0xD800, 0xDC00)]
    assert 400 < len(sampled(halves, Selection(sample=Fraction(1, 2)))) < 624

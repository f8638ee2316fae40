"""The delivery report: held to the rows of messages, counted here in another way."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from typing import TYPE_CHECKING

import pytest

from analytics.consuming import sums as sums_module
from analytics.consuming.delivery import tables_of as tables_of_sums
from analytics.consuming.known import Known
from analytics.consuming.sums import OTHERS, Sums
from analytics.inputs.filters import chosen
from analytics.report import ReportOptions
from analytics.reports import report_of
from analytics.reports.delivery import report_notes
from analytics.result import WITHOUT_MESSAGES, computed
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.rows.message_record import MessageRecord
from tests.analytics.consumed import delivery_of
from tests.analytics.reported import Tables, input_of, tables_from, tables_of
from tests.replay.recorded import SAMPLES
from tests.rmqtool.command import rmqtool

if TYPE_CHECKING:
    from pathlib import Path


NAMES = (
    *("push-retry-dlq-5x", "push-retry-dlq-4x", "push-consumer-5x", "push-broadcast-5x"),
    *("push-rebalance-4x", "push-filter-tag-5x", "pop-late-5x", "consumer-lag-5x"),
    *("stored-twice-5x", "transaction-5x"),
)
Key = tuple[str, str]


def messages_of(name: str) -> list[MessageRecord]:
    """The rows that `decode pcap --list-messages` shows."""
    decode = Decode([str(SAMPLES / f"{name}.pcap")], DecodeOptions(messages=True))
    return [
        row
        for _ in decode.records()
        for carried in decode.take_messages()
        for row in carried.messages
    ]


def delivered_to(rows: list[MessageRecord]) -> dict[Key, Counter[str | None]]:
    """Topic and group -> message -> how often it was delivered."""
    found: dict[Key, Counter[str | None]] = defaultdict(Counter)
    for row in rows:
        if row.event == "delivered" and row.consumer_group is not None:
            topic = row.original_topic or row.topic or ""
            found[topic, row.consumer_group][row.unique_key] += 1
    return found


@cache
def of_sample(name: str) -> Tables:
    """The tables of a sample, folded without Spark."""
    return delivery_of([str(SAMPLES / f"{name}.pcap")])


def by_group(tables: Tables) -> dict[Key, dict[str, object]]:
    return {
        (str(row["topic"]), str(row["group"])): row
        for row in tables["delivery_groups"]
        if row["group"] is not None
    }


@pytest.mark.parametrize("name", NAMES)
def test_deliveries_are_those_of_the_rows(name: str) -> None:
    groups = by_group(of_sample(name))
    found = delivered_to(messages_of(name))
    for key, messages in found.items():
        row = groups[key]
        assert row["deliveries"] == sum(messages.values())
        assert row["delivered"] == len(messages)
    for key, row in groups.items():
        if key not in found:
            assert row["deliveries"] == 0


@pytest.mark.parametrize("name", NAMES)
def test_what_was_sent_is_that_of_the_rows(name: str) -> None:
    sent: dict[str, set[str | None]] = defaultdict(set)
    for row in messages_of(name):
        if (row.request_name or "").startswith("SEND_") and "%" not in (row.topic or ""):
            sent[row.topic or ""].add(row.unique_key)
    for line in of_sample(name)["delivery_groups"]:
        keys = sent.get(str(line["topic"]))
        assert line["sent"] == (len(keys) if keys else None)


def test_what_is_forwarded_is_another_message() -> None:
    tables = of_sample("forwarded-5x")
    counted = {
        key: (row["sent"], row["stored"], row["stored_again"], row["delivered"], row["deliveries"])
        for key, row in by_group(tables).items()
    }
    assert counted == {
        ("Orders", "forwarders"): (12, 12, 0, 8, 8),
        ("Audit", "auditors"): (12, 12, 0, 12, 12),
    }


def test_given_back_until_dead() -> None:
    """README: every message fails, is given back and comes again, at last to %DLQ%."""
    for name in ("push-retry-dlq-5x", "push-retry-dlq-4x"):
        tables = of_sample(name)
        ((key, row),) = by_group(tables).items()
        assert key[0] == "RetryTopic"
        assert (row["delivered"], row["deliveries"], row["again"]) == (8, 24, 16)
        assert (row["returned"], row["dead"], row["skipped"]) == (24, 8, 0)
        assert row["acknowledged"] == 24
        (again,) = tables["delivery_duplicates"]
        assert (again["cause"], again["deliveries"], again["messages"]) == ("returned", 16, 8)


def test_dead_letters_of_an_orderly_consumer() -> None:
    for name in ("orderly-dead-letters-5x", "orderly-dead-letters-4x"):
        (row,) = by_group(delivery_of([str(SAMPLES / f"{name}.pcap.gz")])).values()
        assert (row["returned"], row["dead"]) == (4, 4)
        (made,) = tables_of("retries", [str(SAMPLES / f"{name}.pcap.gz")])["consumer_retries"]
        assert made["dead_letters"] == 4


def test_each_member_of_a_broadcast_gets_all() -> None:
    tables = of_sample("push-broadcast-5x")
    (row,) = by_group(tables).values()
    assert row["again"] == 0
    assert row["acknowledged"] is None, "broadcasting commits nothing on the wire"
    assert tables["delivery_duplicates"] == []


def test_a_producer_that_stored_a_message_twice() -> None:
    tables = of_sample("stored-twice-5x")
    causes = {row["cause"] for row in tables["delivery_duplicates"]}
    assert "stored again" in causes
    assert any(row["stored_again"] for row in tables["delivery_groups"])


def test_a_group_that_falls_behind() -> None:
    """README: eight messages a second, of which it takes two."""
    lag = [
        row["to_commit"]
        for row in of_sample("consumer-lag-5x")["delivery_lag"]
        if row["topic"] == "LagTopic"
    ]
    known = [int(str(one)) for one in lag if one is not None]
    assert max(known) > 50
    assert known.index(max(known)) > len(known) // 2


def test_a_decoded_log_gives_the_same(tmp_path: Path) -> None:
    name = "push-rebalance-5x"
    capture = SAMPLES / f"{name}.pcap"
    log = tmp_path / "log"
    assert rmqtool("decode", "pcap", capture, "-T", "parquet", "-o", log, "-q").status == 0
    logged = tables_of("delivery", [str(log)])
    captured = tables_of("delivery", [str(capture)])
    for rows in (*logged.values(), *captured.values()):
        for row in rows:
            row.pop("capture", None)
    assert logged == captured
    assert logged["delivery_groups"]


def test_filters_choose_the_messages() -> None:
    given = input_of((str(SAMPLES / "push-retry-dlq-5x.pcap"),), messages=True)
    tables = tables_from("delivery", chosen(given, "request_name == PULL_MESSAGE"))
    ((_, row),) = by_group(tables).items()
    assert (row["deliveries"], row["returned"]) == (24, 0)


def test_without_messages_nothing_is_said() -> None:
    given = input_of((str(SAMPLES / "push-consumer-5x.pcap"),))
    (result,) = computed([report_of("delivery")], given, ReportOptions())
    assert result.tables == {}
    assert result.notes == [WITHOUT_MESSAGES]


def test_further_topics_have_one_row_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """However parts are merged, no message is lost, and the report says what it did."""
    monkeypatch.setattr(sums_module, "MAX_SUMS", 3)
    whole, parts = Sums(), [Sums(), Sums()]
    for number in range(10):
        for sums in (whole, parts[number % 2]):
            sums.topic(f"topic-{number}").sent += 1
            sums.group(f"topic-{number}", "readers").delivered += 1
    merged = Sums()
    for part in parts:
        merged.merge(part)
    for sums in (whole, merged):
        assert len(sums.topics) == len(sums.groups) == 4
        assert sum(one.sent for one in sums.topics.values()) == 10
        assert sum(one.delivered for one in sums.groups.values()) == 10
    rows = tables_of_sums(whole, Known())["delivery_groups"]
    assert any(row["topic"] == OTHERS for row in rows)
    assert "the rest share one row" in report_notes({"delivery_groups": rows})[0]

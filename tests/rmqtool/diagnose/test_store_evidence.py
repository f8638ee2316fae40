"""`diagnose --store` and `trace --store`: a broker's store settles what a capture leaves open."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

import rmqtool as api
from dissectors.remoting.messages.message import StoredMessage
from tests.dissectors.broker_store.made_store import commit, half, op, store_in
from tests.expected import SAMPLES
from tests.rmqtool.command import rmqtool

CAPTURE = SAMPLES / "fault-reset-5x.pcap"
TOPIC = "FaultTopic"
KEYS = (
    "C000020A0D954E0E2F2A67AC2CB8000D",
    "C000020A0D954E0E2F2A67AC376C0017",
    "C000020A0D954E0E2F2A67AC40060025",
)
"""messages with an attempt at broker-a without a response; broker-b stored each of them"""
BROKER_A = "127.77.0.61:10911"
START = int(datetime.fromisoformat("2026-11-21T03:08:50+00:00").timestamp())
"""seconds; the attempts are at 56.9, 59.6, and 61.8 of that minute"""
TRANSACTIONS = SAMPLES / "transaction-abandoned-5x.pcap"
HALF = "C000020A03884E0E2F2A6DFD099D0000"
OTHER = "C000020A0D954E0E2F2A67AC2CB8FFFF"


def sent(key: str, topic: str = TOPIC) -> StoredMessage:
    return StoredMessage(topic, b"text", {"UNIQ_KEY": key})


def store_of_a(folder: Path, *keys: str, **options: object) -> Path:
    """Write a store of broker-a that has what it stored in 20 seconds from START on."""
    keys = (*keys, *[OTHER] * (20 - len(keys)))
    return store_in(
        folder,
        *map(sent, keys),
        host=BROKER_A,
        second=START,
        **options,  # type: ignore[arg-type]
    )


def problem(rule: str, *arguments: str | Path, capture: Path = CAPTURE) -> dict[str, object] | None:
    words = ("diagnose", capture, "-T", "jsonl", "-q", *arguments)
    found = [json.loads(line) for line in rmqtool(*words).out.splitlines()]
    return next((row for row in found if row["rule"] == rule), None)


def ambiguous(*stores: Path) -> dict[str, object]:
    options = [word for store in stores for word in ("--store", store)]
    found = problem("ambiguous-outcome", *options)
    assert found is not None
    return found


def test_a_store_says_which_messages_are_stored(tmp_path: Path) -> None:
    before = ambiguous()
    assert before["impact"] == {"messages_maybe_stored_twice": 3}
    store = store_of_a(tmp_path, KEYS[0], KEYS[2], queues=True, offsets={f"{TOPIC}@g": {0: 1}})
    after = ambiguous(store)
    assert after["title"] == (
        "3 messages to topic FaultTopic had an attempt without a response. According to"
        " the broker's store: 1 stored once, 2 stored more than once"
    )
    assert (after["confidence"], after["severity"]) == ("certain", "error")
    assert after["impact"] == {"messages_stored_twice": 2}
    told = [line for line in after["details"] if line.startswith("store: ")]  # type: ignore[attr-defined]
    assert told[0].startswith(f"store: {KEYS[0]}: {BROKER_A}, FaultTopic, queue 0, offset 0, ")
    assert told[0].endswith(", consumed by g")
    assert told[1].endswith(", not consumed by g")


def test_no_copy_beside_the_known_one_is_no_problem(tmp_path: Path) -> None:
    found = ambiguous(store_of_a(tmp_path))
    assert str(found["title"]).endswith("According to the broker's store: 3 stored once")
    assert (found["severity"], found["confidence"], found["impact"]) == ("info", "certain", {})


@pytest.mark.parametrize("reason", ["other broker", "too short", "damaged"])
def test_what_a_store_cannot_tell_stays_unknown(tmp_path: Path, reason: str) -> None:
    if reason == "other broker":
        store = store_in(tmp_path, *map(sent, [OTHER] * 20), second=START)
    elif reason == "too short":
        store = store_in(tmp_path, *map(sent, [OTHER] * 3), second=START, host=BROKER_A)
    else:
        store = store_of_a(tmp_path)
        path = store / "commitlog" / f"{0:020d}"
        data = bytearray(path.read_bytes())
        data[4] ^= 1
        path.write_bytes(data)
    found = ambiguous(store)
    assert found["title"] == ambiguous()["title"]
    assert "the stores do not show it" in str(found["details"])


def test_several_stores(tmp_path: Path) -> None:
    other = store_in(tmp_path / "b", sent(KEYS[1]), second=START)
    found = ambiguous(store_of_a(tmp_path / "a", KEYS[0]), other)
    assert str(found["title"]).endswith("1 stored once, 2 stored more than once")


def test_a_store_says_how_a_transaction_ended(tmp_path: Path) -> None:
    before = problem("half-message-unresolved", capture=TRANSACTIONS)
    assert before is not None
    assert before["confidence"] == "likely"
    open_ = store_in(tmp_path / "open", half("AbandonedTopic", HALF))
    found = problem("half-message-unresolved", "--store", open_, capture=TRANSACTIONS)
    assert found is not None
    assert found["confidence"] == "certain"
    assert f"store: {HALF}: not decided" in found["details"]  # type: ignore[operator]
    early = 1_700_000_000
    for name, records, outcome in (
        ("rolled", [op(0)], "rolled back"),
        ("committed", [commit("AbandonedTopic", HALF, 0), op(0)], "committed"),
    ):
        store = store_in(tmp_path / name, half("AbandonedTopic", HALF), *records, second=early)
        words = ("--store", store)
        assert problem("half-message-unresolved", *words, capture=TRANSACTIONS) is None
        lines = rmqtool("trace", TRANSACTIONS, HALF, *words, "-q").out
        assert f"transaction {outcome} (according to the broker's store)" in lines
        assert "no commit or rollback captured" not in lines
    late = store_in(tmp_path / "late", half("AbandonedTopic", HALF), op(0), second=2_000_000_000)
    found = problem("half-message-unresolved", "--store", late, capture=TRANSACTIONS)
    assert found is not None
    assert f"store: {HALF}: rolled back at 2033-" in str(found["details"])


def test_a_store_tells_what_the_capture_does_not_of_transactions(tmp_path: Path) -> None:
    capture, topic = SAMPLES / "transaction-5x.pcap", "TransactionTopic"
    start = "C000020A03404E0E2F2A67837A"
    first, second, third, fourth = (
        f"{start}{end}" for end in ("5B0000", "780001", "8A0002", "8F0003")
    )
    halves = [half(topic, key) for key in (first, second, third, fourth)]
    ends = [commit(topic, first, 0), op(0), op(1), op(3)]
    store = store_in(tmp_path, *halves, *ends, second=1_700_000_000)
    before = problem("transaction-outcome", capture=capture)
    after = problem("transaction-outcome", "--store", store, capture=capture)
    assert before is not None
    assert after is not None
    assert "2 committed, 1 rolled back, 1 not decided" in str(before["title"])
    assert "2 committed, 2 rolled back;" in str(after["title"])
    details = after["details"]
    assert isinstance(details, list)
    told = {line.partition(":")[0]: line for line in details}
    assert "; committed at 2023-" in told[first]
    assert "; rolled back at 2023-" in told[second]
    # The producer committed the third one, but the broker did not take that.
    assert told[third].startswith(f"{third}: committed in response to a check;")
    assert told[third].endswith("; not decided according to the broker's store")


def test_a_store_has_the_copies_of_a_duplicate(tmp_path: Path) -> None:
    capture = SAMPLES / "stored-by-retry-5x.pcap"
    before = problem("duplicate-by-retry", capture=capture)
    assert before is not None
    keys = str(before["details"][0]).removeprefix("messages: ").split(", ")  # type: ignore[index]
    both = [sent(key, "AgainStoredTopic") for key in keys]
    store = store_in(tmp_path, *both, *both, queues=True, offsets={"AgainStoredTopic@g": {0: 3}})
    after = problem("duplicate-by-retry", "--store", store, capture=capture)
    assert after is not None
    details = after["details"]
    assert isinstance(details, list)
    assert details[0] == "the broker's store has 4 copies of 2 of these messages"
    told = next(line for line in details if line.startswith(f"store: {keys[1]}: "))
    assert told.count("AgainStoredTopic, queue 0, offset ") == 2
    assert (told.count(", consumed by g"), told.count(", not consumed by g")) == (1, 1)


def test_a_trace_has_the_copies_of_a_store(tmp_path: Path) -> None:
    store = store_of_a(
        tmp_path, KEYS[0], offsets={f"{TOPIC}@billing": {0: 1}, f"{TOPIC}@x": {0: 0}}
    )
    before = rmqtool("trace", CAPTURE, KEYS[0], "-q")
    after = rmqtool("trace", CAPTURE, KEYS[0], "--store", store, "-q")
    assert before.status == after.status == 0
    assert "broker's store" not in before.out
    assert "capture: whether the attempt without a response stored it" in before.out
    assert after.out.count("in the broker's store: FaultTopic, queue 0, offset 0") == 1
    words = " ".join(after.out.split())
    assert "in the broker's store once" in words
    assert "the broker's store has the message at another offset" in words
    assert "consumed by billing according to the broker: its offset in queue 0 is 1" in words
    assert "not consumed by x according to the broker" in words
    rows = rmqtool("trace", CAPTURE, KEYS[0], "--store", store, "-T", "json", "-q").out
    assert "on_disk" in json.dumps(json.loads(rows))
    absent = rmqtool("trace", CAPTURE, KEYS[1], "--store", store, "-q").out
    assert "the given stores have no copy of the attempt without a response" in absent


def test_the_api_takes_stores(tmp_path: Path) -> None:
    store = store_of_a(tmp_path, KEYS[0])
    capture = api.read(CAPTURE)
    problems = capture.problems(rules=["ambiguous-outcome"], stores=[store])
    assert problems[0].title == ambiguous(store)["title"]
    (life,) = capture.trace(KEYS[0], stores=[store])
    assert "in the broker's store once" in life.summary
    with pytest.raises(api.ReadError, match="no commit log files"):
        capture.problems(stores=[tmp_path])


def test_a_folder_without_a_commit_log_is_refused(tmp_path: Path) -> None:
    for command in (("diagnose", CAPTURE), ("trace", CAPTURE, KEYS[1])):
        failed = rmqtool(*command, "--store", tmp_path)
        assert failed.status != 0
        assert f"--store: {tmp_path}: no commit log files" in failed.err
    failed = rmqtool("diagnose", "-i", "lo", "--store", store_of_a(tmp_path))
    assert "--store: is for captures" in failed.err

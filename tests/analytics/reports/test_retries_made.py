"""The report of retries on made rows: copies, late answers, budgets, dead letters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from analytics.sends.attempt_table import MOST_IN_ORDER
from dissectors.remoting.code_sets import FETCHES
from tests.analytics.reported import Tables, tables_from
from tests.analytics.rows import START, moment, report_input, row


def key(number: int, born_us: int = 0) -> str:
    """Return a UNIQ_KEY of process 7 that was born `born_us` after START."""
    of_month = START - datetime(START.year, START.month, 1, tzinfo=UTC)
    milliseconds = of_month // timedelta(milliseconds=1) + born_us // 1000
    return f"0A00000900070A0B0C0D{milliseconds:08X}{number:04X}"


def message(tables: Tables, number: int) -> dict[str, object]:
    (found,) = (
        one for one in tables["retry_messages"] if one["unique_key"] == key(number, number * 10_000)
    )
    return found


def sent(number: int, at: int, broker: str = "a", **values: object) -> dict[str, object]:
    """Return a send of message `number` at a broker."""
    given: dict[str, object] = {
        "unique_key": key(number, number * 10_000),
        "server_address": f"10.0.0.{1 + 'abc'.index(broker)}:10911",
        "broker_name": f"broker-{broker}",
        "opaque": at,
        "offset_msg_id": f"{broker}-{at}",
        "source": "one.pcap",
        "conversation": "abc".index(broker),
    }
    return row(number * 10_000 + at, **{**given, **values})


REFUSED = {"response_code": 2, "response_name": "SYSTEM_BUSY", "offset_msg_id": None}
LOST = {"latency_us": None, "end": "reset", "offset_msg_id": None}
ROWS = [
    # every broker is asked by its name more often than by another's
    *(sent(100 + n, 0, "abc"[n % 3]) for n in range(30)),
    # 1: the answer came when the next attempt had begun: stored twice
    sent(1, 1000, latency_us=5000),
    sent(1, 4000, "b"),
    # 2: an asynchronous retry: the other broker gets the first one's name and queue
    sent(2, 1000, **LOST),
    sent(2, 3000, "b", broker_name="broker-a", queue_id=7, **REFUSED),
    # 3: seen by two captures, once
    sent(3, 1000),
    sent(3, 1050, source="two.pcap", capture="two.pcap", opaque=1000),
    # 4: seen by two captures, an attempt in each
    sent(4, 1000, **REFUSED),
    sent(4, 3000, "b", source="two.pcap", capture="two.pcap"),
    # 5: a client that is too old to retry this code
    sent(5, 1000, version=395, version_name="V4_9_1", **REFUSED),
    # 6: an attempt after the time is over
    sent(6, 1000, **REFUSED),
    sent(6, 4_000_000, "b"),
    # 7: a connect to c was refused before the request
    sent(7, 3000, "b"),
    # 8: no answer when the capture ended
    sent(8, 1000, latency_us=None, end="open", offset_msg_id=None),
    # 9: a key of another form, refused
    sent(9, 1000, unique_key="my own", **REFUSED),
    # no key at all
    sent(10, 1000, unique_key=None),
    # a producer of another group, sent to the retry topic by a consumer
    sent(11, 1000, topic="%RETRY%readers", group="CLIENT_INNER_PRODUCER"),
]


def connection(number: int, **values: object) -> dict[str, object]:
    return {
        "source": "one.pcap",
        "capture": "test.pcap",
        "conversation": number,
        "client_address": "10.0.0.9:40000",
        "server_address": f"10.0.0.{1 + number}:10911",
        "start": "midstream",
        "end": "reset",
        "ended_by": "server",
        "start_time": moment(0),
        "end_time": moment(2_000_000),
        "directions": "both",
        "gaps": 0,
        **values,
    }


CONNECTIONS = [
    *(connection(number, end="open") for number in (1, 2)),
    connection(0),
    connection(
        8,
        server_address="10.0.0.3:10911",
        start="syn",
        end="refused",
        start_time=moment(70_500),
        end_time=moment(70_600),
    ),
]


@pytest.fixture(scope="module")
def made() -> Tables:
    """The report of rows made up, with connections."""
    return tables_from("retries", report_input(ROWS, CONNECTIONS))


def test_a_send_without_key_is_a_message_of_its_own() -> None:
    """A batch of 4.x that is refused and sent again: nothing says that both are one."""
    batch = {"unique_key": None, "message_count": 4, "topic": "batches"}
    rows = [sent(1, 1000, **batch, **REFUSED), sent(1, 3000, "b", **batch), *ROWS[:30]]
    found = tables_from("retries", report_input(rows, CONNECTIONS))
    (totals,) = [row for row in found["retry_totals"] if row["topic"] == "batches"]
    assert (totals["messages"], totals["sends"], totals["attempts"]) == (8, 2, 2)
    assert (totals["unknown"], totals["failed"], totals["retried"]) == (4, 0, 0)
    (cause,) = found["retry_causes"]
    assert (cause["cause"], cause["attempts"], cause["messages"]) == ("SYSTEM_BUSY", 1, 4)
    (attempt,) = found["retry_attempts"]
    assert (attempt["unique_key"], attempt["outcome"]) == (None, "refused")


def test_one_text_names_the_first_attempts_of_many() -> None:
    many = MOST_IN_ORDER + 36
    rows = [sent(999, 1000 * (n + 1), "ab"[n % 2], **REFUSED) for n in range(many)]
    found = tables_from("retries", report_input([*rows, *ROWS[:30]], CONNECTIONS))
    (listed,) = (one for one in found["retry_messages"] if one["attempts"] == many)
    for name in ("brokers", "causes"):
        texts = str(listed[name]).split(" → ")
        assert (len(texts), texts[-1]) == (MOST_IN_ORDER + 1, "36 more")
    assert len([one for one in found["retry_attempts"] if one["cause"] == "SYSTEM_BUSY"]) == many


def test_a_sample_is_what_came_first_whatever_its_name() -> None:
    busy = [sent(n, 1000, **REFUSED, remark=text) for n, text in enumerate((None, "late", "a"), 1)]
    found = tables_from("retries", report_input([*reversed(busy), *ROWS[:30]], CONNECTIONS))
    assert [row["remark"] for row in found["retry_causes"]] == ["late"]
    assert {row["remark"] for row in found["retry_verdicts"]} == {"late"}
    assert {row["unique_key"] for row in found["retry_verdicts"]} == {key(1, 10_000)}


def test_one_key_in_two_topics_is_two_messages() -> None:
    rows = [
        sent(1, 1000, topic="from"),
        sent(1, 5000, "b", topic="to", **REFUSED),
        sent(1, 9000, "c", topic="to"),
    ]
    found = tables_from("retries", report_input(rows, CONNECTIONS))
    (message_,) = found["retry_messages"]
    assert (message_["topic"], message_["causes"]) == ("to", "SYSTEM_BUSY → stored")
    totals = {row["topic"]: (row["messages"], row["retried"]) for row in found["retry_totals"]}
    assert totals == {"from": (1, 0), "to": (1, 1)}


def test_hosts_share_neither_messages_nor_timeouts() -> None:
    """Processes in containers have the same number; one of them gives up after a second."""
    one, other = {"client_address": "10.0.0.7:40000"}, {"client_address": "10.0.0.8:40000"}
    lost = {**LOST, "end": "closed", **one}
    rows = [
        sent(1, 1000, **one, **REFUSED),
        sent(1, 2000, "b", **other),
        *(sent(n, 1000, conversation=n, **lost) for n in (20, 21)),
        sent(3, 1000, **other, **REFUSED),
        sent(3, 2_001_000, "b", **other),
        sent(4, 1000, **REFUSED),
    ]
    closed = [
        connection(n, ended_by="client", end="closed", end_time=moment(n * 10_000 + 1_001_000))
        for n in (20, 21)
    ]
    found = tables_from("retries", report_input(rows, [*CONNECTIONS[:2], *closed]))
    messages = {
        (row["client"], row["unique_key"]): row["causes"] for row in found["retry_messages"]
    }
    assert messages["10.0.0.7", key(1, 10_000)] == "SYSTEM_BUSY"
    assert ("10.0.0.8", key(1, 10_000)) not in messages
    assert message(found, 20)["causes"] == "timeout"
    assert message(found, 3)["over_budget"] == 0


def test_a_stored_message_has_no_verdict_though_the_clock_stepped_back() -> None:
    """The retry that was stored seems to come before the attempt that was refused."""
    rows = [
        *ROWS[:30],
        sent(1, 9000, version=453, version_name="V5_2_0", **REFUSED),
        sent(1, 1000, "b", version=453, version_name="V5_2_0"),
    ]
    found = tables_from("retries", report_input(rows, CONNECTIONS))
    (one,) = found["retry_messages"]
    assert (one["final"], one["verdict"]) == ("stored", None)
    assert found["retry_verdicts"] == []


def test_a_late_answer_makes_a_copy(made: Tables) -> None:
    found = message(made, 1)
    assert found["causes"] == "stored too late → stored"
    assert (found["final"], found["copies"], found["late"]) == ("stored", 2, 1)


def test_an_asynchronous_retry_brings_the_first_brokers_queue(made: Tables) -> None:
    found = message(made, 2)
    assert found["brokers"] == "broker-a → broker-b"
    assert (found["final"], found["unsure"]) == ("may be stored", 1)
    stale = [one for one in made["retry_attempts"] if one["stale_queue"]]
    assert [(one["unique_key"], one["attempt"], one["queue_id"]) for one in stale] == [
        (found["unique_key"], 2, 7)
    ]
    flow = {"from_broker": "broker-a", "to_broker": "broker-b", "cause": "connection reset"}
    (seen,) = (one for one in made["retry_flows"] if flow.items() <= one.items())
    assert (seen["retries"], seen["stale_queue"], seen["stored"]) == (1, 1, 0)


def test_a_request_in_two_captures_is_one_attempt(made: Tables) -> None:
    assert key(3, 30_000) not in {one["unique_key"] for one in made["retry_messages"]}
    found = message(made, 4)
    assert (found["attempts"], found["causes"]) == (2, "SYSTEM_BUSY → stored")


def test_a_code_that_only_newer_clients_retry(made: Tables) -> None:
    assert str(message(made, 5)["verdict"]).startswith("not retried: only newer clients")


def test_an_attempt_after_the_time_budget(made: Tables) -> None:
    assert message(made, 6)["over_budget"] == 1
    late = [one["attempt"] for one in made["retry_attempts"] if one["after_budget"]]
    assert late == [2]


def test_a_refused_connect_is_an_attempt_without_request(made: Tables) -> None:
    found = message(made, 7)
    assert (found["brokers"], found["causes"]) == (
        "broker-c → broker-b",
        "connect refused → stored",
    )
    first = next(one for one in made["retry_attempts"] if one["inferred"])
    assert (first["conversation"], first["request_packet"]) == (8, None)


def test_totals_count_every_message_once(made: Tables) -> None:
    by_process = {one["process"]: one for one in made["retry_totals"]}
    known = by_process["7-0A0B0C0D"]
    assert (known["messages"], known["attempts"]) == (38, 43)
    assert (known["retried"], known["failed"], known["maybe"]) == (5, 1, 1)
    assert (known["unknown"], known["duplicates"], known["copies"]) == (1, 1, 1)
    assert (known["over_budget"], known["stale_queue"], known["unsure"]) == (1, 1, 1)
    assert known["amplification"] == pytest.approx(43 / 38)
    own = by_process[None]
    assert (own["messages"], own["attempts"], own["failed"]) == (2, 2, 1)


def test_what_consumers_send_again_is_theirs(made: Tables) -> None:
    (only,) = made["consumer_retries"]
    assert (only["group"], only["sent_again"], only["sent_back"]) == ("readers", 1, 0)


def test_dead_letters_are_told_by_how_often_a_message_was_sent_back() -> None:
    """A message may be delivered again twice; then at once; then of one that had no such limit."""

    def back(key: str, at: int, limit: int | None, code: int = 0) -> dict[str, object]:
        return row(
            at,
            request_code=36,
            request_name="CONSUMER_SEND_MSG_BACK",
            response_code=code,
            group="readers",
            unique_key=key,
            max_reconsume_times=limit,
        )

    pulled = {"request_code": 11, "request_name": "PULL_MESSAGE", "message_count": 3}
    rows = [
        *(back("twice", at, 2) for at in (0, 1)),
        *(back("thrice", at, 2) for at in (0, 1, 2)),
        *(back("refused", at, 2, code=1 if at else 0) for at in (0, 1, 2)),
        back("at once", 0, 0),
        *(back("unlimited", at, None) for at in range(20)),
        row(5, topic="%DLQ%readers", group="tools", **pulled),
        row(6, topic="%DLQ%readers", group="CLIENT_INNER_PRODUCER"),
    ]
    tables = tables_from("retries", report_input(rows), "consumer_retries")
    found = {
        one["group"]: (one["dead_letters"], one["dead_letters_read"])
        for one in tables["consumer_retries"]
    }
    assert found == {"readers": (3, 0), "tools": (0, 3)}


def test_every_way_to_fetch_counts_as_a_delivery() -> None:
    rows = [
        row(at, request_code=code, topic="%RETRY%readers", group="readers", message_count=2)
        for at, code in enumerate(sorted(FETCHES))
    ]
    tables = tables_from("retries", report_input(rows), "consumer_retries")
    (one,) = tables["consumer_retries"]
    assert one["redelivered"] == 2 * len(rows) == 8


def test_remarks_say_what_a_reader_must_know(made: Tables) -> None:
    from analytics.reports.retries import report_notes

    said = " ".join(report_notes(made))
    assert "Outcome not captured: 1 message, which" in said
    assert "1 duplicate stored" in said
    assert "1 attempt inferred" in said
    assert "1 retried attempt may also have stored the message" in said
    assert "queue of another broker" in said
    assert report_notes({}) == []


def test_without_connections_nothing_is_inferred_and_nothing_is_certain() -> None:
    names = "retry_messages", "retry_attempts"
    tables = tables_from("retries", report_input(ROWS), *names)
    assert message(tables, 2)["causes"] == "connection reset → SYSTEM_BUSY"
    reset = [one for one in tables["retry_attempts"] if one["outcome"] == "connection reset"]
    assert [one["certain"] for one in reset] == [False]
    assert not [one for one in tables["retry_attempts"] if one["inferred"]]


def test_attempts_that_our_own_producer_logged() -> None:
    """One row per attempt without packets: one that could not connect has no address of its own."""
    own = {"request_packet": None, "response_packet": None, "source": "log", "capture": "-"}
    rows = [
        sent(
            1, 1000, **own, **{**LOST, "end": None}, client_address="", opaque=0, remark="refused"
        ),
        sent(1, 1500, "c", **own, **{**LOST, "end": "open"}),
        sent(1, 3000, "b", **own),
        sent(2, 1000, **own),
    ]
    names = "retry_messages", "retry_attempts", "retry_totals"
    tables = tables_from("retries", report_input(rows), *names)
    found = message(tables, 1)
    assert found["causes"] == "not sent → timeout → stored"
    assert found["client"] == "10.0.0.9"
    assert {one["certain"] for one in tables["retry_attempts"]} == {True}
    (counts,) = tables["retry_totals"]
    assert (counts["messages"], counts["attempts"], counts["unknown"]) == (2, 4, 0)

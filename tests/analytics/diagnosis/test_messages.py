"""Which messages are looked at: those that failed, took long or were retransmitted; bounded."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.diagnosis import messages as of
from analytics.diagnosis.keys import flow_of
from analytics.diagnosis.messages import (
    AttemptStore,
    ObservedMessage,
    is_producers,
    process_of,
)
from analytics.sends.attempts import REFUSED, STORED, STORED_UNCONFIRMED, TIMED_OUT
from analytics.sends.chains import FAILED, MAYBE
from dissectors.grpc.names import CODES, OK
from dissectors.rows.record import ExchangeRecord

from .made_rows import BROKER, START, connection, exchange, oneway, refused_connect

OTHER = "10.0.0.3:10911"
NAMES = {BROKER: "broker-a", OTHER: "broker-b"}
KEY = "C000020A05BE4E0E2F2A6D0727E8000"


def send(
    at_ms: float, answer: int | None = 0, latency_ms: float = 1, **values: Any
) -> ExchangeRecord:
    return exchange(
        at_ms, 310, answer, latency_ms, **{"topic": "T", "group": "g", "unique_key": "A", **values}
    )


def kept(*rows: object, source: str = "") -> list[ObservedMessage]:
    """The messages that a store keeps of exchanges and connections."""
    store = AttemptStore()
    store.source = source
    for row in rows:
        if isinstance(row, ExchangeRecord):
            store.add(row)
        else:
            store.add_connection(row)  # type: ignore[arg-type]
    return store.messages(NAMES)


def test_what_was_stored_at_once_is_not_looked_at() -> None:
    assert kept(send(0), send(1, unique_key="B"), oneway(2, 310, unique_key="C")) == []
    assert kept(send(0, unique_key=None), exchange(0, 11, None)) == []
    assert kept(send(0, status="orphan", request_time=None)) == []


@pytest.mark.parametrize(
    "row",
    [
        send(0, 2),
        send(0, None),
        send(0, None, end="reset"),
        send(0, latency_ms=2701),
        send(0, 13, topic="%TOPIC"),
    ],
)
def test_what_failed_or_took_long_is_looked_at(row: ExchangeRecord) -> None:
    (one,) = kept(row)
    assert (one.key, len(one.attempts), one.rows) == ("A", 1, [row])
    assert one.last is one.attempts[0]


def test_sends_of_consumers_are_not_looked_at() -> None:
    for topic in ("%RETRY%g", "%DLQ%g", "ns%%RETRY%g"):
        assert kept(send(0, 2, topic=topic)) == []
        assert not is_producers(send(0, topic=topic))


def test_what_was_sent_again_is_looked_at_in_any_order() -> None:
    rows = [
        send(at, server_address=OTHER if at else BROKER, conversation=int(at)) for at in (0, 5, 9)
    ]
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        (one,) = kept(*rows)
        assert [attempt.send.broker for attempt in one.attempts] == ["broker-a", *["broker-b"] * 2]
        assert [row.request_time for row in one.rows] == sorted(
            row.request_time or 0 for row in rows
        )


def test_a_send_right_after_a_failed_connect_is_looked_at_whichever_comes_first() -> None:
    failed = refused_connect(10, server_address=OTHER)
    born = (START // 1_000_000 + 9) % 900_000
    after = send(11, unique_key=f"{'C000020A05BE4E0E2F2A':0<20}{born:08X}0001")
    long_after = send(900_000, unique_key="B")
    for rows in ((failed, after, long_after), (after, long_after, failed)):
        (one,) = kept(*rows)
        assert [attempt.inferred for attempt in one.attempts] == [True, False]
        assert one.attempts[0].send.broker == "broker-b"


def test_a_failed_connect_is_told_of_long_after_the_send() -> None:
    """In a decoded log all connections come after all exchanges."""
    others = [send(5_000 + number, unique_key=f"B{number}") for number in range(400)]
    rows = [refused_connect(0), send(5), *others]
    assert [one.key for one in kept(*rows)] == ["A"]
    assert [one.key for one in kept(*reversed(rows))] == ["A"]
    elsewhere = send(6, client_address="10.0.0.8:40000", unique_key="C")
    assert [one.key for one in kept(*rows, elsewhere)] == ["A"], "another host"


def test_a_connect_to_what_is_no_broker_is_no_attempt() -> None:
    found = kept(refused_connect(10, server_address="10.9.9.9:80"), send(11, 2))
    assert [len(one.attempts) for one in found] == [1]


def test_conversations_are_numbered_by_input() -> None:
    store = AttemptStore()
    for source, cut in (("x", 100), ("y", 900)):
        store.source = source
        store.add_connection(connection(0, cut, number=7, ended_by="server", end="reset"))
        store.add(send(50, None, unique_key=source, conversation=7, end="reset"))
    found = store.messages(NAMES)
    assert [one.key for one in found] == ["x", "y"]
    first, second = (one.last.send.closed or 0 for one in found)
    assert second - first == 800_000


def test_a_relay_is_no_attempt_of_its_own() -> None:
    outer = send(0, 0, 20, server_address="10.0.0.7:8080")
    inner = send(5, 0, 10, client_address="10.0.0.7:5000", conversation=1)
    other = send(30, 0, 1)
    (found,) = kept(inner, other, outer)
    assert found.rows == [outer, other]


def test_a_relay_that_runs_where_its_client_does_is_proven_by_another_message() -> None:
    proxy, id_ = {"server_address": "10.0.0.1:8080"}, {"offset_msg_id": "AC1100020000"}
    proof = [
        send(0, 0, 20, unique_key="P", **proxy, **id_),
        send(5, 0, 10, unique_key="P", conversation=1, **id_),
    ]
    outer = send(100, None, **proxy, end="closed")
    inner = send(110, 0, 9_000, conversation=1)
    again = send(3_110, None, **proxy, end="closed", conversation=2)
    found = {one.key: one.rows for one in kept(outer, inner, again, *proof)}
    assert found == {"P": [proof[0]], "A": [outer, again]}
    (unproven,) = kept(outer, inner)
    assert unproven.rows == [outer, inner]


def test_ids_tell_the_process() -> None:
    assert process_of("A" * 32, "h") == process_of("A" * 20 + "B" * 12, "h")
    assert process_of("short", "h") == "h"


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_RECENT", "MAX_SENDS", "MAX_TELLING", "MAX_CONNECTIONS", "MAX_FAILURES"):
        monkeypatch.setattr(of, name, 3)
    store = AttemptStore()
    for number in range(10):
        store.add(send(number, 2, unique_key="again"))
        store.add(send(number, 2, unique_key=f"refused {number}"))
        store.add(send(number, unique_key=f"stored {number}"))
        store.add(oneway(number, 310, unique_key=f"oneway {number}"))
        store.add_connection(connection(number, number=number))
        store.add_connection(refused_connect(number, number))
    found = store.messages(NAMES)
    assert sorted({one.key for one in found}) == ["again", "refused 0", "refused 1"]
    assert store.left_out >= 8
    assert max(len(one.rows) for one in found) == 3


@given(st.lists(st.tuples(st.sampled_from("ABCDE"), st.booleans(), st.integers(0, 3)), max_size=12))
def test_sends_together_are_kept_as_one_by_one(
    sends: list[tuple[str, bool, int]],
) -> None:
    rows = [
        send(at * 100, 0, 5000 if long else 1, unique_key=None if source == 3 else key)
        for at, (key, long, source) in enumerate(sends)
    ]
    together, one_by_one = AttemptStore(), AttemptStore()
    for source in range(3):
        own = [row for row, (_, _, of) in zip(rows, sends, strict=True) if of % 3 == source]
        for store in (together, one_by_one):
            store.source = str(source)
        add = together.adder_of(flow_of(send(0)))
        assert add is not None
        add(own)
        for row in own:
            one_by_one.add(row)
    assert together.messages(NAMES) == one_by_one.messages(NAMES)


PROXY = "10.0.0.4:8081"


def call(at_ms: float, code: int | None = OK, latency_ms: float = 4, **values: Any) -> Any:
    return send(
        at_ms,
        code,
        latency_ms,
        **{
            "request_code": None,
            "request_name": "SendMessage",
            "server_address": PROXY,
            "opaque": int(at_ms * 10),
            **values,
        },
    )


def of_proxy(at_ms: float, code: int | None = 0, **values: Any) -> Any:
    return send(at_ms, code, **{"client_address": "10.0.0.4:40000", **values})


def test_a_call_and_what_its_proxy_sends_for_it_are_one_send() -> None:
    for rows in ((call(0), of_proxy(1)), (of_proxy(1), call(0))):
        assert kept(*rows) == []


def test_calls_of_one_message_are_its_attempts_in_any_order() -> None:
    late = CODES["MASTER_PERSISTENCE_TIMEOUT"]
    rows = [call(0, late), of_proxy(1, 10), call(10), of_proxy(11)]
    for seed in range(6):
        random.Random(seed).shuffle(rows)
        (one,) = kept(*rows)
        assert [attempt.outcome for attempt in one.attempts] == [STORED_UNCONFIRMED, STORED]
        assert [attempt.send.server_address for attempt in one.attempts] == [PROXY, PROXY]
        assert one.chain.copies == 2


def test_what_the_broker_told_the_proxy_decides_what_the_call_does_not_say() -> None:
    given_up = call(0, None, facts=["stream_reset=CANCEL client"], end="open")
    (alone,) = kept(given_up)
    assert (alone.last.outcome, alone.chain.final) == (TIMED_OUT, MAYBE)
    (stored,) = kept(given_up, of_proxy(1))
    assert (stored.last.outcome, stored.chain.final) == (STORED_UNCONFIRMED, STORED_UNCONFIRMED)
    (refused,) = kept(call(0, CODES["INTERNAL_SERVER_ERROR"]), of_proxy(1, 14))
    assert (refused.last.outcome, refused.chain.final) == (REFUSED, FAILED)


def test_other_calls_are_not_looked_at() -> None:
    assert kept(call(0, None, request_name="ReceiveMessage")) == []

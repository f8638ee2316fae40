"""A relay's sends are told from attempts: by addresses, by message ids, within bounded memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissectors.rows.record import ExchangeRecord
from dissectors.rows.relays import Relays
from replay.captured import relay_hops
from replay.captured.captured_send import (
    END_TRANSACTION,
    CapturedSend,
    Refused,
    Seen,
    SkipReason,
)
from replay.captured.look_ahead import LookAhead
from replay.captured.relay_hops import MAX_KEY_LENGTH, MAX_OPEN, Relay, RelayHops
from replay.captured.source import CapturedSource, survey_of
from replay.message import TransactionState
from tests.dissectors.made_rows import record
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send, sent
from tests.traffic.talk import End, Talk, retimed

from ..replayed import MS, SECOND, START, plan_of, sample, seen

CLIENT, RELAY, RELAY_ITSELF, BROKER = "10.0.0.5:4", "10.0.0.7:8080", "10.0.0.7:50001", "10.0.0.1:11"
HIDDEN = "172.17.0.1:50002"
"""an address that says nothing of the relay"""
SKIPPED = "made by 10.0.0.7:8080 of packet 1"


def outer(at: int = 0, key: str = "K1", **more: object) -> Seen:
    return seen(at, key=key, client_address=CLIENT, server_address=RELAY, **more)  # type: ignore[arg-type]


def inner(at: int, key: str = "K1", client_address: str = RELAY_ITSELF, **more: object) -> Seen:
    request = seen(
        at, key=key, client_address=client_address, server_address=BROKER, conversation=2, **more
    )  # type: ignore[arg-type]
    return request


def answer(ahead: LookAhead, request: Seen, at: int, msg_id: str = "", code: int = 0) -> None:
    fields = {"msgId": msg_id, "queueId": "0", "queueOffset": "5"} if msg_id else {}
    ahead.response(request.origin.key, START + at, code, None, fields)


def reasons(rows: list[CapturedSend | Refused]) -> list[SkipReason | None]:
    return [one.refusal.why if isinstance(one, Refused) else None for one in rows]


def only_send(rows: list[CapturedSend | Refused]) -> CapturedSend:
    (one,) = [one for one in rows if isinstance(one, CapturedSend)]
    return one


@pytest.mark.parametrize("oneway", [False, True], ids=["answered", "oneway"])
def test_a_request_from_the_host_that_was_asked_is_an_inner_hop(oneway: bool) -> None:
    ahead = LookAhead()
    asked, made = outer(oneway=oneway), inner(2 * MS, oneway=oneway)
    ahead.request(asked)
    ahead.request(made)
    if not oneway:
        answer(ahead, made, 4 * MS, "ID1")
        assert ahead.take() == [], "the client's answer is the outcome"
        answer(ahead, asked, 6 * MS, "ID1")
    rows = ahead.take()
    assert reasons(rows) == [None, SkipReason.INNER_HOP]
    assert isinstance(rows[1], Refused)
    assert rows[1].refusal.detail == SKIPPED
    one = only_send(rows)
    assert (one.response.attempts, one.response.server_address) == (1, RELAY)
    assert one.response.latency_us == (None if oneway else 6000)


def test_what_the_relay_tries_again_is_no_attempt_of_the_client() -> None:
    ahead = LookAhead()
    asked, first, second = outer(), inner(MS), inner(3 * MS, opaque=9)
    ahead.request(asked)
    ahead.request(first)
    answer(ahead, first, 2 * MS, code=2)
    ahead.request(second)
    answer(ahead, second, 4 * MS, "ID1")
    answer(ahead, asked, 5 * MS, "ID1")
    rows = ahead.take()
    assert reasons(rows) == [None, SkipReason.INNER_HOP, SkipReason.INNER_HOP]
    assert (only_send(rows).response.attempts, only_send(rows).response.code) == (1, 0)


def test_one_message_id_in_both_answers_proves_a_relay_behind_another_address() -> None:
    ahead = LookAhead()
    asked, made = outer(), inner(2 * MS, client_address=HIDDEN)
    ahead.request(asked)
    ahead.request(made)
    answer(ahead, made, 4 * MS, "ID1")
    assert ahead.take() == [], "it may be an attempt or a hop: the open answer tells"
    answer(ahead, asked, 6 * MS, "ID1")
    rows = ahead.take()
    assert reasons(rows) == [None, SkipReason.INNER_HOP]
    one = only_send(rows)
    assert (one.response.attempts, one.response.latency_us, one.response.server_address) == (
        1,
        6000,
        RELAY,
    )


def test_the_answers_may_be_seen_in_the_other_order() -> None:
    ahead = LookAhead()
    asked, made = outer(), inner(2 * MS, client_address=HIDDEN)
    ahead.request(asked)
    ahead.request(made)
    answer(ahead, asked, 6 * MS, "ID1")
    answer(ahead, made, 6 * MS, "ID1")
    rows = ahead.take()
    assert reasons(rows) == [None, SkipReason.INNER_HOP]
    assert (only_send(rows).response.attempts, only_send(rows).response.latency_us) == (1, 6000)


def test_a_relay_that_is_proved_once_is_known_for_oneway_and_refused_sends() -> None:
    ahead = LookAhead()
    asked, made = outer(), inner(2 * MS, client_address=HIDDEN)
    ahead.request(asked)
    ahead.request(made)
    answer(ahead, made, 4 * MS, "ID1")
    answer(ahead, asked, 6 * MS, "ID1")
    ahead.take()
    ahead.request(outer(SECOND, "K2", oneway=True))
    ahead.request(inner(SECOND + MS, "K2", HIDDEN, oneway=True))
    refused = outer(2 * SECOND, "K3"), inner(2 * SECOND + MS, "K3", HIDDEN)
    for request in refused:
        ahead.request(request)
    for request in reversed(refused):
        answer(ahead, request, 2 * SECOND + 2 * MS, code=14)
    rows = ahead.take(everything=True)
    assert reasons(rows) == [None, SkipReason.INNER_HOP] * 2


def test_an_attempt_at_another_broker_stays_one() -> None:
    ahead = LookAhead()
    first = seen(0, client_address=CLIENT, server_address=BROKER)
    again = seen(10 * MS, client_address="10.0.0.5:5", server_address="10.0.0.2:11", conversation=2)
    ahead.request(first)
    ahead.request(again)
    answer(ahead, again, 12 * MS, "ID2")
    answer(ahead, first, 14 * MS, "ID1")
    rows = ahead.take()
    assert reasons(rows) == [None, SkipReason.ANOTHER_ATTEMPT]
    one = only_send(rows)
    assert (one.response.attempts, one.response.latency_us) == (2, 2000)
    assert one.response.server_address == "10.0.0.2:11"


def test_a_client_on_the_host_of_the_broker_may_try_again() -> None:
    hops = RelayHops()
    at_broker = BROKER.replace(":11", ":777")
    first = seen(0, client_address=at_broker, server_address=RELAY).origin
    made = inner(MS).origin
    again = seen(
        2 * MS, client_address=at_broker, server_address="10.0.0.8:8080", conversation=3
    ).origin
    assert hops.request(first, "K1") is None
    assert hops.request(made, "K1") == first
    hops.add_response(first, "K1", START + 2 * MS, "")
    assert hops.request(again, "K1") is None


def test_hops_through_two_relays_are_all_inner_ones() -> None:
    hops = RelayHops()
    second = "10.0.0.8:8080"
    asked = outer().origin
    between = seen(MS, client_address=RELAY_ITSELF, server_address=second, conversation=2).origin
    last = seen(2 * MS, client_address="10.0.0.8:5", server_address=BROKER, conversation=3).origin
    assert [hops.request(one, "K1") for one in (asked, between, last)] == [None, asked, between]


def test_what_begins_after_the_answer_is_no_inner_hop() -> None:
    hops = RelayHops()
    hops.request(outer().origin, "K1")
    hops.add_response(outer().origin, "K1", START + MS, "ID1")
    assert hops.request(inner(2 * MS).origin, "K1") is None
    assert hops.request(outer(SECOND).origin, "K2") is None
    assert hops.request(inner(SECOND + MAX_OPEN + 1).origin, "K2") is None


def test_the_end_of_a_transaction_goes_through_the_relay_too() -> None:
    ahead = LookAhead()
    half, made = outer(sys_flag=4), inner(MS, sys_flag=4)
    ends = outer(10 * MS, code=END_TRANSACTION), inner(11 * MS, code=END_TRANSACTION)
    ahead.request(half)
    ahead.request(made)
    answer(ahead, half, 3 * MS, "ID1")
    for end in ends:
        end.command.ext_fields, end.command.flag = {"msgId": "K1", "commitOrRollback": "8"}, 2
        ahead.request(end)
    rows = ahead.take()
    assert reasons(rows) == [
        None,
        SkipReason.INNER_HOP,
        SkipReason.ENDS_TRANSACTION,
        SkipReason.INNER_HOP,
    ]
    assert only_send(rows).state is TransactionState.COMMIT


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_hops, "MAX_KEYS", 3)
    monkeypatch.setattr(relay_hops, "MAX_HOPS", 2)
    hops = RelayHops()
    for n in range(5):
        hops.request(outer(n, f"K{n}").origin, f"K{n}")
    assert hops.request(inner(9, "K1").origin, "K1") is None, "the oldest are forgotten"
    assert hops.request(inner(9, "K4").origin, "K4") is not None
    for n in range(5):
        hops.request(inner(10 + n, "K4", opaque=n).origin, "K4")
    assert len(hops.known["K4"].hops) == 2
    long = "K" * (MAX_KEY_LENGTH + 1)
    hops.request(outer(20).origin, long)
    assert long not in hops.known
    hops.request(outer(2 * MAX_OPEN).origin, "late")
    assert list(hops.known) == ["late"]


def test_the_sample_through_a_proxy_is_replayed_as_its_clients_sent_it() -> None:
    steps, skipped = plan_of(sample("proxy-remoting-5x.pcap"))
    keys = [step.captured_key for step in steps]
    assert len(keys) == len(set(keys)) == 12
    assert {step.origin.server_address for step in steps} == {"127.77.0.71:18080"}
    assert [step.captured.response.attempts for step in steps] == [1] * 10 + [2] * 2
    hops = [one for one in skipped if one.why is SkipReason.INNER_HOP]
    assert {one.origin.server_address for one in hops} == {"127.77.0.11:10911"}
    assert len(hops) == 14


def test_what_later_answers_prove_is_known_from_the_first_send_on() -> None:
    asked, made = outer(SECOND), inner(SECOND + 2 * MS, client_address=HIDDEN)
    relays = Relays()
    relays.add(_answered(made, 4 * MS))
    assert not relays.proven()
    relays.add(_answered(asked, 6 * MS))
    ahead = LookAhead(relays=relays.proven())
    ahead.request(outer(0, "K0", oneway=True))
    ahead.request(inner(MS, "K0", HIDDEN, oneway=True))
    assert reasons(ahead.take(everything=True)) == [None, SkipReason.INNER_HOP]


def _answered(request: Seen, until: int) -> ExchangeRecord:
    """Return the row of a send that was answered so long after `SECOND`."""
    origin = request.origin
    return record(
        capture=origin.capture,
        client_address=origin.client_address,
        server_address=origin.server_address,
        request_time=origin.time,
        response_time=START + SECOND + until,
        unique_key="K1",
        offset_msg_id="ID1",
    )


def test_the_raw_mode_leaves_inner_hops_out_too() -> None:
    ahead = LookAhead(raw=True)
    asked, made = outer(), inner(2 * MS)
    for request in (asked, made):
        ahead.request(request)
    answer(ahead, made, 4 * MS, "ID1")
    answer(ahead, asked, 6 * MS, "ID1")
    assert reasons(ahead.take()) == [None, SkipReason.INNER_HOP]


@pytest.mark.parametrize("raw", [False, True], ids=["sends", "raw"])
def test_relays_are_looked_for_before_the_replay(raw: bool, tmp_path: Path) -> None:
    """Through a translated address: the first send is one-way, and the second proves the relay."""
    hidden, relay, broker = End("172.17.0.1", 50002), End("10.0.0.7", 8080), End("10.0.0.1", 11)
    outside = Talk(server=relay).open()
    inside = Talk(client=hidden, server=broker).open()
    segments = [*outside.segments, *inside.segments]
    oneway, asked, answered = send(1, flag=2).frame, send(2).frame, sent(2).frame
    said = [(outside, 0, oneway), (inside, 0, oneway), (outside, 0, asked), (inside, 0, asked)]
    for talk, side, data in (*said, (inside, 1, answered), (outside, 1, answered)):
        talk.segments.clear()
        segments += talk.say(side, data).segments
    path = tmp_path / "hidden.pcap"
    path.write_bytes(pcap_of(retimed(segments, step=MS)))
    survey = survey_of([str(path)])
    assert survey.relays == {Relay(str(relay), "172.17.0.1", str(broker))}
    codes = frozenset({310}) if raw else None
    source = CapturedSource([str(path)], raw_codes=codes, relays=survey.relays)
    rows = [one for batch in source.batches() for one in batch]
    assert reasons(rows) == [None, SkipReason.INNER_HOP] * 2

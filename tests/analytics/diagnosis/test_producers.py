"""The numbers that are kept of sends: when a message was born, and which attempts there were."""

from __future__ import annotations

import pytest

from analytics.diagnosis import context
from analytics.diagnosis import producers as of
from analytics.diagnosis.context import Context
from analytics.diagnosis.keys import flow_of
from analytics.diagnosis.producers import (
    ProducerFold,
    ProducerSends,
    process_digits,
)
from dissectors.endpoint import host_of
from dissectors.rows.record import ExchangeRecord
from replay.fault import FaultSettings

from .made_rows import BROKER, CLIENT, START, exchange

SEND = 310
KIND = ("stored", BROKER, "T")
BORN_MS = START // 1_000_000 % (24 * 3600 * 1000)


def key(number: int, born_ms: int = BORN_MS, digits: str = "04D218B4AAC2") -> str:
    """A UNIQ_KEY of 10.0.0.1."""
    return f"0A000001{digits}{born_ms:08X}{number:04X}"


def send(at_ms: float, unique_key: str | None, latency_ms: float = 1) -> ExchangeRecord:
    return exchange(at_ms, SEND, 0, latency_ms, topic="T", unique_key=unique_key)


def kept(*rows: ExchangeRecord) -> ProducerSends:
    sends = ProducerSends("", CLIENT, None, "JAVA", 500)
    sends.add(rows, KIND)
    return sends


def begins(sends: ProducerSends) -> list[int]:
    """When each attempt began, in ms from the start of the capture."""
    pytest.importorskip("numpy")
    return [(int(one) * 1000 - START) // 1_000_000 for one in sends.attempts([], Context()).begin]


def test_an_attempt_begins_when_its_message_was_born() -> None:
    assert len(key(1)) == 32
    assert begins(kept(send(40, key(1)), send(50, key(2)), send(9000, key(3)))) == [0, 0, 9000]
    zone = 3 * 15 * 60 * 1000
    assert begins(kept(send(40, key(1, BORN_MS + zone)))) == [0]


@pytest.mark.parametrize("odd", ["x" * 32, "short", "", "0A" * 10 + "-00000000001"])
def test_a_key_of_another_form_does_not_say_it(odd: str) -> None:
    assert begins(kept(send(40, key(1)), send(50, odd))) == [0, 50]


def test_what_may_isolate() -> None:
    settings = FaultSettings.of_version(None)
    sends = kept(send(0, key(1)))
    assert not sends.may_isolate(settings)
    sends.add([send(2000, key(2, BORN_MS + 2000), 700)], KIND)
    assert sends.may_isolate(settings)
    assert sends.may_isolate(settings)
    refused = ProducerSends("", CLIENT, None, "JAVA", 500)
    refused.add([send(0, key(1))], ("refused", BROKER, "T"))
    assert refused.may_isolate(settings)


def test_a_relay_sends_on_for_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of, "MAX_SENDS", 3)
    fold = ProducerFold("10.0.0.1")
    first, other = key(1), key(2, digits="04D218B4AAC3")
    assert process_digits(first) != process_digits(other)
    rows = [send(at, one) for at, one in enumerate([first, other, None, first, other])]
    for row in rows:
        fold.adder_of(flow_of(row))([row])
    assert sorted(len(one.marks) for one in fold.sends.values()) == [1, 2]


def test_many_producers_do_not_look_at_each_server(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def counting(address: str) -> str:
        nonlocal looks
        looks += 1
        return host_of(address)

    monkeypatch.setattr(of, "host_of", counting)
    monkeypatch.setattr(context, "host_of", counting)
    known = Context()
    known.servers = {f"10.0.1.{number}:10911": "broker" for number in range(100)}
    assert [of._relayed(key(number), f"10.0.1.{number}", known) for number in range(50)] == [
        True
    ] * 50
    assert not of._relayed(key(1), "10.0.2.1", known)
    assert looks == 100
    known.servers["10.0.2.1:10911"] = "broker"
    assert of._relayed(key(1), "10.0.2.1", known)

"""encrypted: TLS, by version and name, as far as hellos say them."""

from __future__ import annotations

from analytics.diagnosis.problem import ProblemSeverity, Subject
from analytics.diagnosis.rules.network.encrypted import RULE

from ...made_rows import connection, problems, problems_of_sample, same_in_any_order, sample


def test_a_producer_over_tls() -> None:
    (one,) = problems_of_sample(RULE, "tls-5x.pcap")
    assert one.title == (
        "2 connections to 127.77.0.11:10911 (1), 127.77.0.1:9876 (1) are encrypted (TLS 1.3): their"
        " contents are not checked"
    )
    assert (one.count, one.severity, one.subject) == (2, ProblemSeverity.INFO, Subject())
    assert one.details[-1] == "no client says which server name it expects"


def test_names_and_a_failed_handshake() -> None:
    facts = ["tls_offered=1.2", "tls_name=broker.example", "tls_chosen=1.2"]
    fine = connection(0, 9, protocol="TLS", facts=facts)
    (one,) = problems(RULE, [], [fine])
    assert one.details[-1] == "requested server names: broker.example (1)"
    failed = connection(0, 9, protocol="TLS", facts=["tls_alert=handshake_failure"])
    assert problems(RULE, [], [failed]) == []


def test_silent_in_the_clear() -> None:
    assert problems_of_sample(RULE, "send-sync-5x.pcap") == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("tls-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)

"""tls-mismatch: servers without TLS, alerts, servers that enforce it."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Confidence, Subject
from analytics.diagnosis.rules.network.tls_mismatch import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.conversation_record import ConversationRecord

from ...made_rows import BROKER, connection, exchange, problems, problems_of_sample

HELLO = "tls_offered=1.3,1.2"
SEND = int(RequestCode.SEND_MESSAGE_V2)


def tls(number: int, *facts: str, **values: object) -> ConversationRecord:
    given = {"protocol": "TLS", "commands": 0, "facts": [HELLO, *facts], **values}
    return connection(number, 9, number, **given)


def test_a_server_that_takes_no_tls() -> None:
    closed = {"server_bytes": 0, "ended_by": "server"}
    (one,) = problems(RULE, [], [tls(1, **closed), tls(2, **closed)])
    assert one.title == (
        f"{BROKER} closed 2 TLS connections at the first packet: it does not accept TLS there"
    )
    assert (one.count, one.subject) == (2, Subject(server=BROKER))


def test_a_handshake_that_ends_by_an_alert() -> None:
    (one,) = problems(RULE, [], [tls(1, "tls_alert=protocol_version")])
    assert one.title == f"1 TLS handshake with {BROKER} failed: protocol_version (1)"


@pytest.mark.parametrize(
    ("alert", "facts", "detail"),
    [
        ("protocol_version", [], "the client offers TLS 1.3,1.2"),
        (
            "certificate_expired",
            [
                *("tls_chosen=1.2", "tls_subject=CN=mq", "tls_not_before=2020-01-01T00:00:00Z"),
                "tls_not_after=2021-01-01T00:00:00Z",
            ],
            "the certificate of CN=mq was valid until 2021-01-01T00:00:00Z",
        ),
        (
            "bad_certificate",
            [
                *("tls_chosen=1.3", "tls_subject=CN=mq", "tls_not_before=2120-01-01T00:00:00Z"),
                "tls_not_after=2121-01-01T00:00:00Z",
            ],
            "the certificate of CN=mq is not valid before 2120-01-01T00:00:00Z",
        ),
        (
            "bad_certificate",
            [
                *("tls_name=a.example", "tls_chosen=1.2", "tls_subject=CN=mq", "tls_issuer=CN=ca"),
                *("tls_not_before=2020-01-01T00:00:00Z", "tls_not_after=2120-01-01T00:00:00Z"),
                "tls_names=b.example",
            ],
            "the certificate of CN=mq for b.example is signed by CN=ca; the client asks for"
            " a.example",
        ),
    ],
)
def test_what_is_known_of_an_alert(alert: str, facts: list[str], detail: str) -> None:
    (one,) = problems(RULE, [], [tls(1, *facts, f"tls_alert={alert}")])
    assert one.details[-1] == detail


def test_decrypted_connections_are_not_served_in_the_clear() -> None:
    clear = connection(50, 3, 2, commands=1, server_bytes=0, ended_by="server")
    send = exchange(51, SEND, None, conversation=2, end="closed")
    decrypted = connection(90, 3, 3, facts=[HELLO, "tls_chosen=1.3"])
    (one,) = problems(RULE, [send], [clear, decrypted])
    assert "it seems to enforce it" in one.title


EXPIRED = "was valid until 2025-"


@pytest.mark.parametrize("generation", ["5x", "4x"])
@pytest.mark.parametrize(
    ("name", "alert", "detail"),
    [
        ("tls-expired-{}.pcap", "certificate_expired", EXPIRED),
        ("tls-expired-keys-{}.pcapng", "certificate_unknown", EXPIRED),
        ("tls-stranger-{}.pcap", "certificate_unknown", "is signed by CN=other CA"),
        ("tls-no-version-{}.pcap", "protocol_version", "the client offers TLS 1.3"),
    ],
)
def test_handshakes_of_real_clients_that_fail(
    name: str, alert: str, detail: str, generation: str
) -> None:
    (one,) = problems_of_sample(RULE, name.format(generation))
    assert alert in one.title
    assert detail in one.details[-1]


@pytest.mark.parametrize("name", ["tls12-keys-5x", "tls13-keys-5x", "tls12-keys-4x"])
def test_silent_where_it_is_decrypted(name: str) -> None:
    assert problems_of_sample(RULE, f"{name}.pcapng") == []


def test_a_server_that_enforces_tls() -> None:
    clear = connection(50, 3, 2, commands=1, server_bytes=0, ended_by="server")
    send = exchange(51, SEND, None, conversation=2, end="closed")
    (one,) = problems(RULE, [send], [tls(1, "tls_chosen=1.3"), clear])
    assert one.confidence is Confidence.LIKELY
    assert "it seems to enforce it" in one.title
    served = connection(90, 3, 3)
    assert problems(RULE, [send], [tls(1, "tls_chosen=1.3"), clear, served]) == []


def test_silent_where_both_ways_work_and_without_tls() -> None:
    for name in ("tls-5x.pcap", "fault-reset-5x.pcap", "foreign-5x.pcap"):
        assert problems_of_sample(RULE, name) == []


def test_a_client_that_goes_away_is_none() -> None:
    assert problems(RULE, [], [tls(1, server_bytes=0, ended_by="client")]) == []


@pytest.mark.parametrize(
    ("name", "closed"),
    [
        ("tls-required-5x.pcap", "1 plaintext connection"),
        ("tls-required-4x.pcap", "2 plaintext connections"),
    ],
)
def test_a_namesrv_that_hangs_up_in_the_clear(name: str, closed: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title.startswith(f"127.77.0.2:9977 closed {closed}")
    assert one.title.endswith(" at the first request, and responds to none")
    assert (one.confidence, one.subject) == (
        Confidence.POSSIBLE,
        Subject(server="127.77.0.2:9977"),
    )

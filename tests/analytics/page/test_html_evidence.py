"""The evidence of a row: commands that find something, and nothing that a shell would run."""

from __future__ import annotations

import shlex

import pytest

from analytics.page.html import Proofs
from analytics.reports import REPORT_MODULES
from dissectors.where.fields import exchange_fields
from dissectors.where.filter import compile_where
from rmqtool import read
from tests.analytics import fakes
from tests.analytics.reported import tables_of

NAMES = {"operation": "SEND_MESSAGE_V2", "topic": "T", "broker": "broker-a"}


def where_of(command: str) -> str:
    words = shlex.split(command)
    return words[words.index("-Y") + 1] if "-Y" in words else ""


@pytest.mark.parametrize(
    "sample",
    [
        "fault-freeze-5x.pcap",
        "push-retry-dlq-5x.pcap",
        "fault-reset-5x.pcap",
        "broker-moved-4x.pcap.gz",  # with attempts of which only a failed connect was captured
    ],
)
def test_the_command_of_each_row_finds_exchanges(sample: str) -> None:
    file = f"samples/{sample}"
    exchanges = list(read(file).exchanges())
    addresses: dict[str, list[str]] = {}
    for row in tables_of("latency", [file])["latency_network"]:
        addresses.setdefault(str(row["broker"]), []).append(str(row["server_address"]))
    proofs = Proofs([file], addresses)
    tested = 0
    for report in REPORT_MODULES:
        if report == "diagnosis":  # its cards have the packets of their evidence
            continue
        for name, rows in tables_of(report, [file]).items():
            for row in rows:
                if where := where_of(proofs.of_row(row).browse):
                    test = compile_where(where, exchange_fields())
                    assert any(map(test, exchanges)), (name, where)
                    tested += 1
    assert tested > 100


def test_packets_are_named_with_the_capture_where_there_are_several() -> None:
    row = {"capture": "a.pcap", "request_packet": 7, "response_packet": 9}
    alone = Proofs(["a.pcap"]).of_row(row)
    assert alone.label == "packets 7, 9"
    assert alone.wireshark == "frame.number in {7, 9}"
    assert where_of(alone.browse) == "request_packet in (7, 9) or response_packet in (7, 9)"
    several = Proofs(["a.pcap", "b.pcap"]).of_row(row)
    assert where_of(several.browse).startswith('capture == "a.pcap" and (request_packet in')


def test_a_broker_is_found_by_its_addresses_where_they_are_known() -> None:
    assert where_of(Proofs().of_row(NAMES).browse) == (
        'operation == "SEND_MESSAGE_V2" and topic == "T" and broker == "broker-a"'
    )
    found = where_of(Proofs((), {"broker-a": ["10.0.0.1:10911"]}).of_row(NAMES).browse)
    assert found.endswith('server in ("10.0.0.1:10911")')


def test_failed_connects_and_findings_are_in_no_exchange() -> None:
    for row in ({"connects": 3, **NAMES}, {"kind": "GAP", "packet": 5, **NAMES}):
        assert where_of(Proofs(["a.pcap"]).of_row(row).browse) == ""


@pytest.mark.parametrize("text", fakes.EVIL)
def test_a_name_of_the_network_is_one_word_of_the_command(text: str) -> None:
    command = Proofs(["a.pcap"]).of_row({"topic": text}).browse
    words = shlex.split(command)
    assert words[:3] == ["rmqtool", "browse", "a.pcap"]
    if where := where_of(command):
        test = compile_where(where, exchange_fields())
        assert not any(map(test, read("samples/send-sync-5x.pcap").exchanges()))
    else:  # not printable
        assert len(words) == 3

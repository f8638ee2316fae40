"""Sends through proxies: summary, report, diagnosis, trace, and replay see the same hops."""

from __future__ import annotations

import json

import pytest

from analytics.diagnosis.messages import AttemptStore
from dissectors.decode.pipeline import Decode, DecodeStats
from dissectors.remoting.code_sets import SENDS
from dissectors.rows.message_record import STORED
from dissectors.rows.outcome import is_call
from dissectors.rows.record import ExchangeRecord
from dissectors.rows.relays import Relay, Relays
from replay.captured.captured_send import SkipReason
from rmqtool.summary.summary import Summary
from rmqtool.summary.summary_json import summary_json
from rmqtool.summary.summary_text import summary_lines
from rmqtool.ui.console import UNLIMITED, Terminal
from tests.analytics.life.lives import lives_in
from tests.analytics.reported import tables_of
from tests.expected import SAMPLES
from tests.replay.replayed import plan_of

PROXY, BROKER = "127.77.0.71:18081", "127.77.0.11:10911"
CAPTURES = sorted(
    path.name
    for kind in ("proxy-*.pcap*", "grpc-*.pcap", "grpc-*.pcapng")
    for path in SAMPLES.glob(kind)
    if path.suffix != ".gz"
)


def _rows(name: str) -> list[ExchangeRecord]:
    return [row for rows in Decode([str(SAMPLES / name)]).records() for row in rows]


def _summary(rows: list[ExchangeRecord]) -> dict[str, list[dict[str, object]]]:
    summary = Summary()
    summary.add(rows)
    found: dict[str, list[dict[str, object]]] = json.loads(summary_json(summary, DecodeStats()))
    return found


@pytest.mark.parametrize("name", CAPTURES)
def test_all_views_see_the_same_hops(name: str) -> None:
    rows = _rows(name)
    relays = Relays()
    for row in rows:
        relays.add(row)
    sends = relays.sends()

    table = tables_of("latency", [str(SAMPLES / name)], "relays")["relays"]
    reported = {
        Relay(str(row["relay"]), str(row["from_host"]), str(row["server_address"])): row
        for row in table
    }
    assert reported.keys() == sends.keys()
    shown = {(str(row["proxy"]), str(row["broker"])): row for row in _summary(rows)["proxies"]}
    for relay, row in reported.items():
        if not row["sends"]:
            continue
        said = shown.pop((relay.address, relay.server))
        assert said["sends"] == row["sends"]
        for ours, theirs in (("client", "outer"), ("broker", "inner"), ("proxy", "own")):
            for percent in (50, 99):
                of_report = row[f"{theirs}_p{percent}_us"]
                assert said[f"{ours}_p{percent}_us"] == of_report, (ours, percent)
    assert shown == {}

    assert tables_of("overview", [str(SAMPLES / name)], "relays")["relays"] == table
    found = relays.proven()
    # a client has one address here, so what a relay sent to a broker is none of its attempts
    asked = {relay.server for relay in found}
    store = AttemptStore()
    for row in rows:
        store.add(row)
    for message in store.messages({}):
        assert asked.isdisjoint(row.server_address for row in message.rows)
    if found:
        behind = [row for row in rows if row.request_code in SENDS and row.server_address in asked]
        skipped = [
            one for one in plan_of(str(SAMPLES / name))[1] if one.why is SkipReason.INNER_HOP
        ]
        assert len(skipped) == len(behind) > 0


@pytest.mark.parametrize("name", CAPTURES)
def test_the_trace_of_each_message_shows_the_proxy_between(name: str) -> None:
    relays = Relays()
    for row in _rows(name):
        relays.add(row)
    proxies = {relay.address for relay in relays.sends()}
    servers = {relay.server for relay in relays.sends()}
    for life in lives_in(name, where=f"event == '{STORED}'"):
        stored = [step for step in life.steps if step.row.event == STORED]
        through = any(step.row.server_address in proxies for step in stored)
        for step in stored:
            inner = through and step.row.server_address in servers
            assert (step.source.kind == "proxy") == inner
            assert ("behind the proxy" in (step.why or "")) == inner
            taken = is_call(step.row.request_name) or step.row.server_address in proxies
            assert (step.target.kind == "proxy") == taken


def test_text_and_json_show_where_the_time_went() -> None:
    summary = Summary()
    summary.add(_rows("grpc-send-5x.pcap"))
    lines = summary_lines(summary, DecodeStats(), [], Terminal(False, UNLIMITED, False))
    at = next(i for i, line in enumerate(lines) if line.startswith("Sends through proxies"))
    assert lines[at + 2].split()[:3] == [PROXY, BROKER, "12"]
    (row,) = json.loads(summary_json(summary, DecodeStats()))["proxies"]
    assert (row["proxy"], row["broker"], row["sends"]) == (PROXY, BROKER, 12)
    assert 0 < row["broker_p50_us"] < row["client_p50_us"]
    assert 0 < row["proxy_p50_us"] < row["client_p50_us"]

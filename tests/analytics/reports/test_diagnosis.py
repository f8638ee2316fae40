"""The diagnosis on Spark: over many logs together the same problems as the one-pass engine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analytics.consuming.known import CONNECTIONS_KNOWN_BY, KNOWN_BY, Known
from analytics.diagnosis.engine import Diagnosis, Engine, not_judged
from analytics.diagnosis.problem import Problem
from analytics.diagnosis.registry import rules
from analytics.inputs.inputs import inputs_of
from analytics.inputs.rows import (
    connections_in,
    conversation_rows,
    exchange_rows,
    exchanges_in,
    finding_rows,
)
from dissectors.times import text_of_time
from tests.analytics.diagnosis.made_rows import SAMPLES
from tests.analytics.diagnosis.show import captures as captures_of_samples
from tests.analytics.reported import (
    Tables,
    input_of,
    on_spark,
    tables_from,
    tables_of,
)
from tests.rmqtool.command import rmqtool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGS = 4
"""all samples of a kind are in so many logs"""


@pytest.fixture(scope="module", params=["plain", "others"])
def logs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Decoded logs of all samples, in both forms; all at once would go beyond bounds of rules."""
    folder, plain = tmp_path_factory.mktemp("logs"), request.param == "plain"
    samples = [
        path
        for name, path in captures_of_samples().items()
        if "/" not in name and plain == name.endswith(".pcap")
    ]
    made = []
    for number in range(LOGS):
        form = "jsonl" if number == 0 else "parquet"
        target = folder / str(number)
        captures = samples[number::LOGS]
        done = rmqtool("decode", "pcap", *captures, "-T", form, "-o", f"{target}/", "-q")
        assert done.status == 0, done.err
        made.append(str(target))
    return made


def in_one_pass(logs: Sequence[str]) -> Diagnosis:
    engine = Engine(rules())
    for one in inputs_of(logs):
        engine.begin_input(one.name)
        for exchanges in exchange_rows(one):
            engine.add_exchanges(exchanges)
        for connections in conversation_rows(one):
            engine.add_connections(connections)
        for findings in finding_rows(one):
            engine.add_findings(findings)
    return engine.diagnosis()


@pytest.fixture(scope="module")
def expected(logs: list[str]) -> Diagnosis:
    return in_one_pass(logs)


@pytest.fixture(scope="module")
def reported(spark: SparkSession, logs: list[str]) -> Tables:
    """The tables as Spark's tasks make them, as if the logs were large."""
    from analytics.inputs.source import read_here

    given = on_spark(read_here(inputs_of(logs)).given, spark)
    return tables_from("diagnosis", given)


def row_of(problem: Problem) -> dict[str, Any]:
    """A problem as the report writes it."""
    subject = problem.subject
    return {
        "rule": problem.rule,
        "severity": str(problem.severity),
        "confidence": str(problem.confidence),
        "reason": problem.reason,
        "title": problem.title,
        "consequence_of": problem.consequence_of,
        "incident": problem.incident,
        "count": problem.count,
        "state": None if problem.state is None else str(problem.state),
        "first_time": text_of_time(problem.first_time // 1000 * 1000),
        "last_time": text_of_time(problem.last_time // 1000 * 1000),
        **{name: getattr(subject, name) for name in ("broker", "topic", "group", "client")},
        "server": subject.server,
        "queue_id": subject.queue,
        "message": subject.message,
        "evidence": [
            f"{text_of_time(one.time)} {one.capture}"
            f" {_place(one.packet, one.conversation)} {one.what}"
            for one in problem.evidence
        ],
        "filter": problem.filter,
        "details": problem.details,
        "advice": problem.advice,
    }


def _place(packet: int | None, conversation: int) -> str:
    return f"conversation {conversation}" if packet is None else f"packet {packet}"


def told(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the report with its times as text."""

    def text(value: object) -> object:
        return text_of_time(_ns(value)) if isinstance(value, datetime) else value

    return {name: text(value) for name, value in row.items()}


def _ns(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000) * 1000


def key(row: Mapping[str, Any]) -> str:
    names = ("rule", "broker", "topic", "group", "client", "server", "queue_id", "message")
    return json.dumps([*(row[name] for name in names), str(row["first_time"])])


@pytest.mark.slow
def test_the_order_of_logs_changes_nothing(logs: list[str], expected: Diagnosis) -> None:
    found = in_one_pass(logs[::-1])
    assert [row_of(one) for one in found.problems] == [row_of(one) for one in expected.problems]
    assert not_judged(found) == not_judged(expected)


def test_the_same_problems(expected: Diagnosis, reported: Tables) -> None:
    one_pass = {key(row): row for row in map(row_of, expected.problems)}
    by_tasks = {key(row): row for row in map(told, reported["diagnosis_problems"])}
    assert len(one_pass) == len(expected.problems) > 20
    assert len(by_tasks) == len(reported["diagnosis_problems"])
    assert sorted(by_tasks) == sorted(one_pass)
    differing = {
        name: {
            part: (value, by_tasks[name][part])
            for part, value in row.items()
            if by_tasks[name][part] != value
        }
        for name, row in one_pass.items()
    }
    assert {name: found for name, found in differing.items() if found} == {}


def test_the_local_engine_judges_in_one_pass(tmp_path: Path) -> None:
    """With the tables that Spark's tasks make of large ones, which hold to one pass, too."""
    from analytics.inputs.source import read_here

    captures = [SAMPLES / "fault-kill-5x.pcap", SAMPLES / "acl-4x.pcap"]
    log = tmp_path / "log"
    assert rmqtool("decode", "pcap", *captures, "-T", "parquet", "-o", f"{log}/").status == 0
    given = read_here(inputs_of([str(log)])).given
    small = tables_from("diagnosis", given)
    one_pass = in_one_pass([str(log)])
    rows = sorted(map(told, small["diagnosis_problems"]), key=key)
    assert len(rows) > 2
    names = row_of(one_pass.problems[0])
    found = [{name: row[name] for name in names} for row in rows]
    assert found == sorted(map(row_of, one_pass.problems), key=key)
    limits = [row["limit"] for row in small["diagnosis_limits"]]
    assert limits == not_judged(one_pass) + one_pass.limits


def test_the_same_order(expected: Diagnosis, reported: Tables) -> None:
    rows = sorted(reported["diagnosis_problems"], key=lambda row: int(str(row["place"])))
    assert [row["title"] for row in rows] == [one.title for one in expected.problems]


def test_the_same_limits(expected: Diagnosis, reported: Tables) -> None:
    rows = sorted(reported["diagnosis_limits"], key=lambda row: int(str(row["place"])))
    assert [row["limit"] for row in rows] == not_judged(expected) + expected.limits


def test_nothing_wrong(tmp_path: Path) -> None:
    capture = SAMPLES / "push-orderly-4x.pcap"
    log = tmp_path / "log"
    rmqtool("decode", "pcap", capture, "-T", "parquet", "-o", log, "-q")
    tables = tables_of("diagnosis", [str(log)])
    assert tables["diagnosis_problems"] == []
    expected = in_one_pass([str(log)])
    assert [row["limit"] for row in tables["diagnosis_limits"]] == not_judged(expected)


@pytest.mark.parametrize("name", ["push-rebalance-5x", "grpc-consume-53", "fault-kill-5x"])
def test_what_all_rows_say_needs_few_columns(name: str) -> None:
    """Tasks are given `KNOWN_BY` alone, on which nothing else of the context may depend."""
    given = input_of((str(SAMPLES / f"{name}.pcap"),))
    assert given.conversations is not None
    found = []
    for exchanges, connections in (
        (given.exchanges, given.conversations),
        (given.exchanges.select(*KNOWN_BY), given.conversations.select(*CONNECTIONS_KNOWN_BY)),
    ):
        known = Known()
        for batch in given.kept.engine.batches(exchanges):
            known.add_exchanges(exchanges_in(batch))
        for batch in given.kept.engine.batches(connections):
            for row in connections_in(batch):
                known.context.add_connection(row)
        found.append(known)
    assert found[0] == found[1]
    assert found[0].context.servers

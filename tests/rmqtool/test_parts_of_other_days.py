"""`--since` and `--until`: parts of a decoded log that have no rows of that time are not opened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from dissectors.times import moment_of
from rmqtool.api.decoded import DecodedLog
from rmqtool.browse.options import BrowseRequest
from rmqtool.browse.run import opened
from tests.expected import SAMPLES

from .command import rmqtool

OLD, NEW = "dead-letters-5x", "fault-kill-5x"
SINCE, UNTIL = "2026-11-21", "2026-11-22"
OPTIONS = ("--since", SINCE, "--until", UNTIL)


class _Log(NamedTuple):
    path: Path
    read: DecodedLog
    """opened when all of it was there: that looks at all files"""


def _added(log: Path, *names: str) -> _Log:
    for name in names:
        capture = SAMPLES / f"{name}.pcap"
        done = rmqtool("decode", "pcap", capture, "--partition", "date", "-o", log)
        assert done.status == 0, done.err
    read = DecodedLog([str(log)])
    return _Log(log, read)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> _Log:
    """A log of two days; whoever opens a part of the other day gets an error."""
    log = _added(tmp_path_factory.mktemp("two") / "log", OLD, NEW)
    parts = [path for path in log.path.glob("*/date=*/*") if "date=2026-11-21" not in str(path)]
    assert len({path.parent.parent.name for path in parts}) > 2
    for path in parts:
        path.write_bytes(b"not opened")
    assert rmqtool("report", "quality", log.path).status != 0
    return log


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> _Log:
    """A log of the day that is asked for."""
    return _added(tmp_path_factory.mktemp("one") / "log", NEW)


def _reports(log: _Log) -> object:
    done = rmqtool("report", "quality", "latency", "delivery", log.path, *OPTIONS, "-T", "json")
    assert done.status == 0, done.err
    return json.loads(done.out.replace(str(log.path), "LOG"))["reports"]


def _key(log: _Log) -> str:
    rows = log.read.to_arrow("messages", since=SINCE, until=UNTIL).to_pylist()
    return next(str(row["unique_key"]) for row in rows if row["unique_key"])


def _text_of(*command: str) -> Callable[[_Log], object]:
    def text(log: _Log) -> object:
        words = [_key(log) if word == "KEY" else word for word in command[1:]]
        done = rmqtool(command[0], log.path, *words, *OPTIONS)
        assert done.status in (0, 1), done.err
        assert len(done.out) > 100
        return done.out.replace(str(log.path), "LOG")

    return text


def _rows(table: str) -> Callable[[_Log], object]:
    def rows(log: _Log) -> object:
        found = log.read.to_arrow(table, since=SINCE, until=UNTIL).to_pylist()
        assert found
        for row in found:  # numbers of connections go on from run to run
            row.pop("conversation")
        return found

    return rows


def _problems(log: _Log) -> object:
    found = log.read.problems(since=SINCE, until=UNTIL)
    assert found
    return [one.title for one in found]


def _browsed(log: _Log) -> object:
    """What the browser lists of each table."""
    asked = BrowseRequest(inputs=[str(log.path)], since=moment_of(SINCE), until=moment_of(UNTIL))
    session, filling, _, _ = opened(asked)
    for _ in filling(session):
        pass
    tables = (session.exchanges, session.messages, session.connections)
    found = [table.count for table in tables]
    session.close()
    assert all(found)
    return found


@pytest.mark.parametrize("name", ["capture", "log"])
def test_the_browser_takes_times_of_day(alone: _Log, name: str) -> None:
    path = alone.path if name == "log" else SAMPLES / f"{NEW}.pcap"
    counts = []
    for since, until in (("02:46:20", None), (None, "02:46:20"), ("2026-11-21T02:46:20", None)):
        times = [None if one is None else moment_of(one) for one in (since, until)]
        session, filling, _, end = opened(BrowseRequest([str(path)], "", *times))
        for _ in filling(session):
            pass
        counts.append(session.exchanges.count)
        session.close()
        end()
    assert counts[0] == counts[2]
    assert sum(counts[:2]) == 181


@pytest.mark.parametrize(
    "seen",
    [
        _reports,
        _text_of("diagnose"),
        _text_of("trace", "KEY"),
        _rows("exchanges"),
        _rows("messages"),
        _rows("connections"),
        _rows("findings"),
        _problems,
        _browsed,
    ],
)
def test_parts_of_other_days_are_not_opened(
    damaged: _Log, alone: _Log, seen: Callable[[_Log], object]
) -> None:
    assert seen(damaged) == seen(alone)

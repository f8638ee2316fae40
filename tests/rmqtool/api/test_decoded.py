"""A decoded log answers what its captures answer, as far as it has the columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet
import pytest

import rmqtool
from dissectors.times import text_of_time
from tests.expected import captures, spread
from tests.rmqtool.command import rmqtool as command

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "stored-twice-5x.pcap"
KEY = "key-5"
TABLES = ("exchanges", "messages", "connections", "findings")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rmqtool.read(SAMPLE).to_parquet(tmp_path_factory.mktemp("decoded") / "log")


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_those_of_the_capture(log: Path, table: str) -> None:
    ours, theirs = rmqtool.read(log).to_arrow(table), rmqtool.read(SAMPLE).to_arrow(table)
    assert ours.equals(theirs)
    assert ours.num_rows > 0


def test_json_lines_are_the_same(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "log"
    assert command("decode", "pcap", SAMPLE, "-T", "jsonl", "-o", f"{folder}/").status == 0
    for table in TABLES:
        assert rmqtool.read(folder).to_arrow(table).equals(rmqtool.read(log).to_arrow(table))


def test_filters_windows_and_limits_hold(log: Path) -> None:
    capture, decoded = rmqtool.read(SAMPLE), rmqtool.read(log)
    where = "request_code == 310 and latency > 1ms"
    assert list(decoded.exchanges(where)) == list(capture.exchanges(where))
    assert list(decoded.exchanges(limit=3)) == list(capture.exchanges(limit=3))
    times = sorted(row.request_time for row in capture.exchanges() if row.request_time)
    middle = rmqtool.read(log).to_pandas()["request_time"].dropna().sort_values()
    since = middle.iloc[len(times) // 2].to_pydatetime()
    later = list(decoded.exchanges(since=since))
    assert 0 < len(later) < len(times)
    assert len(later) + len(list(decoded.exchanges(until=since))) == len(list(decoded.exchanges()))
    with pytest.raises(rmqtool.FilterError):
        decoded.exchanges("latencyy > 1ms")


@pytest.mark.parametrize("sample", spread(captures()[::5]))
def test_a_window_has_the_same_messages_in_a_log_and_its_capture(
    tmp_path: Path, sample: Path
) -> None:
    """Those of that time, also of a poll that began before."""
    capture = rmqtool.read(sample)
    log = rmqtool.read(capture.to_parquet(tmp_path / "log"))
    times = sorted(row.time for row in capture.messages() if row.time is not None)
    if not times:
        return
    first, middle, end = (times[len(times) * part // 3] // 1000 * 1000 for part in range(3))
    for since, until in ((middle, None), (None, middle), (first, end)):
        asked = {"since": since and text_of_time(since), "until": until and text_of_time(until)}
        found = capture.to_arrow("messages", **asked)
        assert found.equals(log.to_arrow("messages", **asked))
        expected = [time for time in times if (since or 0) <= time and time < (until or time + 1)]
        assert found.num_rows == len(expected)


def test_problems_summaries_and_lives_are_those_of_the_capture(log: Path) -> None:
    capture, decoded = rmqtool.read(SAMPLE), rmqtool.read(log)
    assert [one.title for one in decoded.problems()] == [one.title for one in capture.problems()]
    assert str(decoded.summary()) == str(capture.summary())
    assert decoded.summary().to_dict() == capture.summary().to_dict()
    assert [one.summary for one in decoded.trace(KEY)] == [
        one.summary for one in capture.trace(KEY)
    ]
    assert decoded.trace(KEY)


def test_several_logs_are_one_input(log: Path) -> None:
    one, two = rmqtool.read(log), rmqtool.read(log, str(log))
    assert len(list(one.exchanges())) == len(list(two.exchanges()))  # the same one, named twice
    other = rmqtool.read(SAMPLE).to_parquet(log.with_name("other"), limit=5)
    both = rmqtool.read(log, other)
    assert len(list(both.exchanges())) == len(list(one.exchanges())) + 5


def test_what_a_log_does_not_have_is_said(log: Path, tmp_path: Path) -> None:
    decoded = rmqtool.read(log)
    for ask in (decoded.commands, lambda: decoded.to_arrow("commands")):
        with pytest.raises(rmqtool.ReadError, match="exchanges, not their commands\n  read the"):
            ask()
    with pytest.raises(rmqtool.ArgumentError, match="body_limit"):
        decoded.messages(body_limit=100)
    with pytest.raises(rmqtool.ReadError, match="already a decoded log"):
        decoded.to_parquet(tmp_path / "again")
    with pytest.raises(rmqtool.ArgumentError, match="plug-ins"):
        rmqtool.read(log, plugins=[lambda _: None])
    with pytest.raises(rmqtool.ArgumentError, match="unknown table: 'exchange'"):
        decoded.to_arrow("exchange")
    without = rmqtool.read(SAMPLE).to_parquet(tmp_path / "without", messages=False)
    for question in (rmqtool.read(without).messages, lambda: rmqtool.read(without).trace(KEY)):
        with pytest.raises(rmqtool.ReadError, match="no messages"):
            question()


def test_a_damaged_log_is_said(log: Path, tmp_path: Path) -> None:
    import shutil

    broken = tmp_path / "broken"
    shutil.copytree(log, broken)
    (part,) = (broken / "exchanges").iterdir()
    table = pyarrow.parquet.read_table(part)
    pyarrow.parquet.write_table(table.slice(0, 2), part)
    with pytest.raises(rmqtool.ReadError, match="2 rows, but the manifest says 109"):
        rmqtool.read(broken)
    (broken / "manifest.json").write_text("{")
    with pytest.raises(rmqtool.ReadError):
        rmqtool.read(broken)


def test_a_log_among_captures_is_refused(log: Path) -> None:
    for given in ((log, SAMPLE), ([log],)):
        with pytest.raises(rmqtool.ReadError, match="cannot be mixed with other inputs"):
            rmqtool.read(*given)

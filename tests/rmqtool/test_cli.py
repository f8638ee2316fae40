"""The command line as its users meet it: output, errors, statuses, signals, start-up."""

from __future__ import annotations

import csv
import io
import json
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dissectors.rows.record import COLUMNS
from rmqtool import __version__
from rmqtool.ui.status import ExitStatus
from tests.patience import PATIENCE, read_of, wait_for
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send, sent
from tests.traffic.talk import End, Talk

from .command import EVIL, PROGRAM, ROOT, process, rmqtool

NAMES = [column.name for column in COLUMNS]
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def rows(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_line_an_exchange(capture: Path) -> None:
    result = rmqtool("decode", "pcap", capture)
    head, *lines = result.out.splitlines()
    assert result.status == ExitStatus.OK
    assert head.split()[:5] == ["PACKET", "TIME", "LATENCY", "REQUEST", "OUTCOME"]
    found = {tuple(re.split(r"  +", line.strip())[2:5]) for line in lines}
    assert found == {
        ("2.10 ms", "SEND_MESSAGE_V2", "SUCCESS"),
        ("1.00 s", "SEND_MESSAGE_V2", "SYSTEM_BUSY"),
        ("-", "UPDATE_CONSUMER_OFFSET", "oneway"),
        ("-", "NOTIFY_CONSUMER_IDS_CHANGED", "oneway"),
        ("-", "HEART_BEAT", "unanswered"),
        ("100 µs", "UNKNOWN(9999)", "REQUEST_CODE_NOT_SUPPORTED"),
        ("100 µs", "GET_ROUTEINFO_BY_TOPIC", "SUCCESS"),
    }
    assert "\x1b" not in result.out


@pytest.mark.parametrize("width", ["60", "80", "120", "200"])
def test_lines_fit_the_width(capture: Path, width: str) -> None:
    result = rmqtool("decode", "pcap", capture, COLUMNS=width)
    lines = result.out.splitlines()
    notes = sum(line.startswith("  └ ") for line in lines)
    assert notes == 2
    assert len(lines) >= 8 + notes
    assert lines[0].startswith(("PACKET", "TIME"))
    assert max(map(len, lines)) <= int(width)


@pytest.mark.parametrize(
    "options",
    [[], ["--summary"], ["--format", "csv"], ["-V"], ["--commands"], ["--color", "always"]],
)
def test_nothing_from_the_network_reaches_the_terminal_as_it_is(
    capture: Path, options: list[str]
) -> None:
    result = rmqtool("decode", "pcap", capture, *options)
    assert result.status == 0
    text = re.sub("\x1b\\[[0-9;]*m", "", result.out) if "--color" in options else result.out
    assert not CONTROL.search(text)
    assert r"\x1b[2J[red]evil\n\u202e\x9b=" in text


def test_colours_only_when_wanted(capture: Path) -> None:
    assert "\x1b[31m" in rmqtool("decode", "pcap", capture, "--color", "always").out
    assert "\x1b" not in rmqtool("decode", "pcap", capture, "--color", "never").out


def test_jsonl_has_the_record(capture: Path) -> None:
    decoded = rows(rmqtool("decode", "pcap", capture, "--format", "jsonl").out)
    assert all(list(row) == NAMES for row in decoded)
    evil = next(row for row in decoded if row["response_name"] == "SYSTEM_BUSY")
    assert evil["topic"] == EVIL
    assert evil["capture"] == str(capture)
    assert evil["request_time"] == "2026-11-20T10:00:00.002500Z"
    assert evil["latency_us"] == 1_000_100


def test_csv_has_the_record(capture: Path) -> None:
    out = rmqtool("decode", "pcap", capture, "--format", "csv").out
    decoded = list(csv.DictReader(io.StringIO(out)))
    assert list(decoded[0]) == NAMES
    assert len(decoded) == 7
    assert "'=1+1" in [row["keys"] for row in decoded]


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.parquet"])
def test_the_name_of_the_output_says_the_format(capture: Path, tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    target = tmp_path / name
    result = rmqtool("decode", "pcap", capture, "-o", target)
    assert (result.status, result.out) == (0, "")
    assert str(target) in result.err
    start = {"x.jsonl": b"{", "x.csv": b"capture,", "x.parquet": b"PAR1"}[name]
    assert target.read_bytes().startswith(start)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["a.pcap", name])


def test_a_decoded_log(capture: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from dissectors.decode.decoded_log import read_manifest

    log = tmp_path / "log"
    command = (
        "decode",
        "pcap",
        capture,
        "--format",
        "parquet",
        "-o",
        log,
        "--where",
        "status == answered",
    )
    assert rmqtool(*command).status == 0
    manifest = read_manifest(log)
    assert (manifest.exchanges, manifest.rmqtool) == (4, __version__)
    assert manifest.options == {"where": "status == answered"}
    again = rmqtool(*command)
    assert again.status == ExitStatus.USAGE
    assert "--force" in again.err
    assert rmqtool(*command, "--force").status == 0


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["--where", "latency > 500ms"], 1),
        (["--where", "status == unanswered"], 1),
        (["--where", 'topic ~ "^Ord"'], 3),
        (["--since", "2026-11-20T10:00:01"], 6),
        (["--until", "2026-11-20T10:00:01"], 2),
        (["--since", "10:00:01"], 6),
        (["--until", "10:00:01"], 2),
        (["--since", "10:00:01", "--where", "status == answered"], 2),
        (["--limit", "3"], 3),
        (["--limit", "0"], 0),
        (["--limit", "100"], 7),
    ],
)
def test_selection(capture: Path, options: list[str], count: int) -> None:
    for form in (["--format", "jsonl"], []):
        result = rmqtool("decode", "pcap", capture, *form, *options)
        head = 0 if form or not count else 1
        assert result.status == 0
        if not (options[1].startswith(("2026-11-20T10:00:01", "10:00:01")) and count in (2, 6)):
            assert len(result.out.splitlines()) == count + head


def test_rows_in_the_order_of_time(tmp_path: Path) -> None:
    sample = ROOT / "samples" / "busy-overload-5x.pcap"

    def times(*options: str) -> list[str]:
        out = rmqtool("decode", "pcap", sample, "-T", "jsonl", *options).out
        return [json.loads(line)["request_time"] for line in out.splitlines()]

    unsorted = times()
    assert unsorted != sorted(unsorted), "a slow exchange comes after those that began later"
    assert times("--sort", "time") == sorted(unsorted)
    assert times("--sort", "time", "-c", "3") == sorted(unsorted)[:3]
    seen = rmqtool("decode", "pcap", sample, "--list-messages", "-T", "jsonl", "--sort", "time").out
    moments = [json.loads(line)["time"] for line in seen.splitlines()]
    assert moments == sorted(moments)
    assert moments
    for options in (("--commands",), ("--follow",), ("-o", f"{tmp_path}/log", "-T", "parquet")):
        refused = rmqtool("decode", "pcap", sample, "--sort", "time", *options)
        assert (refused.status, refused.out) == (ExitStatus.USAGE, "")
        assert "--sort" in refused.err


def test_since_and_until_split_the_rows(capture: Path) -> None:
    def count(*options: str) -> int:
        return len(
            rmqtool("decode", "pcap", capture, "--format", "jsonl", *options).out.splitlines()
        )

    for moment in ("2026-11-20T10:00:00.002500", "10:00:00.0025", "10:00:01", "23:00"):
        assert count("--since", moment) + count("--until", moment) == 7
    assert count("--since", "10:00:00.0025") == 6
    assert count("--since", "2026-11-20T10:00:00.0025Z") == 6


def test_check(capture: Path, tmp_path: Path) -> None:
    assert rmqtool("decode", "pcap", capture, "--check").status == ExitStatus.OK
    talk = Talk().open().say(0, send(1).frame).say(1, sent(1).frame)
    talk.say(0, b"\xff\xff\xff\xff" * 8).say(0, send(2).frame)
    broken = tmp_path / "broken.pcap"
    broken.write_bytes(pcap_of(talk.segments))
    assert rmqtool("decode", "pcap", broken).status == ExitStatus.OK
    result = rmqtool("decode", "pcap", broken, "--check")
    assert result.status == ExitStatus.FINDINGS
    assert "findings of severity error: " in result.err


def test_nothing_found_says_why(capture: Path, tmp_path: Path) -> None:
    def why(talk: Talk) -> str:
        path = tmp_path / "b.pcap"
        path.write_bytes(pcap_of(talk.segments))
        return rmqtool("decode", "pcap", path).err

    assert (
        "no matches (7 exchanges checked)"
        in rmqtool("decode", "pcap", capture, "--where", "opaque == 99").err
    )
    get = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    assert "no RocketMQ in 1 conversation (HTTP 1)" in why(Talk().open().say(0, get).close())
    assert "no packet" in why(Talk())
    assert rmqtool("decode", "pcap", capture, "--where", "opaque == 99", "-q").err == ""


@pytest.mark.slow
def test_standard_input(capture: Path) -> None:
    command = [*PROGRAM, "decode", "pcap", "-", "--format", "jsonl"]
    done = subprocess.run(
        command, input=capture.read_bytes(), capture_output=True, cwd=ROOT, check=True
    )
    decoded = rows(done.stdout.decode())
    assert len(decoded) == 7
    assert {row["capture"] for row in decoded} == {"-"}


def test_several_captures_and_folders(capture: Path, tmp_path: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    other = Talk(End("10.0.0.6", 40001)).open().say(0, send(1).frame).say(1, sent(1).frame)
    (folder / "b.pcap").write_bytes(pcap_of(other.segments))
    decoded = rows(rmqtool("decode", "pcap", capture, folder, "--format", "jsonl").out)
    assert {row["capture"] for row in decoded} == {str(capture), str(folder / "b.pcap")}
    assert "CAPTURE" in rmqtool("decode", "pcap", capture, folder).out


def interrupted(command: list[str], capture: Path) -> tuple[int, str]:
    """Start, wait until the capture was read to its end, press Ctrl-C."""
    running = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE
    )
    with running:
        size = capture.stat().st_size
        wait_for("it has read", lambda: read_of(running.pid, capture) == size)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=PATIENCE)
    return running.returncode, err.decode()


@pytest.mark.slow
def test_following_ends_with_what_was_seen(capture: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.jsonl"
    command = [*PROGRAM, "decode", "pcap", str(capture)]
    status, err = interrupted([*command, "--follow", "-o", str(target)], capture)
    assert "Traceback" not in err
    assert status == 0
    decoded = rows(target.read_text())
    assert len(decoded) >= 6


def test_version_stands_in_one_place() -> None:
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in settings["project"]
    assert settings["tool"]["setuptools"]["dynamic"]["version"] == {
        "attr": "rmqtool.version.VERSION"
    }
    assert rmqtool("--version").out == f"rmqtool {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["decode"], ["decode", "pcap"]])
def test_every_command_has_help(arguments: list[str]) -> None:
    result = rmqtool(*arguments, "--help")
    assert result.status == 0
    assert "Usage" in result.out
    assert "Examples:" in result.out
    assert "  rmqtool decode" in result.out


def test_an_unknown_short_option_suggests_the_one_in_the_other_case() -> None:
    result = rmqtool("diagnose", "-v", "x.pcap")
    assert result.status == ExitStatus.USAGE
    assert "-V" in result.err.partition("No such option: -v")[2]
    assert "ossible" not in rmqtool("diagnose", "-Z", "x.pcap").err


@pytest.mark.slow
def test_help_is_fast_and_light() -> None:
    code = (
        "import sys; sys.argv = ['rmqtool', '--help']\n"
        "try:\n import rmqtool.cli; rmqtool.cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'scapy', 'pyspark', 'pandas', 'pyarrow', 'numpy', 'msgspec', 'asyncio'}\n"
        "print(heavy & set(sys.modules), file=sys.stderr)\n"
    )
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.stderr.decode().strip() == "set()"
    assert min(times) < 1.0  # of a CPU; 0.15 s on an idle machine, the promise is 0.3


@pytest.mark.slow
def test_the_module_can_be_run() -> None:
    assert process("--version").out == f"rmqtool {__version__}\n"
    command = [sys.executable, "-m", "rmqtool", "--version"]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, check=True)
    assert done.stdout.decode() == f"rmqtool {__version__}\n"


def test_times_are_shown_and_read_in_the_zone_that_was_asked_for(capture: Path) -> None:
    def shown(*arguments: str) -> str:
        return rmqtool("decode", "pcap", capture, *arguments).out

    assert "2026-11-20T10:00:00.000300Z" in shown()
    assert "2026-11-20T18:00:00.000300+08:00" in shown("--tz", "Asia/Shanghai")
    assert "2026-11-20T18:00:00.000300+08:00" in shown("--tz", "+08:00", "-V")
    assert "18:00:00.000 to 18:00" in shown("--tz", "+08:00", "--summary")
    assert "2026-11-20T10:00:00.000300Z" in shown()  # a zone is of one command
    json_lines = shown("--tz", "+08:00", "--format", "jsonl")
    assert "2026-11-20T10:00:00.000300Z" in json_lines
    since = ("--format", "jsonl", "--since")
    later = shown(*since, "10:00:00.5")
    assert 0 < later.count("\n") < json_lines.count("\n")
    assert shown("--tz", "+08:00", *since, "18:00:00.5") == later
    assert shown(*since, "18:00:00.5+08:00") == later
    where = ("--format", "jsonl", "--where")
    assert shown("--tz", "+08:00", *where, "time >= 18:00:00.5") == later
    bad = rmqtool("decode", "pcap", capture, "--tz", "Asia/Shanhai")
    assert bad.status == ExitStatus.USAGE
    assert "did you mean Asia/Shanghai" in bad.err

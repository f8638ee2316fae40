"""How problems are written: files, screens, pipes, signals."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from analytics.diagnosis.engine import Diagnosis, Engine
from analytics.diagnosis.registry import rules
from dissectors.decode.pipeline import DecodeOptions
from dissectors.processes.choice import decode_of
from rmqtool.diagnose.text import diagnosis_lines
from rmqtool.ui.console import UNLIMITED, Terminal, cells
from tests.patience import wait_for, waiting_in

from ..command import PROGRAM, ROOT, rmqtool
from .diagnosed import HEALTHY, KILL, SAMPLES, found_in
from .hostile import hostile_capture


def test_a_file_gets_text_or_json_by_its_name(tmp_path: Path) -> None:
    text, lines = tmp_path / "out.txt", tmp_path / "out.jsonl"
    for path in (text, lines):
        result = rmqtool("diagnose", KILL, "-o", path, "-q", FORCE_COLOR="1")
        assert (result.status, result.out, result.err) == (0, "", "")
    assert text.read_text().startswith("fault-kill-5x.pcap: 1 incident: 1 error")
    assert "\x1b" not in text.read_text()
    assert [json.loads(line)["rule"] for line in lines.read_text().splitlines()]
    assert rmqtool("diagnose", KILL, "-o", tmp_path / "no" / "x", "-q").status == 1


@pytest.mark.parametrize("width", [80, 120, 160])
@pytest.mark.parametrize("verbose", [(), ("-V",)])
def test_no_line_is_wider_than_the_screen(tmp_path: Path, width: int, verbose: tuple[str]) -> None:
    for path in (KILL, SAMPLES / "tls-5x.pcap", HEALTHY, hostile_capture(tmp_path)):
        result = rmqtool("diagnose", path, "-q", *verbose, COLUMNS=str(width))
        assert result.status == 0
        wide = [line for line in result.out.splitlines() if cells(line) > width]
        assert wide == []


def test_a_screenful_without_details_and_all_of_it_with_them() -> None:
    short = rmqtool("diagnose", KILL, "-q", COLUMNS="120")
    long = rmqtool("diagnose", KILL, "-q", "-V", COLUMNS="120")
    assert len(short.out.splitlines()) < 24
    assert "Wireshark: frame.number in {63" in long.out
    assert "Explanation: " in long.out
    assert "apache/rocketmq#2404" in long.out


def diagnosis_of(path: Path) -> Diagnosis:
    engine = Engine(rules())
    engine.begin_input("")
    decode = decode_of([str(path)], DecodeOptions(conversations=True), 1)
    for batch in decode.records():
        engine.add_exchanges(batch)
    engine.add_connections(decode.take_conversations())
    engine.add_findings(decode.take_findings())
    return engine.diagnosis()


@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("verbose", [False, True])
def test_a_screen_has_an_incident_a_frame(tmp_path: Path, width: int, verbose: bool) -> None:
    """What is on the screen is what is piped, and its lines fit."""
    for path in (KILL, HEALTHY, hostile_capture(tmp_path)):
        found = diagnosis_of(path)
        screen, pipe = Terminal(True, width, True), Terminal(False, UNLIMITED, False)
        lines = diagnosis_lines(found, path.name, screen, verbose)
        plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in lines]
        assert max(map(cells, plain)) <= width
        assert sum(line.startswith("╭─") for line in plain) == len(
            {one.incident for one in found.problems}
        )
        assert not UNSAFE.search("".join(plain))
        shown = "".join(line.strip("│ ").replace(" ", "") for line in plain)
        piped = diagnosis_lines(found, path.name, pipe, verbose)
        for line in (line.strip().replace(" ", "") for line in piped):
            text = re.sub("^(ERROR|WARNING|INFO)", "", line)
            assert text in shown, text


UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")


def test_nothing_from_the_network_controls_the_screen(tmp_path: Path) -> None:
    capture = hostile_capture(tmp_path)
    problems = found_in(capture)
    assert len(problems) > 4
    for arguments in ((), ("-V",), ("--fail-on", "info"), ("-V", "--color", "always")):
        result = rmqtool("diagnose", capture, *arguments, COLUMNS="120")
        out = re.sub(r"\x1b\[\d*m", "", result.out) if "always" in arguments else result.out
        assert not UNSAFE.search(out.replace("\n", "")), arguments
        assert not UNSAFE.search(result.err.replace("\n", ""))
        assert "s3cret" not in out
        assert "[red]evil" in out
    raw = rmqtool("diagnose", capture, "-T", "jsonl", "-q").out
    assert "s3cret" not in raw
    assert [json.loads(line) for line in raw.splitlines()] == problems
    summary = rmqtool("decode", "pcap", capture, "--summary", "-q")
    assert not UNSAFE.search(summary.out.replace("\n", ""))


@pytest.mark.slow
def test_json_on_the_screen_is_visible(tmp_path: Path) -> None:
    if shutil.which("script") is None:
        pytest.skip("script is not installed")
    capture = hostile_capture(tmp_path)
    command = f"{sys.executable} -m rmqtool diagnose {capture} -q -T jsonl"
    done = subprocess.run(
        ["script", "-qec", command, "/dev/null"], capture_output=True, cwd=ROOT, check=True
    )
    text = done.stdout.decode().replace("\r\n", "")
    assert '"rule"' in text
    assert not UNSAFE.search(text)


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error() -> None:
    command = [*PROGRAM, "diagnose", str(KILL), "-q", "-V"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        err = running.stderr.read()
        running.wait(60)
    assert b"Traceback" not in err
    assert err == b""


@pytest.mark.slow
def test_ctrl_c_ends_it_cleanly() -> None:
    command = [*PROGRAM, "diagnose", "-", "-q"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT) as running:
        assert running.stdin is not None
        running.stdin.write(KILL.read_bytes())
        running.stdin.flush()
        wait_for("it has read", lambda: waiting_in(running.stdin) == 0)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    assert running.returncode in (0, 130)
    assert b"Traceback" not in err

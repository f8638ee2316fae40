"""`replay --jobs`: several processes send, in one order, at one pace, to one journal and result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.captures.generate import write_capture
from dissectors.times import moment_of
from replay.run.journal import read_skipped, read_steps
from replay.run.journal_rows import Begin, OutcomeEntry, Result
from replay.sandbox import Injection, InjectionKind, SandboxOptions, SandboxThread, sandbox_thread
from replay.sandbox.injection.injection import latency_of
from tests.patience import wait_for
from tests.replay.captured_sends import captured_sends
from tests.rmqtool.command import PROGRAM, ROOT, full_after, process, rmqtool

from .test_run import SENDS, concurrent_capture, most_in_flight

SAMPLES = ROOT / "samples"


@pytest.fixture
def box() -> Iterator[SandboxThread]:
    with sandbox_thread(SandboxOptions(brokers=2)) as started:
        yield started


def _outcomes(journal: Path) -> list[OutcomeEntry]:
    return [row for row in read_steps(journal) if isinstance(row, OutcomeEntry)]


def _stored(box: SandboxThread) -> int:
    return box.call(lambda sandbox: sum(one.state.messages_in for one in sandbox.brokers.values()))


def test_several_processes_send_everything_once(box: SandboxThread, tmp_path: Path) -> None:
    capture, journal = tmp_path / "many.pcap", tmp_path / "run"
    write_capture(capture, 3000, 3, "mixed")
    sends = captured_sends(capture)
    arguments = ("replay", capture, "-n", box.namesrv, "--top-speed", "-T", "jsonl")
    ended = process(*arguments, "-o", journal, "--jobs", "3")
    assert ended.status == 0, ended.err
    result = json.loads(ended.out)
    rows = _outcomes(journal)
    assert Counter(key for row in rows for key in row.unique_keys) == dict.fromkeys(sends, 1)
    assert sorted(row.step for row in rows) == list(range(len(rows)))
    begun = [row.step for row in read_steps(journal) if isinstance(row, Begin)]
    assert sorted(begun) == list(range(len(rows)))
    alone = process(*arguments, "-o", tmp_path / "alone")
    one = json.loads(alone.out)
    for name in ("steps", "messages", "failures", "captured_failures", "outcomes", "skipped"):
        assert result[name] == one[name], name
    assert list(read_skipped(journal)) == list(read_skipped(tmp_path / "alone"))
    addresses = Counter(row["client_address"] for row in _rows(journal / "attempts.jsonl"))
    assert len(addresses) > 1
    assert not list(journal.glob(".reserve*"))


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("sample", ["send-ordered-5x", "send-sync-5x"])
def test_what_must_stay_in_order_does(box: SandboxThread, tmp_path: Path, sample: str) -> None:
    journal = tmp_path / "run"
    arguments = ("-n", box.namesrv, "--top-speed", "--jobs", "4", "-o", journal)
    ended = process("replay", SAMPLES / f"{sample}.pcap", *arguments)
    assert ended.status == 0, ended.err
    offsets: dict[object, list[tuple[int, int]]] = defaultdict(list)
    for row in _outcomes(journal):
        assert row.queue_offset is not None
        offsets[row.broker, row.queue_id].append((row.step, row.queue_offset))
    for placed in offsets.values():
        assert [at for _, at in sorted(placed)] == sorted(at for _, at in placed)


def test_the_rate_is_that_of_all_together(box: SandboxThread, tmp_path: Path) -> None:
    concurrent_capture(tmp_path / "a.pcap")
    arguments = ("-n", box.namesrv, "--rate", "100/s", "--jobs", "2", "-o", tmp_path / "run")
    ended = process("replay", tmp_path / "a.pcap", *arguments, "-q")
    assert ended.status == 0, ended.err
    rows = [row for row in read_steps(tmp_path / "run") if isinstance(row, OutcomeEntry)]
    assert len(rows) == SENDS
    attempts = _rows(tmp_path / "run" / "attempts.jsonl")
    begins = sorted(row["request_time"] for row in attempts)
    first, last = (one.partition("T")[2].rstrip("Z").split(":") for one in (begins[0], begins[-1]))
    seconds = [3600 * int(h) + 60 * int(m) + float(s) for h, m, s in (first, last)]
    took = (seconds[1] - seconds[0]) % 86400
    assert took >= 0.75 * SENDS / 100  # the first may be late; each at that rate: half the time
    assert (
        len({row["client_address"] for row in attempts}) > 2
    )  # one process has one for each broker


def test_the_sandbox_is_a_target_of_all(tmp_path: Path) -> None:
    concurrent_capture(tmp_path / "a.pcap")
    for mode in ("as-captured", "raw"):
        arguments = ("--target", "sandbox", "--top-speed", "--jobs", "2", "--mode", mode)
        ended = process("replay", tmp_path / "a.pcap", *arguments, "-o", tmp_path / mode, "-q")
        assert ended.status == 0, ended.err
        assert f"{SENDS} messages in {SENDS} sends; 0 failed" in ended.out


def _running(box: SandboxThread, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    concurrent_capture(folder / "a.pcap")
    command = [*PROGRAM, "replay", str(folder / "a.pcap"), "-n", box.namesrv, "--rate", "20/s"]
    command += ["--jobs", "2", "-o", str(folder / "run"), *more]
    pipe = subprocess.PIPE
    running = subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, start_new_session=True)
    wait_for("sends", lambda: _stored(box) >= 4 or running.poll() is not None)
    return running


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(one) for one in path.read_text().split()]


def test_ctrl_c_ends_all_and_the_journal_goes_on(box: SandboxThread, tmp_path: Path) -> None:
    running = _running(box, tmp_path)
    children = _children(running.pid)
    assert len(children) == 2
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: all processes get it
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert b"Traceback" not in err
    assert b"--resume" in err
    assert b"SUCCESS" in out
    assert not any(Path(f"/proc/{one}").exists() for one in children)
    arguments = ("-n", box.namesrv, "--top-speed", "--jobs", "2", "-T", "jsonl")
    again = process("replay", "--resume", tmp_path / "run", *arguments)
    assert again.status == 0, again.err
    result = json.loads(again.out)
    assert result["steps"] == SENDS
    assert 4 <= result["done_before"] < SENDS
    assert sorted(row.step for row in _outcomes(tmp_path / "run")) == list(range(SENDS))


def test_a_process_that_is_killed_is_reported(box: SandboxThread, tmp_path: Path) -> None:
    running = _running(box, tmp_path)
    victim = _children(running.pid)[1]
    os.kill(victim, signal.SIGKILL)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 1, err
    assert f"process 2 (pid {victim}) was killed by signal 9".encode() in err
    assert b"--resume" in err
    assert b"SUCCESS" in out  # of what was sent
    assert len(_outcomes(tmp_path / "run")) < SENDS


def test_no_process_outlives_the_first(box: SandboxThread, tmp_path: Path) -> None:
    running = _running(box, tmp_path)
    children = _children(running.pid)
    running.kill()
    running.communicate(timeout=60)
    wait_for("they end", lambda: not any(Path(f"/proc/{one}").exists() for one in children))


def test_a_target_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    concurrent_capture(tmp_path / "a.pcap")
    arguments = ("-n", "127.0.0.1:1", "--jobs", "2", "-o", tmp_path / "run")
    ended = process("replay", tmp_path / "a.pcap", *arguments)
    assert ended.status == 1
    assert ended.err.count("no connection to 127.0.0.1:1") == 1
    assert "--resume" in ended.err
    assert "Traceback" not in ended.err


def test_a_captured_target_is_refused_by_all(tmp_path: Path) -> None:
    concurrent_capture(tmp_path / "a.pcap")
    arguments = ("-n", "10.0.1.1:10911", "-y", "--jobs", "2", "-o", tmp_path / "run")
    ended = process("replay", tmp_path / "a.pcap", *arguments)
    assert ended.status == 1
    assert "never sent back to where it came from" in ended.err


@pytest.mark.slow
def test_a_journal_that_is_full_ends_all(box: SandboxThread, tmp_path: Path) -> None:
    capture, journal = tmp_path / "many.pcap", tmp_path / "run"
    write_capture(capture, 3000, 3, "json")
    command = [*PROGRAM, "replay", str(capture), "-n", box.namesrv, "-o", str(journal)]
    ended = subprocess.run(
        [*command, "--top-speed", "--in-flight", "8", "--jobs", "2"],
        preexec_fn=full_after(33_333),
        capture_output=True,
        check=False,
    )
    err = ended.stderr.decode()
    assert ended.returncode == 1, err
    assert err.count("cannot be written: File too large") == 1
    assert f"rmqtool replay --resume {journal}" in err
    again = process("replay", "--resume", journal, "-n", box.namesrv, "--top-speed")
    assert again.status == 0, again.err
    done = [row for row in _outcomes(journal) if row.result in (Result.stored, Result.sent)]
    assert {key for row in done for key in row.unique_keys} == captured_sends(capture).keys()


def test_one_order_is_said_to_be_one_process(tmp_path: Path) -> None:
    sample = SAMPLES / "send-sync-5x.pcap"
    arguments = ("--target", "sandbox", "--top-speed", "--jobs", "2", "-o", tmp_path / "run")
    ended = process("replay", sample, *arguments)
    assert ended.status == 0, ended.err
    assert "100% of the sends wait for each other" in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("-", "--live"),
            "--jobs: cannot be combined with live input: each process reads all of it",
        ),
        (("-i", "lo"), "--jobs: cannot be combined with live input: each process reads all of it"),
        (("x.pcap", "--jobs", "0"), "--jobs"),
        (("x.pcap", "--jobs", "65"), "--jobs"),
    ],
)
def test_where_several_processes_cannot_be(arguments: tuple[str, ...], said: str) -> None:
    ended = rmqtool("replay", "--jobs", "2", *arguments, "--target", "sandbox")
    assert ended.status == 2
    assert said in ended.err


def test_a_function_may_differ_between_processes(tmp_path: Path) -> None:
    rule = tmp_path / "change.py"
    rule.write_text("def same(message):\n    return message\n")
    arguments = ("x.pcap", "--target", "sandbox", "--rewrite", f"{rule}:same", "--jobs", "2")
    ended = rmqtool("replay", *arguments)
    assert ended.status == 2
    assert "--jobs: cannot be combined with Python functions" in ended.err


def test_standard_input_may_be_shared_out(box: SandboxThread, tmp_path: Path) -> None:
    """It is copied to a file first."""
    concurrent_capture(tmp_path / "a.pcap")
    command = [*PROGRAM, "replay", "-", "-n", box.namesrv, "--top-speed", "--jobs", "2"]
    ended = subprocess.run(
        [*command, "-o", str(tmp_path / "run")],
        input=(tmp_path / "a.pcap").read_bytes(),
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert _stored(box) == SENDS


def test_a_slow_target_has_the_sends_of_all_in_flight(tmp_path: Path) -> None:
    concurrent_capture(tmp_path / "a.pcap")
    slow = Injection(InjectionKind.LATENCY, latency=latency_of("400ms"))
    with sandbox_thread(SandboxOptions(brokers=2, injections=[slow])) as box:
        arguments = ("-n", box.namesrv, "--jobs", "2", "-o", tmp_path / "run", "-q")
        ended = process("replay", tmp_path / "a.pcap", *arguments)
    assert ended.status == 0, ended.err
    assert max(row.late_us for row in _outcomes(tmp_path / "run")) < 5_000_000


def test_all_processes_together_have_at_most_as_many_in_flight(tmp_path: Path) -> None:
    concurrent_capture(tmp_path / "a.pcap")
    slow = Injection(InjectionKind.LATENCY, latency=latency_of("50ms"))
    with sandbox_thread(SandboxOptions(brokers=2, injections=[slow])) as box:
        arguments = ("-n", box.namesrv, "--top-speed", "-o", tmp_path / "run", "-q")
        ended = process(
            "replay", tmp_path / "a.pcap", *arguments, "--jobs", "3", "--in-flight", "4"
        )
    assert ended.status == 0, ended.err
    times: list[tuple[int, int]] = []
    for row in _rows(tmp_path / "run" / "attempts.jsonl"):
        moment = moment_of(row["request_time"])
        assert moment is not None
        times.append((moment.ns, moment.ns + 1000 * int(row["latency_us"])))
    assert len(times) == SENDS
    assert most_in_flight(times) <= 4

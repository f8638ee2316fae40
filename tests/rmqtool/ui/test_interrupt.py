"""Ctrl-C while a capture is followed or comes from a pipe: what was read is finished."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rmqtool.ui.interrupt import Apart, first_ends
from tests.patience import read_of, wait_for, waiting_in
from tests.rmqtool.command import PROGRAM

pytestmark = pytest.mark.slow

SENDS = Path(__file__).resolve().parents[3] / "samples" / "send-sync-5x.pcap"
SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "push-consumer-5x.pcap"


def _start(*arguments: str, **pipes: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "rmqtool", "decode", "pcap", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **pipes)


def _wait_for_rows(path: Path) -> None:
    """Waits until the run has written its temporary output: it is reading by then."""
    wait_for("rows", lambda: any(entry.stat().st_size for entry in path.parent.glob("*out*")))


@pytest.mark.slow
def test_following_ends_with_what_still_waits(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    process = _start("--follow", str(SAMPLE), "-o", str(out))
    _wait_for_rows(out)
    wait_for("it has read", lambda: read_of(process.pid, SAMPLE) == SAMPLE.stat().st_size)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    whole = subprocess.run(
        [sys.executable, "-m", "rmqtool", "decode", "pcap", str(SAMPLE), "--format", "jsonl"],
        capture_output=True,
        check=True,
    ).stdout
    expected = [json.loads(line) for line in whole.splitlines()]
    assert len(rows) == len(expected)
    assert sum(row["status"] == "unanswered" for row in rows) > 0
    assert b"Traceback" not in errors


@pytest.mark.slow
def test_a_pipe_that_is_interrupted_still_gives_its_summary() -> None:
    process = _start("-", "--summary", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(SAMPLE.read_bytes())
    process.stdin.flush()
    wait_for("it has read", lambda: waiting_in(process.stdin) == 0)
    os.kill(process.pid, signal.SIGINT)
    process.stdin.close()
    process.stdin = None
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert b"PULL_MESSAGE" in output
    assert b"Traceback" not in errors


OUTPUTS = [
    ("decode", "pcap", "-", "-o", "{folder}/out.jsonl"),
    ("decode", "pcap", "-", "-o", "{folder}/out.parquet"),
    ("decode", "pcap", "-", "--format", "jsonl", "-o", "{folder}/out/"),
    ("decode", "pcap", "-", "--messages", "-o", "{folder}/out"),
]


@pytest.mark.parametrize("command", OUTPUTS)
@pytest.mark.parametrize("pause", [0, 0.001, 0.01])
def test_two_sigterms_leave_nothing(tmp_path: Path, command: tuple[str, ...], pause: float) -> None:
    arguments = [part.format(folder=tmp_path) for part in command]
    with subprocess.Popen(
        [*PROGRAM, *arguments], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(SAMPLE.read_bytes())
        process.stdin.flush()
        wait_for("the temporary output", lambda: any(tmp_path.iterdir()))
        for _ in range(3):
            process.send_signal(signal.SIGTERM)
            time.sleep(pause)
        _, errors = process.communicate(timeout=60)
    assert process.returncode in (143, -signal.SIGTERM), errors
    assert b"Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_two_sigterms_end_a_replay(tmp_path: Path) -> None:
    journal = tmp_path / "run"
    command = [*PROGRAM, "replay", str(SENDS), "--rate", "1/s", "--target", "sandbox", "-q"]
    with subprocess.Popen([*command, "-o", str(journal)], stderr=subprocess.PIPE) as process:
        steps = journal / "steps.jsonl"
        wait_for("the first send", lambda: steps.exists() and steps.stat().st_size)
        for _ in range(3):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.001)
        _, errors = process.communicate(timeout=60)
    assert process.returncode in (143, -signal.SIGTERM), errors
    assert b"Traceback" not in errors
    assert b"Exception" not in errors
    assert not (journal / ".reserve").exists()


def test_two_sigints_within_milliseconds_are_one(tmp_path: Path) -> None:
    """`timeout -s INT` sends two: the rows that were read are finished all the same."""
    out = tmp_path / "out.jsonl"
    with subprocess.Popen(
        [*PROGRAM, "decode", "pcap", "-", "-o", str(out)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(SAMPLE.read_bytes())
        process.stdin.flush()
        wait_for("rows", lambda: any(one.stat().st_size for one in tmp_path.iterdir()))
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert b"Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_signal_that_is_ignored_stays_so(tmp_path: Path) -> None:
    """`nohup` ignores SIGHUP for its command."""
    out = tmp_path / "out.jsonl"
    with subprocess.Popen(
        ["nohup", *PROGRAM, "decode", "pcap", "-", "-o", str(out)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        wait_for("the temporary output", lambda: any(tmp_path.iterdir()))
        process.send_signal(signal.SIGHUP)
        process.stdin.write(SAMPLE.read_bytes())
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert out.exists()


def test_the_second_interrupt_ends_what_the_first_did_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter([0.0, 0.1, 0.3])
    monkeypatch.setattr("rmqtool.ui.interrupt.monotonic", lambda: next(times))
    stops = []
    with first_ends(lambda: stops.append(1)):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        assert stops == [1]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_work_apart() -> None:
    assert Apart(lambda: 3).result() == 3
    failing = Apart(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failing.result()
    assert failing.is_done


def test_an_interrupt_ends_the_wait_and_not_the_work() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    go_on = threading.Event()
    work = Apart(go_on.wait)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            work.result()
    finally:
        signal.signal(signal.SIGINT, before)
    assert not work.wait(0.05)
    go_on.set()
    assert work.result()


_IMPORTS = """
import importlib, signal, sys, threading, time
from rmqtool.ui import interrupt

interrupt.install_handlers()
rounds = 0


def import_all(first):
    for number in range(first, first + 20):
        sys.modules.pop(f"module_{number}", None)
        importlib.import_module(f"module_{number}")


def import_for_ever():
    global rounds
    while True:
        import_all(20)
        rounds += 1


def interrupted(seconds):
    interrupt._Ending.since = None
    end = time.monotonic() + 5
    try:  # on a busy machine the signal comes before the timer's start has returned
        threading.Timer(seconds, signal.raise_signal, [signal.SIGINT]).start()
        while time.monotonic() < end:
            import_all(0)
    except KeyboardInterrupt:
        return True
    return False


threading.Thread(target=import_for_ever, daemon=True).start()
for number in range(12):
    assert interrupted(0.003 + number * 0.0001), "Ctrl-C was lost"
    before, end = rounds, time.monotonic() + 5
    while rounds == before:
        assert time.monotonic() < end, "imports wait for ever"
        time.sleep(0.001)
"""


def test_an_interrupt_leaves_the_importer_as_it_was(tmp_path: Path) -> None:
    """One thread imports while Ctrl-C comes to another one that does."""
    for number in range(40):
        (tmp_path / f"module_{number}.py").write_text("")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-c", _IMPORTS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


_IN_IMPORTER = """
import signal, time
from rmqtool.ui import interrupt
from rmqtool.ui.status import Terminated

interrupt.install_handlers()
exec(compile("signal.raise_signal(signal.SIGTERM)", "<frozen importlib._bootstrap>", "exec"))
assert signal.getitimer(signal.ITIMER_REAL)[0] > 0, "it does not wait"
"""
_ENDED_BY_THE_NEXT = """
try:
    signal.raise_signal(signal.SIGTERM)
except Terminated:
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0), "it still waits"
    raise SystemExit(143)
"""
_ENDED_BY_ITSELF = """
try:
    time.sleep(5)
except Terminated:
    raise SystemExit(143)
"""


@pytest.mark.parametrize(
    ("then", "status"),
    [
        pytest.param(_ENDED_BY_THE_NEXT, 143, id="the next one ends the run"),
        pytest.param(_ENDED_BY_ITSELF, 143, id="it ends the run"),
        pytest.param("interrupt.restore_handlers()", -signal.SIGTERM, id="the run is over"),
    ],
)
def test_a_signal_that_waits_for_the_importer(then: str, status: int) -> None:
    """Never SIGALRM's own status, which a timer that outlives Python gives."""
    command = [sys.executable, "-c", _IN_IMPORTER + then]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (status, "")


_IN_A_TRANSPORT = """
import asyncio, signal, sys
from asyncio import selector_events
from rmqtool.ui import interrupt

interrupt.install_handlers()
made = selector_events.trsock.TransportSocket.__init__
exec(compile(
    "def init(self, sock):\\n"
    "    signal.raise_signal(signal.SIGINT)\\n"
    "    made(self, sock)\\n",
    selector_events.__file__, "exec",
))

async def run():
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    selector_events.trsock.TransportSocket.__init__ = init
    await asyncio.open_connection(*address)
    await asyncio.sleep(60)

try:
    asyncio.run(run())
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_no_transport_is_left_half_made() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IN_A_TRANSPORT], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (130, b"")


def test_a_signal_does_not_wait_for_ever() -> None:
    """Python's own code may wait for something that never comes."""
    code = """
import asyncio, os, signal, sys, threading, time
from rmqtool.ui import interrupt

interrupt.install_handlers()
scope = {"wait": threading.Event().wait}
exec(compile("def never():\\n    wait(50)\\n", asyncio.__file__, "exec"), scope)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    scope["never"]()
except KeyboardInterrupt:
    sys.exit(130)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=40, check=False
    )
    assert (done.returncode, done.stderr) == (130, b"")

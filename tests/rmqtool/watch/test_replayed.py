"""`watch` over captures on standard input: what it tells, keeps, and survives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.traffic.captures import pcap_of
from tests.traffic.commands import send, sent
from tests.traffic.talk import SECOND, Talk

from ..command import PROGRAM, ROOT, full_after, rmqtool

pytestmark = pytest.mark.slow
SAMPLE = ROOT / "samples" / "busy-send-queue-5x.pcap"
REFUSED = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 201ms"


def watched(
    capture: bytes, *arguments: str | Path, **settings: Any
) -> tuple[int, list[dict[str, Any]], str]:
    """The status, the events, standard error of a watch over a capture on standard input."""
    command = [*PROGRAM, "watch", "-", "-T", "jsonl", *map(str, arguments)]
    done = subprocess.run(
        command, input=capture, capture_output=True, cwd=ROOT, check=False, **settings
    )
    return done.returncode, list(map(json.loads, done.stdout.splitlines())), done.stderr.decode()


def by_event(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in events if one["event"] == kind]


def refusing(at: int, sends: int = 3) -> Talk:
    """A broker that refuses sends, from a time on."""
    talk = Talk(at=at).open()
    for number in range(sends):
        asked = send(number)
        talk.say(0, asked.frame).say(1, asked.answer(2, remark=REFUSED).frame)
        talk.wait(SECOND // 10)
    return talk


def test_problems_of_a_capture_are_events_and_the_end_is_told() -> None:
    status, events, err = watched(SAMPLE.read_bytes())
    assert (status, err) == (0, "")
    assert [events[0]["event"], events[-1]["event"]] == ["watching", "stopped"]
    (started,) = [one for one in by_event(events, "started") if one["severity"] == "error"]
    assert (started["rule"], started["count"]) == ("send-queue-timeout", 20)
    end = events[-1]
    assert (end["reason"], end["packets"], end["exchanges"]) == ("the capture ended", 142, 41)
    assert end["memory_bytes"] > 1_000_000


@pytest.mark.parametrize(
    "name",
    [
        "leader-lost-5x.pcap",
        "client-id-twice-4x.pcap",
        "budget-spent-5x.pcap",
        "batch-refused-5x.pcap",
        "more-consumers-than-queues-4x.pcap",
    ],
)
def test_a_file_has_the_problems_of_diagnose(name: str) -> None:
    capture = str(ROOT / "samples" / name)
    events = json.loads(rmqtool("watch", capture, "-T", "json").out)[1:-1]
    problems = json.loads(rmqtool("diagnose", capture, "-T", "json").out)
    assert {one["event"] for one in events} <= {"started", "ended"}
    assert sorted(map(_named, by_event(events, "started"))) == sorted(map(_named, problems))


def _named(problem: dict[str, Any]) -> tuple[str, ...]:
    return problem["rule"], problem["title"], *map(str, problem["subject"].items())


def test_an_array_is_closed_at_the_end() -> None:
    command = [*PROGRAM, "watch", SAMPLE, "-T", "json"]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, check=True)
    events = json.loads(done.stdout)
    assert [events[0]["event"], events[-1]["event"]] == ["watching", "stopped"]


def test_severities_have_colours_on_request() -> None:
    for colour, shown in (("always", " \x1b[31mERROR\x1b[0m "), ("never", " ERROR ")):
        command = [*PROGRAM, "watch", SAMPLE, "--color", colour, "--severity", "error", "-q"]
        done = subprocess.run(command, capture_output=True, cwd=ROOT, check=True)
        assert done.stdout.decode().count(shown) == 1, colour


def test_a_problem_ends_by_quiet_and_is_not_told_again_after_its_rows_are_forgotten() -> None:
    start = Talk().now
    talk = refusing(start)
    for number in range(400):  # four minutes, a window of one
        talk.wait(SECOND * 6 // 10).say(0, send(100 + number).frame)
        talk.say(1, sent(100 + number, number).frame)
    status, events, _ = watched(pcap_of(talk.segments), "--window", "1m", "--severity", "error")
    told = [(one["event"], one.get("state")) for one in events if one.get("rule")]
    assert (status, told) == (0, [("started", None), ("ended", "ended")])
    assert events[-1]["windows"] > 3


def test_a_clock_that_jumps_is_told_and_requests_in_flight_are_not_judged() -> None:
    start = Talk().now
    before = Talk(at=start).open()
    for number in range(5):
        before.say(0, send(number).frame).say(1, sent(number, number).frame)
    before.say(0, send(77).frame)  # its response comes by another clock
    back = before.now - 3600 * SECOND
    after = refusing(back)
    capture = pcap_of([*before.segments, *after.segments])
    status, events, _ = watched(capture)
    assert status == 0
    (jump,) = by_event(events, "clock_jumped")
    assert jump["seconds"] == pytest.approx(-3600, abs=2)
    assert {one["rule"] for one in by_event(events, "started")} == {"send-queue-timeout"}


def test_the_ring_is_bounded_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "ring"
    talk = Talk().open()
    for number in range(5000):
        talk.say(0, send(number, body=b"x" * 2000).frame).say(1, sent(number, number).frame)
    capture = pcap_of(talk.segments)
    assert len(capture) > 10_000_000
    for _ in range(2):
        status, events, _ = watched(capture, "--ring-dir", folder, "--ring", "4MiB")
        assert status == 0
        size = sum(one.stat().st_size for one in folder.glob("*.pcapng"))
        assert 3 << 20 < size <= 4 << 20
        assert events[-1]["ring_bytes"] == size
    files = sorted(folder.glob("ring-*.pcapng"))
    assert all(one.stat().st_mode & 0o077 == 0 for one in files)
    read = subprocess.run(
        [*PROGRAM, "decode", "pcap", str(folder), "--summary", "--check"],
        capture_output=True,
        cwd=ROOT,
        check=False,
    )
    assert b"SEND_MESSAGE_V2" in read.stdout


def test_a_full_disk_is_told_counted_and_survived(tmp_path: Path) -> None:
    talk = Talk().open()
    for number in range(300):
        talk.say(0, send(number, body=b"x" * 2000).frame).say(1, sent(number, number).frame)
    status, events, err = watched(
        pcap_of(talk.segments),
        *("--ring-dir", tmp_path / "ring"),
        preexec_fn=full_after(100_000),
    )
    assert (status, err) == (0, "")
    assert len(by_event(events, "ring_failed")) == 1
    end = events[-1]
    assert end["ring_packets_lost"] > 100
    assert end["exchanges"] == 300


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_a_readable_ring_and_a_stopped_event(
    tmp_path: Path, number: signal.Signals
) -> None:
    folder = tmp_path / "ring"
    command = [*PROGRAM, "watch", "-", "-T", "jsonl", "--ring-dir", str(folder)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdin is not None
        running.stdin.write(SAMPLE.read_bytes())
        running.stdin.flush()
        end = time.monotonic() + 60
        while not any(one.stat().st_size > 30_000 for one in folder.glob("*.pcapng")):
            assert time.monotonic() < end
            time.sleep(0.05)
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (0, b"")
    events = list(map(json.loads, out.splitlines()))
    assert (events[-1]["event"], events[-1]["reason"]) == ("stopped", "stopped")
    read = subprocess.run(
        [*PROGRAM, "diagnose", *map(str, folder.glob("*.pcapng"))],
        capture_output=True,
        cwd=ROOT,
        check=False,
    )
    assert b"send-queue-timeout" in read.stdout


def test_a_signal_before_the_first_packet_ends_it() -> None:
    command = [*PROGRAM, "watch", "-", "-T", "jsonl"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert b'"watching"' in running.stdout.readline()
        time.sleep(0.2)
        running.send_signal(signal.SIGTERM)
        assert running.stdout.read().count(b'"event":"stopped"') == 1
        running.wait(60)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no interface given; use -i NAME, or - for a capture on stdin"),
        (("-i", "lo", "x.pcap"), "a capture and an interface cannot be combined"),
        (("-", "--webhook", "ftp://x/"), "--webhook: not a URL"),
        (("-", "--window", "1s"), "--window: too short: '1s'; give 1m or more"),
        (("-", "--ring", "1"), "--ring: too small: '1'; give 4MiB or more"),
        (("-", "--severity", "fatal"), "--severity: must be one of info, warning, error"),
        (("-", "-f", "tcp"), "--filter: needs -i NAME"),
        (("-", "--buffer", "1MiB"), "--buffer: needs -i NAME"),
        (("-", "--no-promiscuous"), "--no-promiscuous: needs -i NAME"),
        (("-", "--user", "nobody"), "--user: needs -i NAME"),
        (("-", "--ring", "9MiB"), "--ring: needs --ring-dir DIR"),
        (("-", "--before", "9s"), "--before: needs --incidents DIR"),
        (("-", "--keep-severity", "info"), "--keep-severity: needs --incidents DIR"),
        (("-", "--incidents-size", "9MiB"), "--incidents-size: needs --incidents DIR"),
        (
            ("-", "--otlp", "http://127.0.0.1:1/", "--otlp-interval", "0"),
            "--otlp-interval: not a valid duration: '0'; give 30s or 5m",
        ),
        (("-", "--otlp-interval", "1s"), "--otlp-interval: needs --otlp URL"),
    ],
)
def test_what_cannot_be_is_said(arguments: tuple[str, ...], said: str) -> None:
    done = subprocess.run(
        [*PROGRAM, "watch", *arguments], capture_output=True, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"rmqtool: {said}" in done.stderr.decode()


def test_what_is_no_capture_is_said() -> None:
    status, _, err = watched(b"nonsense" * 100)
    assert status == 1
    assert err.startswith("rmqtool: -, offset 0: not a capture")
    assert "Traceback" not in err


def test_two_watches_do_not_share_a_ring(tmp_path: Path) -> None:
    from dissectors.owned_folder import lock_in

    lock = lock_in(tmp_path)
    assert lock is not None
    status, _, err = watched(SAMPLE.read_bytes(), "--ring-dir", tmp_path)
    os.close(lock)
    assert status == 1
    assert "is used by another watch" in err


def test_a_watch_that_cannot_begin_has_no_events() -> None:
    for arguments in (("nosuch.pcap",), ("-", "--ring-dir", "/dev/null/ring")):
        done = subprocess.run(
            [*PROGRAM, "watch", *arguments], input=b"", capture_output=True, cwd=ROOT, check=False
        )
        assert (done.returncode, done.stdout) == (1, b"")
        assert b"no such file" in done.stderr.lower() or b"Not a directory" in done.stderr

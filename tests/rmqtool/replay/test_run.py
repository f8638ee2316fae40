"""`rmqtool replay`: sends wait for one another only as the capture shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from replay.run.journal import read_steps
from replay.run.journal_rows import OutcomeEntry
from replay.sandbox import Injection, InjectionKind, SandboxOptions, sandbox_thread
from replay.sandbox.injection.latency import latency_of
from rmqtool.replay.arguments import ReplayArguments
from rmqtool.replay.options import request_of
from tests.rmqtool.command import ROOT, rmqtool
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send
from tests.traffic.talk import MILLISECOND, SECOND, START, End, Talk

SENDS, RATE, QUEUES = 300, 150, 4
"""of two brokers each"""


def concurrent_capture(path: Path) -> None:
    """150 sends a second, round robin over two brokers with four queues; responses after 10 ms."""
    talks = [Talk(server=End(f"10.0.1.{n}", 10911), step=1000).open() for n in (1, 2)]
    said = []
    for n in range(SENDS):
        at, broker, queue = START + SECOND + n * SECOND // RATE, n // QUEUES % 2, n % QUEUES
        one = send(n)
        names = {"e": str(queue), "n": ("broker-a", "broker-b")[broker]}
        one = replace(one, ext={**one.ext, **names})
        stored = one.answer(ext={"queueId": str(queue), "queueOffset": str(n)})
        said += [(at, 0, broker, one.frame), (at + 10 * MILLISECOND, 1, broker, stored.frame)]
    for at, side, broker, data in sorted(said):
        talks[broker].now = max(at, talks[broker].now)
        talks[broker].say(side, data)
    segments = sorted((one for talk in talks for one in talk.segments), key=lambda one: one.ts)
    path.write_bytes(pcap_of(segments, "raw", nano=True))


@pytest.mark.slow
@pytest.mark.parametrize("order", ["keep", "queue"])
def test_concurrent_sends_do_not_wait_for_a_slow_target(tmp_path: Path, order: str) -> None:
    """Each queue takes one send in 400 ms: in turn, the last one would leave 13 s late."""
    concurrent_capture(tmp_path / "a.pcap")
    slow = Injection(InjectionKind.LATENCY, latency=latency_of("400ms"))
    with sandbox_thread(SandboxOptions(brokers=2, injections=[slow])) as box:
        arguments = ("-n", box.namesrv, "-o", tmp_path / "run", "--order", order)
        ended = rmqtool("replay", tmp_path / "a.pcap", *arguments)
    assert ended.status == 0, ended.err
    rows = [row for row in read_steps(tmp_path / "run") if isinstance(row, OutcomeEntry)]
    assert len(rows) == SENDS
    assert not any(text.startswith("queue") for row in rows for text in row.differences)
    latest = max(row.late_us for row in rows) / 1e6
    if order == "queue":
        assert latest > 10
        assert "left late because earlier ones had not ended; --order none" in ended.err
    else:
        assert latest < 5
        assert "left late because" not in ended.err


def test_responses_that_were_not_captured_are_no_failures(tmp_path: Path) -> None:
    sample = ROOT / "samples" / "one-direction-5x.pcap"
    arguments = ("--target", "sandbox", "--top-speed", "-o", tmp_path / "run")
    ended = rmqtool("replay", sample, *arguments, "--fail-on", "fixed", "--fail-on", "new-failures")
    assert ended.status == 0, ended.err
    assert "0 failed (0 captured, 6 without captured responses)" in ended.out
    assert "not captured  SUCCESS" in ended.out
    assert "failed in the capture" not in ended.out


def test_a_ramp_is_shown_and_kept(tmp_path: Path) -> None:
    """From 20/s to 220/s over one second are 120 messages, the other 180 take 0.8 s."""
    concurrent_capture(tmp_path / "a.pcap")
    ramp = ("--rate", "20..220/1s")
    text = "pace: 20/s to 220/s over 1 s, then constant"
    assert text in rmqtool("replay", tmp_path / "a.pcap", "--dry-run", *ramp).err
    arguments = ("--target", "sandbox", "-o", tmp_path / "run", *ramp)
    begun = monotonic()
    ended = rmqtool("replay", tmp_path / "a.pcap", *arguments)
    assert ended.status == 0, ended.err
    assert monotonic() - begun >= 1.8
    assert text in " ".join(ended.out.split())
    rows = [row for row in read_steps(tmp_path / "run") if isinstance(row, OutcomeEntry)]
    assert len(rows) == SENDS
    assert request_of(ReplayArguments(resume=str(tmp_path / "run"))).given.rate == ramp[1]

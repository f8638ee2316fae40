"""`rmqtool replay`: sends wait for one another only as the capture shows it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from dissectors.times import moment_of
from replay.run.journal import read_steps
from replay.run.journal_rows import OutcomeEntry
from replay.sandbox import Injection, InjectionKind, SandboxOptions, TopicSpec, sandbox_thread
from replay.sandbox.injection.injection import latency_of
from rmqtool.replay.options import ReplayRequest
from rmqtool.replay.prepared import prepared
from rmqtool.ui.declared import read_request
from tests.rmqtool.command import ROOT, rmqtool
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send
from tests.traffic.talk import MILLISECOND, SECOND, START, End, Talk

SENDS, RATE, QUEUES = 300, 150, 4
"""of two brokers each"""
EIGHT = [TopicSpec("Orders", 8)]


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
        assert "started late, after waiting for earlier sends; --order none" in ended.err
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
    assert "failed only in the capture" not in ended.out


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
    resumed = prepared(read_request(ReplayRequest, {"resume": str(tmp_path / "run")}))
    assert resumed.request.given["rate"] == ramp[1]


def fast_capture(path: Path, sends: int) -> int:
    """3,000 asynchronous sends a second over eight queues, responses after 20 ms; return how many
    are in flight at most.
    """
    rate, latency = 3000, 20 * MILLISECOND
    talk = Talk(server=End("10.0.1.1", 10911), step=1000).open()
    said = []
    for n in range(sends):
        at, queue, one = START + SECOND + n * SECOND // rate, str(n % 8), send(n + 1)
        one = replace(one, ext={**one.ext, "e": queue})
        stored = one.answer(ext={"queueId": queue, "queueOffset": str(n)})
        said += [(at, 0, one.frame), (at + latency, 1, stored.frame)]
    for at, side, data in sorted(said):
        talk.now = max(at, talk.now)
        talk.say(side, data)
    path.write_bytes(pcap_of(talk.segments, "raw", nano=True))
    return most_in_flight([(at, at + latency) for at, side, _ in said if not side])


def most_in_flight(times: list[tuple[int, int]]) -> int:
    """Return how many of some spans of time overlap at most; one that ends lets the next begin."""
    changes = sorted([(begin, 1) for begin, _ in times] + [(end, -1) for _, end in times])
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def test_as_many_sends_are_in_flight_as_the_capture_shows(tmp_path: Path) -> None:
    """Where the target answers late enough, a busy machine cannot make them fewer."""
    sends = 240
    captured = fast_capture(tmp_path / "a.pcap", sends)
    assert captured == 60  # 3,000 a second for 20 ms
    slow = Injection(InjectionKind.LATENCY, latency=latency_of("1s"))
    with sandbox_thread(SandboxOptions(topics=EIGHT, injections=[slow])) as box:
        arguments = ("-n", box.namesrv, "-o", tmp_path / "run", "--in-flight", str(captured))
        # A busy machine must not make a second attempt of a send.
        ended = rmqtool("replay", tmp_path / "a.pcap", *arguments, "--timeout", "30s")
    assert ended.status == 0, ended.err
    assert f"{sends} messages in {sends} sends; 0 failed" in ended.out
    assert "left late because" not in ended.err  # no send waited for another one
    assert most_in_flight(_times(tmp_path / "run")) == captured


def test_captured_concurrency_leaves_at_the_captured_rate(tmp_path: Path) -> None:
    """Slowed down to what any machine can send; in turn by queue it would be 8 in 20 ms."""
    fast_capture(tmp_path / "a.pcap", 600)
    slow = Injection(InjectionKind.LATENCY, latency=latency_of("200ms"))
    with sandbox_thread(SandboxOptions(topics=EIGHT, injections=[slow])) as box:
        arguments = ("-n", box.namesrv, "-o", tmp_path / "run", "--speed", "0.1x")
        ended = rmqtool("replay", tmp_path / "a.pcap", *arguments, "--timeout", "30s")
    assert ended.status == 0, ended.err
    times = _times(tmp_path / "run")
    seconds = (max(times)[0] - min(times)[0]) / SECOND
    assert 600 / seconds > 150  # of 300; eight queues in turn let 40 a second leave
    assert most_in_flight(times) > 3 * 8


def _times(journal: Path) -> list[tuple[int, int]]:
    """When each attempt began and ended."""
    rows = map(json.loads, (journal / "attempts.jsonl").read_text().splitlines())
    return [(_ns(row["request_time"]), _ns(row["response_time"])) for row in rows]


def _ns(text: str) -> int:
    moment = moment_of(text)
    assert moment is not None
    return moment.ns

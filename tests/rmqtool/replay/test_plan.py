"""`rmqtool replay --dry-run`, and what is refused before anything is opened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replay.run.journal_rows import STEPS
from rmqtool.replay.options import PLAN_FIELDS, ReplayRequest
from rmqtool.replay.prepared import PreparedReplay, prepared
from rmqtool.ui.declared import read_request
from rmqtool.ui.status import CommandError, ExitStatus
from tests.rmqtool.command import EVIL, ROOT, capture_in, rmqtool

SAMPLES = ROOT / "samples"


def dry_run(sample: str, *arguments: str) -> list[dict[str, object]]:
    done = rmqtool("replay", SAMPLES / sample, "--dry-run", "--format", "jsonl", *arguments)
    assert done.status == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def test_the_plan_has_steps_and_reasons_in_the_order_of_the_capture() -> None:
    rows = dry_run("fault-disk-full-plain-5x.pcap")
    steps = [row for row in rows if row["kind"] == "step"]
    skipped = [row for row in rows if row["kind"] == "skipped"]
    assert [row["step"] for row in steps] == list(range(77))
    assert {row["why"] for row in skipped} == {"ANOTHER_ATTEMPT"}
    packets = [int(str(row["packet"])) for row in rows]
    assert packets == sorted(packets)
    assert sum(int(str(row["captured_attempts"])) for row in steps) == len(rows)


def test_the_summary_counts_what_is_left_out() -> None:
    done = rmqtool("replay", SAMPLES / "send-sync-5x.pcap", "--dry-run")
    assert done.status == 0
    assert len(done.out.splitlines()) == 1 + 8
    assert "8 messages in 8 sends would be replayed" in done.err
    assert "GET_ROUTEINFO_BY_TOPIC 2" in done.err


def test_options_choose() -> None:
    assert len(dry_run("send-sync-5x.pcap", "--limit", "3")) == 3
    assert len(dry_run("send-batch-5x.pcap", "--batches", "split")) == 12
    batches = dry_run("send-batch-5x.pcap", "--limit", "11")
    assert [row["messages"] for row in batches] == [4, 4]  # a third would exceed the limit
    assert len(dry_run("send-batch-5x.pcap", "--batches", "split", "--limit", "11")) == 11
    rows = dry_run("send-sync-5x.pcap", "--where", "tags == TagB or queue_id == 1")
    chosen = [row for row in rows if row["kind"] == "step"]
    assert 0 < len(chosen) < 8
    assert {row["why"] for row in rows if row["kind"] == "skipped"} == {"NOT_WANTED"}
    first = dry_run("send-sync-5x.pcap")[0]["time"]
    at = str(first)[11:19]
    assert [row["kind"] for row in dry_run("send-sync-5x.pcap", "--until", at)] == ["skipped"] * 8
    assert [row["kind"] for row in dry_run("send-sync-5x.pcap", "--since", at)] == ["step"] * 8
    twice = dry_run("send-sync-5x.pcap", "--loop", "2", "--rate", "100/s")
    assert [row["due_us"] for row in twice] == [n * 10_000 for n in range(16)]


def test_what_a_capture_holds_cannot_steer_the_terminal(tmp_path: Path) -> None:
    done = rmqtool("replay", capture_in(tmp_path), "--dry-run", "--no-mark")
    assert done.status == 0
    assert "\x1b" not in done.out + done.err
    assert "\u202e" not in done.out
    assert EVIL not in done.out


def test_an_address_that_comes_last_in_the_capture_is_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "run"
    capture = capture_in(tmp_path)
    done = rmqtool("replay", capture, "-n", "10.0.0.9:9876", "--yes", "-o", journal)
    assert done.status == 1
    assert "10.0.0.9:9876 is an address of the capture" in done.err
    steps = journal / STEPS
    assert not steps.exists() or steps.read_bytes() == b""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--mode", "fast"], "as-captured, sync, async, oneway, raw"),
        (["--speed", "2x", "--rate", "5/s"], "cannot be combined"),
        (["--speed", "quick"], "is not a valid speed"),
        (["--rate", "0"], "is not a valid rate"),
        (["--max-gap", "long"], "not a valid duration"),
        (["--sample", "0%"], "is not a valid share"),
        (["--sample", "200%"], "is not a valid share"),
        (["--sample-by", "colour"], "must be one of key"),
        (["--include", "all"], "must be one of retry"),
        (["--queues", "any"], "must be one of keep"),
        (["--fail-on", "errors"], "is not a valid condition"),
        (["--where", "topic ="], "--where"),
        (["--codes", "310"], "is for --mode raw"),
        (["--mode", "raw", "--codes", "SEND"], "is not a request code"),
        (["--mode", "raw", "--sample", "50%"], "--mode raw replays complete requests"),
        (["--mode", "raw", "--rewrite", "nowhere.toml"], "--mode raw replays complete requests"),
        (["--mode", "raw", "--group", "g"], "--mode raw replays complete requests"),
        *(
            (["--mode", "raw", *option.split()], f"{option.split()[0]}: is for messages")
            for option in (
                *("--ids new", "--batches split", "--requests request", "--queues strict"),
                *("--queues new", "--mark", "--retries 2"),
            )
        ),
        (["--sample-by", "topic"], "--sample-by: needs --sample"),
        (["--max-gap", "5s", "--rate", "5/s"], "--max-gap and --rate: cannot be combined"),
        (["--max-gap", "5s", "--top-speed"], "--max-gap and --top-speed: cannot be combined"),
        (["--duration", "5s", "--top-speed"], "--duration and --top-speed: cannot be combined"),
        (["--jobs", "4", "--in-flight", "3"], "--in-flight: must be 4 or more"),
        (["--target", "moon"], "unknown target 'moon'"),
        (["--target", "sandbox", "-n", "127.0.0.1:1"], "cannot be combined"),
        (["--target", "sandbox", "--tls", "system"], "--tls: the sandbox has no TLS"),
        (["--faults", "nowhere.toml"], "--faults: needs --target sandbox"),
        (["--rewrite", "nowhere.toml"], "No such file"),
        (["--rewrite", "nowhere.py:f"], "no Python file"),
        (["--format", "xml"], "'xml' is not one of 'table', 'json'"),
        (["--since", "noon"], "not a valid time"),
        (["--decode-as", "x"], "is not a TCP port"),
    ],
)
def test_a_wrong_option_is_said_with_the_way_out(arguments: list[str], says: str) -> None:
    done = rmqtool("replay", SAMPLES / "send-sync-5x.pcap", "--dry-run", *arguments)
    assert done.status == ExitStatus.USAGE, done.err
    assert says in done.err
    assert "Traceback" not in done.err


def test_the_raw_mode_has_one_broker_as_its_target() -> None:
    raw = ("replay", SAMPLES / "send-sync-5x.pcap", "--mode", "raw")
    for arguments, says in (
        (("-n", "127.0.0.1:1;127.0.0.1:2"), "--namesrv: name one broker"),
        ((), "name the broker with -n HOST:PORT"),
    ):
        done = rmqtool(*raw, *arguments, NAMESRV_ADDR="127.0.0.1:1")
        assert done.status == ExitStatus.USAGE, done.err
        assert says in done.err


def test_the_raw_mode_takes_options_that_ask_for_what_it_does() -> None:
    same = "--ids keep --batches keep --requests send --queues keep --no-mark --retries 0"
    assert len(dry_run("send-sync-5x.pcap", "--mode", "raw", *same.split())) == 8


def test_wrong_sources_are_said(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("{}\n")
    for source, says in (
        (tmp_path / "nowhere.pcap", "no such file"),
        (log, "not a command row"),
        (ROOT / "README.md", "not a pcap"),
    ):
        done = rmqtool("replay", source, "--dry-run")
        assert done.status == 1
        assert says in done.err
        assert "should not have happened" not in done.err


def test_without_a_source_the_way_out_is_said() -> None:
    done = rmqtool("replay")
    assert done.status == ExitStatus.USAGE
    assert "name a capture" in done.err


def _prepared(**given: object) -> PreparedReplay:
    return prepared(read_request(ReplayRequest, given))


def test_all_that_makes_the_plan_is_kept_for_the_next_run() -> None:
    stored = _prepared(
        sources=["a.pcap"], limit=3, include=["dlq"], mark=False, sample="10%"
    ).stored_options()
    assert set(PLAN_FIELDS) <= set(stored)
    assert (stored["limit"], stored["include"], stored["mark"]) == (3, ["dlq"], False)
    json.dumps(stored)


def test_a_run_that_is_resumed_has_the_same_plan(tmp_path: Path) -> None:
    journal = tmp_path / "run"
    sample = SAMPLES / "send-sync-5x.pcap"
    done = rmqtool("replay", sample, "--target", "sandbox", "-q", "-o", journal, "--limit", "3")
    assert done.status == 0, done.err
    again = _prepared(resume=str(journal))
    assert (again.sources, again.request.limit) == ([str(sample)], 3)
    with pytest.raises(CommandError, match="for another value, start a new run"):
        _prepared(resume=str(journal), limit=4)
    with pytest.raises(CommandError, match="replays only"):
        _prepared(resume=str(journal), sources=["other.pcap"])

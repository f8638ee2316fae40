"""`rmqtool replay` against the sandbox: what arrives, what is said, what may not be reached."""

from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.captures.generate import write_capture
from dissectors.decode.pipeline import Decode
from dissectors.endpoint import endpoint_of_socket
from dissectors.remoting.messages.message import StoredMessage
from dissectors.remoting.messages.records import decode_messages
from replay.run.journal import read_run, read_skipped, read_steps
from replay.run.journal_rows import Begin, OutcomeEntry, Result
from replay.sandbox import Injection, InjectionKind, SandboxOptions, SandboxThread, sandbox_thread
from replay.sandbox.broker import Broker
from replay.sandbox.injection.injection import latency_of
from replay.wire_capture import WireCapture
from tests.patience import Stopwatch, wait_for
from tests.replay.captured_sends import SentMessage, captured_sends
from tests.rmqtool.command import PROGRAM, ROOT, rmqtool
from tests.rmqtool.command import Result as Ended

SAMPLES = ROOT / "samples"
SENDS = sorted(path.stem for path in SAMPLES.glob("send-*.pcap"))


@pytest.fixture
def box() -> Iterator[SandboxThread]:
    with sandbox_thread(SandboxOptions(brokers=2)) as started:
        yield started


def _replay(sample: str | Path, *arguments: str | Path) -> Ended:
    path = SAMPLES / f"{sample}.pcap" if isinstance(sample, str) else sample
    return rmqtool("replay", path, *arguments)


def _outcomes(journal: Path) -> list[OutcomeEntry]:
    return [row for row in read_steps(journal) if isinstance(row, OutcomeEntry)]


def _captured(sample: str | Path) -> dict[str, SentMessage]:
    return captured_sends(SAMPLES / f"{sample}.pcap" if isinstance(sample, str) else sample)


def _stored(box: SandboxThread) -> list[StoredMessage]:
    """Every message that the brokers hold, in the order of each broker's log."""
    return box.call(lambda sandbox: [one for b in sandbox.brokers.values() for one in _log_of(b)])


def _log_of(broker: Broker) -> Iterator[StoredMessage]:
    store = broker.state.store
    offset = store.begin_offset
    while (record := store.at(offset)) is not None:
        yield from decode_messages(record.data).messages
        offset += len(record.data)


def _body_of(message: StoredMessage) -> bytes:
    return message.decompressed().data


def _messages_sent(box: SandboxThread) -> dict[str, list[StoredMessage]]:
    """UNIQ_KEY → the messages that a consumer would be given, or will be when their time comes."""
    found = defaultdict(list)
    for one in _stored(box):
        if one.topic not in ("RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"):
            found[one.properties["UNIQ_KEY"]].append(one)
    return found


SET_ANEW = {"TIMER_DELIVER_MS", "TRAN_MSG", "PGROUP", "WAIT"}
"""properties that are not stored as captured: a time, and what is said to the broker only"""


@pytest.mark.parametrize(
    ("sample", "mode"),
    [
        *((sample, "as-captured") for sample in SENDS),
        *((sample, mode) for sample in SENDS[::5] for mode in ("sync", "async")),
    ],
)
def test_what_arrives_is_what_was_captured(
    box: SandboxThread, tmp_path: Path, sample: str, mode: str
) -> None:
    journal = tmp_path / "run"
    arguments = ("-n", box.namesrv, "--top-speed", "-o", journal, "--mode", mode)
    ended = _replay(sample, *arguments, "--include", "retry")
    assert ended.status == 0, ended
    captured = _captured(sample)
    # one-way sends are written, not answered: the broker may not have read them yet
    wait_for("all arrived", lambda: _messages_sent(box).keys() == captured.keys())
    stored = _messages_sent(box)
    for key, (body, properties, topic, _) in captured.items():
        (one,) = stored[key]
        assert _body_of(one) == body
        assert one.properties.get("REAL_TOPIC", one.topic) == topic
        kept = {name: text for name, text in properties.items() if name not in SET_ANEW}
        assert kept.items() <= one.properties.items()
        assert one.properties["RMQTOOL_REPLAY"] == read_run(journal).run


def test_messages_of_a_queue_stay_in_order(box: SandboxThread, tmp_path: Path) -> None:
    ended = _replay("send-ordered-5x", "-n", box.namesrv, "--top-speed", "-o", tmp_path / "run")
    assert ended.status == 0
    places = {
        row.captured_key: (row.captured_broker, row.queue_id) for row in _outcomes(tmp_path / "run")
    }
    wanted, got = defaultdict(list), defaultdict(list)
    for key in _captured("send-ordered-5x"):
        wanted[places[key]].append(key)
    for one in _stored(box):
        got[places[one.properties["UNIQ_KEY"]]].append(one.properties["UNIQ_KEY"])
    assert got == wanted
    assert len(wanted) > 1


def test_transactions_end_as_captured(box: SandboxThread, tmp_path: Path) -> None:
    ended = _replay("transaction-5x", "-n", box.namesrv, "--top-speed", "-o", tmp_path / "run")
    assert ended.status == 0
    states = {row.captured_key: row.state for row in _outcomes(tmp_path / "run")}
    assert Counter(states.values()) == {"commit": 2, "rollback": 1, "unknown": 1} or states
    committed = {key for key, state in states.items() if state == "commit"}
    # how a transaction ends is told one-way
    wait_for("it ended", lambda: set(_messages_sent(box)) == committed)


def test_the_journal_is_a_decoded_log(box: SandboxThread, tmp_path: Path) -> None:
    journal = tmp_path / "run"
    _replay("send-sync-5x", "-n", box.namesrv, "--top-speed", "-o", journal)
    rows = [json.loads(line) for line in (journal / "attempts.jsonl").read_text().splitlines()]
    assert [row["request_name"] for row in rows] == ["SEND_MESSAGE_V2"] * 8
    assert {row["status"] for row in rows} == {"answered"}
    assert {row["unique_key"] for row in rows} == _captured("send-sync-5x").keys()
    assert {row["server_address"] for row in rows} <= set(box.addresses.values())


def test_the_captured_pace_is_kept(box: SandboxThread, tmp_path: Path) -> None:
    watch = Stopwatch()
    arguments = ("-n", box.namesrv, "-o", tmp_path / "run", "--rate", "20/s")
    assert _replay("send-sync-5x", *arguments).status == 0
    assert watch.seconds >= 0.35
    assert watch.own < 3
    times = [row["request_time"] for row in _rows(tmp_path / "run" / "attempts.jsonl")]
    assert times == sorted(times)


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_a_killed_run_is_resumed_and_what_may_be_twice_is_named(tmp_path: Path) -> None:
    capture = tmp_path / "many.pcap"
    write_capture(capture, 3000, 3, "json")
    journal = tmp_path / "run"
    slow = Injection(InjectionKind.LATENCY, latency=latency_of("2ms"))
    with sandbox_thread(SandboxOptions(brokers=2, injections=[slow])) as box:
        command = [*PROGRAM, "replay", str(capture), "-n", box.namesrv, "-o", str(journal)]
        command += ["--top-speed", "--in-flight", "16", "-q"]
        running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        wait_for(
            "sends", lambda: (journal / "steps.jsonl").exists() and len(_outcomes(journal)) > 50
        )
        running.send_signal(signal.SIGKILL)
        running.wait()
        before = list(read_steps(journal))
        done = {row.step for row in before if isinstance(row, OutcomeEntry)}
        unknown = {row.step for row in before if isinstance(row, Begin)} - done
        assert len(done) < len(_captured(capture))
        box.clear_injections()
        ended = rmqtool("replay", "--resume", journal, "-n", box.namesrv, "--top-speed")
        assert ended.status == 0, ended
        stored = _messages_sent(box)
    outcomes = [row for row in read_steps(journal) if isinstance(row, OutcomeEntry)]
    assert Counter(row.step for row in outcomes).most_common(1)[0][1] == 1
    assert stored.keys() == _captured(capture).keys()
    twice = {key for key, copies in stored.items() if len(copies) > 1}
    named = {key for row in outcomes if row.maybe_twice for key in row.unique_keys}
    assert {row.step for row in outcomes if row.maybe_twice} == unknown
    assert twice <= named


@pytest.mark.parametrize("pace", ["--top-speed", "--rate=100/s"])
def test_a_name_server_that_cannot_be_reached_ends_the_run(tmp_path: Path, pace: str) -> None:
    capture, journal = tmp_path / "many.pcap", tmp_path / "run"
    write_capture(capture, 3000, 3, "json")
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        nobody = endpoint_of_socket(reserved.getsockname())
    watch = Stopwatch()
    ended = _replay(capture, "-n", nobody, "-o", journal, pace, "--in-flight", "8")
    assert watch.own < 10
    assert ended.status == 1
    assert f"no connection to {nobody}" in ended.err
    assert f"--resume {journal}" in ended.err
    assert "Traceback" not in ended.err
    failed = _outcomes(journal)
    assert 1 <= len(failed) <= 8
    assert {row.result for row in failed} == {Result.failed}
    with sandbox_thread(SandboxOptions(brokers=2)) as box:
        again = rmqtool("replay", "--resume", journal, "-n", box.namesrv, "--top-speed")
        assert again.status == 0, again
        stored = _messages_sent(box)
    assert {key: len(copies) for key, copies in stored.items()} == dict.fromkeys(
        _captured(capture), 1
    )
    assert not any(row.maybe_twice for row in _outcomes(journal))


@pytest.mark.slow
def test_a_name_server_that_goes_away_does_not_end_a_run_that_has_sent(tmp_path: Path) -> None:
    journal, rule = tmp_path / "run", tmp_path / "change.py"
    rule.write_text(  # each message needs a route of its own
        "from dataclasses import replace\n"
        "def topic_each(message):\n"
        "    return replace(message, topic='T' + message.unique_key)\n"
    )
    with sandbox_thread(SandboxOptions(brokers=2)) as box:
        command = [*PROGRAM, "replay", str(SAMPLES / "send-sync-5x.pcap"), "-n", box.namesrv]
        command += ["-o", str(journal), "--rate", "4/s", "--rewrite", f"{rule}:topic_each"]
        running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        wait_for(
            "sends", lambda: (journal / "steps.jsonl").exists() and len(_outcomes(journal)) >= 2
        )
    assert running.wait(60) == 0
    reasons = [row.reason for row in _outcomes(journal) if row.result is Result.failed]
    assert any("connection" in str(reason) for reason in reasons)
    assert {key for row in _outcomes(journal) for key in row.unique_keys} == _captured(
        "send-sync-5x"
    ).keys()


@pytest.mark.slow
def test_ctrl_c_leaves_a_journal_that_goes_on(box: SandboxThread, tmp_path: Path) -> None:
    journal = tmp_path / "run"
    command = [*PROGRAM, "replay", str(SAMPLES / "send-sync-5x.pcap"), "-n", box.namesrv]
    command += ["-o", str(journal), "--rate", "4/s"]
    running = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for("sends", lambda: (journal / "steps.jsonl").exists() and len(_outcomes(journal)) >= 2)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in err
    assert "--resume" in err
    assert "SUCCESS" in out
    ended = rmqtool("replay", "--resume", journal, "-n", box.namesrv, "--top-speed")
    assert ended.status == 0, ended
    assert {key: len(copies) for key, copies in _messages_sent(box).items()} == dict.fromkeys(
        _captured("send-sync-5x"), 1
    )


def test_a_captured_address_is_never_a_target(tmp_path: Path) -> None:
    with sandbox_thread(SandboxOptions()) as box:
        capture = tmp_path / "own.pcapng"
        arguments = ("-t", "Orders", "--body", "x", "--capture", capture)
        assert rmqtool("send", "-n", box.namesrv, *arguments).status == 0
        stored = len(_stored(box))
        ended = rmqtool("replay", capture, "-n", box.namesrv, "-o", tmp_path / "run")
        assert ended.status == 1
        assert "an address of the capture" in ended.err
        assert len(_stored(box)) == stored


def test_a_target_that_is_not_loopback_needs_consent(tmp_path: Path) -> None:
    ended = _replay("send-sync-5x", "-n", "192.0.2.1:9876", "-o", tmp_path / "run")
    assert ended.status == 2
    assert "--yes" in ended.err
    assert not (tmp_path / "run").exists()


def test_without_a_target_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    monkeypatch.chdir(tmp_path)
    ended = _replay("send-sync-5x")
    assert ended.status == 2
    assert "--target sandbox" in ended.err
    assert not list(tmp_path.iterdir())


def test_a_request_without_a_reply_may_be_stored(box: SandboxThread, tmp_path: Path) -> None:
    journal = tmp_path / "run"
    arguments = ("--requests", "request", "--timeout", "300ms", "--top-speed")
    ended = _replay("request-reply-5x", *arguments, "-n", box.namesrv, "-o", journal)
    assert len([one for one in _stored(box) if one.topic == "RequestTopic"]) == 3
    assert {(row.result, row.code) for row in _outcomes(journal)} == {(Result.unknown, None)}
    assert "not sent" not in ended.out
    again = rmqtool("replay", "--resume", journal, *arguments[2:], "-n", box.namesrv)
    assert "3 may be stored twice" in again.out


def test_a_fault_of_a_broker_that_the_sandbox_does_not_have_is_refused(tmp_path: Path) -> None:
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\nkind = "busy"\nbroker = "broker-c"\n')
    sample = ROOT / "samples" / "send-sync-5x.pcap"
    run = tmp_path / "run"
    ended = rmqtool("replay", sample, "--target", "sandbox", "--faults", faults, "-o", run)
    assert ended.status == 2
    assert "--faults: fault busy broker=broker-c: no broker has such a name" in ended.err
    assert not run.exists()


def test_faults_of_the_sandbox_fail_a_regression_test(tmp_path: Path) -> None:
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\nkind = "error"\ncode = 13\nremark = "no"\n')
    arguments = ("--target", "sandbox", "--faults", faults, "-o", tmp_path / "run", "--top-speed")
    ended = _replay("send-sync-5x", *arguments, "--fail-on", "new-failures")
    assert ended.status == 4
    assert "failed only in the replay" in ended.out
    assert {row.result for row in _outcomes(tmp_path / "run")} == {Result.failed}
    as_json = rmqtool(
        *("replay", "--resume", tmp_path / "run", "--target", "sandbox"),
        *("--top-speed", "--format", "jsonl", "--fail-on", "new-failures"),
    )
    assert as_json.status == 0, as_json
    found = json.loads(as_json.out)
    assert (found["steps"], found["new_failures"]) == (8, 0)


@pytest.mark.parametrize("sample", ["send-batch-4x", "send-binary-header-5x", "acl-5x"])
def test_whole_requests_go_to_one_broker_as_they_are(
    box: SandboxThread, tmp_path: Path, sample: str
) -> None:
    broker = box.addresses["broker-b"]
    capture = tmp_path / "raw.pcapng"
    with _recorded(broker, capture) as address:
        arguments = ("--mode", "raw", "-n", address, "--top-speed", "-o", tmp_path / "run")
        ended = _replay(sample, *arguments)
    assert ended.status == 0, ended
    wanted, got = _requests(SAMPLES / f"{sample}.pcap"), _requests(capture)
    assert got == wanted
    assert wanted


def _requests(path: Path) -> list[tuple[object, ...]]:
    """The send requests of a capture, without what the raw mode has anew."""
    found = []
    for batch in Decode([str(path)]).exchanges():
        for exchange in batch:
            pdu = exchange.request
            if pdu is None or pdu.command.code not in (10, 310, 320):
                continue
            one, anew = pdu.command, {"AccessKey", "Signature", "SecurityToken", "e", "queueId"}
            fields = {name: text for name, text in one.ext_fields.items() if name not in anew}
            kind = (one.code, one.language, one.version, one.serialize_type, one.flag)
            found.append((*kind, sorted(fields.items()), pdu.body))
    return sorted(found, key=repr)


@contextmanager
def _recorded(address: str, capture: Path) -> Iterator[str]:
    """A relay to `address` that writes what passes; gives its own address."""
    host, port = address.rsplit(":", 1)
    wire = WireCapture(str(capture))
    server = socket.create_server(("127.0.0.1", 0))

    def relay() -> None:
        inner, peer = server.accept()
        outer = socket.create_connection((host, int(port)))
        here = endpoint_of_socket(inner.getsockname())
        tap = wire.opened(time.time_ns(), endpoint_of_socket(peer), here)
        while True:
            ready, _, _ = select.select([inner, outer], [], [])
            data = ready[0].recv(1 << 16)
            if not data:
                break
            if ready[0] is inner:
                tap.sent(time.time_ns(), data)
                outer.sendall(data)
            else:
                tap.received(time.time_ns(), data)
                inner.sendall(data)
        inner.close()
        outer.close()

    thread = threading.Thread(target=relay)
    thread.start()
    try:
        yield endpoint_of_socket(server.getsockname())
    finally:
        thread.join(10)
        server.close()
        wire.close()


def test_nothing_that_is_no_send_is_sent(box: SandboxThread, tmp_path: Path) -> None:
    for name in ("foreign-5x", "one-direction-5x", "midstream-5x", "cut-short-5x", "admin-5x"):
        ended = _replay(name, "-n", box.namesrv, "--top-speed", "-o", tmp_path / name)
        assert ended.status == 0, ended
        assert "Traceback" not in ended.err
    reasons = {row.why for row in read_skipped(tmp_path / "cut-short-5x")}
    assert reasons <= {"CUT", "DAMAGED", "ANOTHER_ATTEMPT", "SYSTEM_TOPIC"}


def test_a_resumed_run_adds_the_skipped_sends_that_are_missing(
    box: SandboxThread, tmp_path: Path
) -> None:
    journal = tmp_path / "run"
    target = ("-n", box.namesrv, "--top-speed")
    assert _replay("acl-5x", *target, "-o", journal).status == 0
    skipped = list(read_skipped(journal))
    assert len(skipped) > 2
    file = journal / "skipped.jsonl"
    whole = file.read_bytes()
    for kept in (whole, b"".join(whole.splitlines(keepends=True)[:2]), whole[:-5]):
        file.write_bytes(kept)
        assert rmqtool("replay", "--resume", journal, *target).status == 0
        assert list(read_skipped(journal)) == skipped


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
def test_two_runs_do_not_share_a_journal(
    box: SandboxThread, tmp_path: Path, jobs: tuple[str, ...]
) -> None:
    journal = tmp_path / "run"
    target = ("-n", box.namesrv, *jobs)
    command = [*PROGRAM, "replay", str(SAMPLES / "send-sync-5x.pcap"), *target, "--rate", "6/min"]
    with subprocess.Popen([*command, "-o", str(journal)], cwd=ROOT) as running:
        try:
            wait_for("a send", lambda: (journal / "steps.jsonl").exists() and _outcomes(journal))
            again = rmqtool("replay", "--resume", journal, *target, "--top-speed")
            assert (again.status, again.out) == (1, "")
            assert again.err == f"rmqtool: {journal} is in use by a run that has not ended\n"
        finally:
            running.send_signal(signal.SIGINT)
    ended = rmqtool("replay", "--resume", journal, *target, "--top-speed")
    assert ended.status == 0, ended
    assert {len(copies) for copies in _messages_sent(box).values()} == {1}


def test_a_journal_is_not_overwritten(box: SandboxThread, tmp_path: Path) -> None:
    arguments = ("-n", box.namesrv, "--top-speed", "-o", tmp_path / "run")
    assert _replay("send-sync-5x", *arguments).status == 0
    again = _replay("send-sync-5x", *arguments)
    assert again.status == 2
    assert "not empty" in again.err
    other = rmqtool("replay", "--resume", tmp_path / "nothing", "-n", box.namesrv)
    assert other.status == 1
    assert "not a journal" in other.err

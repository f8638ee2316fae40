"""`decode live` as a user starts it, on the loopback interface; and tcpdump in front of a pipe."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.dissectors.live.test_interface import needs_filter
from tests.patience import wait_for
from tests.traffic.commands import Command, send, sent

from ..command import PROGRAM, ROOT, process, rmqtool
from ..live_traffic import Wire

EXACT = os.environ.get("RMQTOOL_EXACT_PACE") == "1"
"""`make bench`: nothing else runs here"""
SIZE = 20_000
"""commands a second that must be decoded live without a loss"""


ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "COLUMNS"}


class Live:
    """A running rmqtool whose lines are read as they come."""

    def __init__(self, running: subprocess.Popen[bytes]) -> None:
        self.running = running
        assert running.stdout is not None
        self._stdout = running.stdout
        self._rest = b""

    def line(self, patience: float = 60) -> str:
        """The next line of the output; fails where none comes in time."""
        end = time.monotonic() + patience
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._stdout], [], [], max(end - time.monotonic(), 0))
            assert ready, "no line in time"
            more = os.read(self._stdout.fileno(), 65536)
            assert more, "the output has ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def finish(self, number: int | None = None) -> tuple[int, str, str]:
        """Send a signal or wait; the status, the rest of the output, standard error.

        Without what is said where root opened the interface.
        """
        if number is not None:
            self.running.send_signal(number)
        out, err = self.running.communicate(timeout=60)
        said = err.decode().splitlines(keepends=True)
        if said and said[0].startswith("rmqtool: opened lo as root"):
            del said[0]
        return self.running.returncode, (self._rest + out).decode(), "".join(said)


@contextmanager
def live(*arguments: str | Path) -> Iterator[Live]:
    """A running `decode live` on the loopback interface, already capturing."""
    command = [*PROGRAM, "decode", "live", "-i", "lo", *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stdout=pipe, stderr=pipe) as running:
        one = Live(running)
        try:
            wait_for_capture(running)
            yield one
        finally:
            if running.poll() is None:
                running.kill()


def wait_for_capture(running: subprocess.Popen[bytes]) -> None:
    """Return when the process has the ring of a packet socket in its memory."""
    maps = Path(f"/proc/{running.pid}/maps")
    wait_for("it captures", lambda: running.poll() is not None or "socket:[" in maps.read_text())
    settle(running)


def settle(running: subprocess.Popen[bytes]) -> None:
    """Return when the process has done all that there was, and waits for more."""
    seen: list[tuple[str, str]] = []

    def waits() -> bool:
        if running.poll() is not None:
            return True
        fields = Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()
        seen.append((fields[0], fields[11] + fields[12]))  # its state, its time of a CPU
        last = seen[-4:]
        return len(last) == 4 and len(set(last)) == 1 and last[0][0] == "S"

    wait_for("it waits", waits, pause=0.1)


# -- without rights ------------------------------------------------------------------------------


def test_interfaces_are_listed() -> None:
    result = rmqtool("decode", "live", "-D")
    assert result.status == 0
    assert any(
        line.split()[:4] == ["lo", "up", "loopback", "127.0.0.1"]
        for line in result.out.splitlines()
    )


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (
            (),
            2,
            "rmqtool: no interface given; use -i NAME\n  list interfaces: rmqtool decode live -D\n",
        ),
        (("-i", "nosuch0"), 1, "rmqtool: nosuch0: no such interface\n  available: "),
        (("-i", "lo", "-w", "-"), 2, "rmqtool: -w -: stdout is used for rows\n"),
        (
            ("-i", "lo", "--duration", "soon"),
            2,
            "rmqtool: --duration: not a valid duration: 'soon'",
        ),
        (("-i", "lo", "--duration", "0"), 2, "rmqtool: --duration: not a valid duration: '0'"),
        (("-i", "lo", "--buffer", "much"), 2, "rmqtool: --buffer: not a valid size: 'much'"),
        (
            ("-i", "lo", "--unanswered-after", "0"),
            2,
            "rmqtool: --unanswered-after: not a valid duration: '0'",
        ),
        (
            ("-i", "lo", "--unanswered-after", "9s", "--summary"),
            2,
            "rmqtool: --unanswered-after: works only with exchanges that are shown as they come\n",
        ),
        (
            ("-i", "lo", "--plugin", "no.py", "--summary"),
            2,
            "rmqtool: --plugin: has no effect on these rows",
        ),
        (("-i", "lo", "--max-output", "9"), 2, "rmqtool: --max-output: has no effect"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(
    arguments: tuple[str, ...], status: int, said: str
) -> None:
    result = rmqtool("decode", "live", *arguments)
    assert (result.status, result.out) == (status, "")
    assert result.err.startswith(said)


@pytest.mark.slow
def test_a_missing_right_has_one_message_and_no_traceback() -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    drop = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"]
    command = [*(drop if os.geteuid() == 0 else ()), *PROGRAM, "decode", "live", "-i", "lo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "rmqtool: lo: permission denied: capturing needs root or CAP_NET_RAW\n"
        "  run it as root, or use tcpdump:\n"
        "  sudo tcpdump -i lo -U -w - | rmqtool decode pcap -\n"
    )


# -- with rights ---------------------------------------------------------------------------------


@pytest.mark.slow
@needs_filter
def test_exchanges_are_shown_as_they_happen_and_ctrl_c_completes_them() -> None:
    wire = Wire()
    with live("-f", f"tcp port {wire.port}") as one:
        wire.say(send(1).frame, sent(1).frame)
        assert one.line().split()[:3] == ["PACKET", "TIME", "LATENCY"]
        assert " SEND_MESSAGE_V2  SUCCESS " in one.line()
        wire.say(Command(105, 2, ext={"topic": "Orders"}).frame, Command(17, 2, 1).frame)
        assert " GET_ROUTEINFO_BY_TOPIC " in one.line()
        wire.say(Command(11, 3, ext={"topic": "Orders"}).frame)
        settle(one.running)
        status, out, err = one.finish(signal.SIGINT)
    assert status == 0
    assert [line.split()[4:5] for line in out.splitlines()] == [["unanswered"]]
    assert err == ""
    wire.close()


@pytest.mark.slow
@needs_filter
def test_all_views_and_filters_of_decode_pcap(tmp_path: Path) -> None:
    wire = Wire()
    kept = tmp_path / "kept.pcapng"
    only = ("-f", f"tcp port {wire.port}", "--where", "request_code == 310")
    with live(*only, "--format", "jsonl", "-w", kept, "--limit", "3") as one:
        for opaque in range(5):
            wire.say(Command(34, 100 + opaque, 2, body=b"{}").frame)
            wire.say(send(opaque).frame, sent(opaque, opaque).frame)
        status, out, err = one.finish()
    rows = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert [(row["capture"], row["queue_offset"], row["status"]) for row in rows] == [
        ("lo", offset, "answered") for offset in range(3)
    ]
    wire.close()
    assert f" packets → {kept} (" in err
    offline = process(
        "decode",
        "pcap",
        kept,
        "--format",
        "jsonl",
        "--where",
        "request_code == 310",
        "--limit",
        "3",
    )
    again = [json.loads(line) | {"capture": "lo"} for line in offline.out.splitlines()]
    assert again == rows


@pytest.mark.slow
@needs_filter
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_array_of_rows_is_closed_when_the_capture_ends(number: int, tmp_path: Path) -> None:
    wire = Wire()
    path = tmp_path / "rows.json"
    for target in (("-T", "json"), ("-o", path)):
        with live("-f", f"tcp port {wire.port}", *target) as one:
            for opaque in range(3):
                wire.say(send(opaque).frame, sent(opaque, opaque).frame)
            settle(one.running)
            _, out, err = one.finish(number)
        text = path.read_text() if path in target else out
        found = [row["queue_offset"] for row in json.loads(text)]
        # at once by SIGTERM: on a busy machine not all was read from the ring
        assert found == [0, 1, 2][: None if number == signal.SIGINT else len(found)], err
    wire.close()


def test_files_that_exist_are_replaced_only_where_that_is_asked_for(tmp_path: Path) -> None:
    for option in ("-w", "-o"):
        path = tmp_path / "kept"
        path.write_text("mine")
        for command in (("decode", "live"), ("diagnose",)):
            refused = rmqtool(*command, "-i", "lo", option, path)
            assert refused.status == 2
            assert f"{path} already exists\n  add --force to replace it" in refused.err
            assert path.read_text() == "mine"


@pytest.mark.slow
@needs_filter
@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("-V",), "UNIQ_KEY"),
        (("--commands", "--format", "jsonl"), '"name":"SEND_MESSAGE_V2"'),
        (("-V", "--plugin", "examples/order_bodies.py"), "order: 4711"),
        (("--summary",), "SEND_MESSAGE_V2"),
        (("--summary", "--format", "jsonl"), '"SEND_MESSAGE_V2"'),
    ],
)
def test_views(options: tuple[str, ...], found: str) -> None:
    wire = Wire()
    with live("-f", f"tcp port {wire.port}", *options) as one:
        wire.say(send(1, b"order=4711").frame, sent(1).frame)
        settle(one.running)
        status, out, _ = one.finish(signal.SIGINT)
    assert status == 0
    assert found in out
    wire.close()


@pytest.mark.slow
@needs_filter
def test_a_decoded_log_is_completed_when_the_time_is_over(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from dissectors.decode.decoded_log import read_manifest

    wire = Wire()
    with live(
        "-f",
        f"tcp port {wire.port}",
        "--duration",
        "15s",
        "--format",
        "parquet",
        "-o",
        tmp_path / "log",
    ) as one:
        for opaque in range(10):
            wire.say(send(opaque).frame, sent(opaque).frame)
        wire.close()
        status, _, err = one.finish()
    assert status == 0, err
    assert read_manifest(tmp_path / "log").exchanges == 10


@pytest.mark.slow
@needs_filter
def test_a_capture_without_packets_is_one(tmp_path: Path) -> None:
    kept = tmp_path / "kept.pcapng"
    with live("-f", "host 127.9.9.9", "--duration", "300ms", "-w", kept) as one:
        status, _, err = one.finish()
    assert status == 0, err
    assert f"0 packets → {kept} (" in err
    assert rmqtool("decode", "pcap", kept, "--summary").status == 0


@pytest.mark.slow
@needs_filter
def test_what_was_dropped_is_said(tmp_path: Path) -> None:
    """A reader that is stopped for a while, with the smallest buffer."""
    wire = Wire()
    with live("-f", f"tcp port {wire.port}", "--buffer", "1B", "--quiet") as one:
        one.running.send_signal(signal.SIGSTOP)
        for opaque in range(100):
            wire.say(send(opaque, bytes(20_000)).frame)
        one.running.send_signal(signal.SIGCONT)
        settle(one.running)
        _, _, err = one.finish(signal.SIGINT)
    assert " packets dropped: exchanges are missing; " in err
    dropped = int(err.partition("rmqtool: ")[2].split()[0].replace(",", ""))
    assert 10 < dropped < 200
    wire.close()


@pytest.mark.slow
@needs_filter
def test_a_producer_at_the_sandbox_is_seen() -> None:
    """Every send of `rmqtool send`, with the route query before it, while it happens."""
    from replay.sandbox import SandboxOptions, TopicSpec, sandbox_thread

    with sandbox_thread(SandboxOptions(topics=[TopicSpec("Orders")])) as sandbox:
        ports = {address.rpartition(":")[2] for address in sandbox.addresses.values()}
        ports.add(sandbox.namesrv.rpartition(":")[2])
        which = " or ".join(f"tcp port {port}" for port in ports)
        with live("-f", which, "--format", "jsonl") as one:
            sent_ones = process(
                *("send", "-n", sandbox.namesrv, "-t", "Orders", "--body", "hello", "--count", "5")
            )
            assert sent_ones.status == 0, sent_ones.err
            settle(one.running)
            status, out, _ = one.finish(signal.SIGINT)
    rows = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    sends = [row for row in rows if (row["request_name"] or "").startswith("SEND_")]
    assert [row["topic"] for row in sends] == ["Orders"] * 5
    assert {row["response_name"] for row in sends} == {"SUCCESS"}
    assert "GET_ROUTEINFO_BY_TOPIC" in {row["request_name"] for row in rows}


@pytest.mark.slow
@needs_filter
def test_ctrl_c_while_nobody_reads_the_output_cuts_no_row() -> None:
    wire = Wire()
    with live("-f", f"tcp port {wire.port}", "--format", "jsonl") as one:
        for opaque in range(600):
            wire.say(send(opaque).frame, sent(opaque).frame)
        settle(one.running)
        one.running.send_signal(signal.SIGINT)
        time.sleep(0.5)
        status, out, _ = one.finish()
    rows = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert len(out) > 65_536, "the pipe was not full"
    # The stop may fall between a request and its response: only the last row may lack its answer.
    assert [row["opaque"] for row in rows] == list(range(len(rows)))
    assert all(row["status"] == "answered" for row in rows[:-1])
    wire.close()


@needs_filter
@pytest.mark.slow
def test_twenty_thousand_commands_a_second_without_a_loss(tmp_path: Path) -> None:
    """Measured: 150,000 a second on two cores with nothing else to do."""
    command = [sys.executable, "-m", "tests.rmqtool.live_traffic", str(SIZE), "4"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as traffic:
        assert traffic.stdout is not None
        port = json.loads(traffic.stdout.readline())["port"]
        # On a busy machine the ring must hold what comes while others have the CPU.
        ring = () if EXACT else ("--buffer", "64MiB")
        with live("-f", f"tcp port {port}", "-o", tmp_path / "rows.jsonl", *ring) as one:
            said, _ = traffic.communicate(b"\n")
            settle(one.running)
            status, _, err = one.finish(signal.SIGINT)
    done = json.loads(said)
    assert done["rate"] > SIZE * 0.95 or not EXACT, "this machine is too slow to say so much"
    assert status == 0
    assert "dropped" not in err
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == done["commands"] / 2
    assert {row["status"] for row in rows} == {"answered"}


# -- tcpdump in front ----------------------------------------------------------------------------


@pytest.mark.slow
@needs_filter
@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")
def test_tcpdump_into_decode_pcap_prints_at_once() -> None:
    wire = Wire()
    dump = ["tcpdump", "-i", "lo", "-n", "-Z", "root", "-U", "-w", "-", f"tcp port {wire.port}"]
    decode = [*PROGRAM, "decode", "pcap", "-"]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(dump, stdout=pipe, stderr=pipe) as tcpdump,
        subprocess.Popen(
            decode, cwd=ROOT, env=ENVIRONMENT, stdin=tcpdump.stdout, stdout=pipe, stderr=pipe
        ) as running,
    ):
        try:
            assert tcpdump.stderr is not None
            assert b"listening" in tcpdump.stderr.readline()
            one = Live(running)
            for opaque in range(3):
                time.sleep(0.5)
                wire.say(send(opaque).frame, sent(opaque).frame)
                if opaque == 0:
                    assert one.line().startswith("PACKET")
                assert " SEND_MESSAGE_V2  SUCCESS " in one.line()
            tcpdump.terminate()
            status, out, err = one.finish()
        finally:
            tcpdump.kill()
            running.kill()
    assert (status, out, err) == (0, "", "")
    wire.close()

"""Outputs: a file has its name when it is whole, and an input is never overwritten."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dissectors.owned_folder import MARKER
from rmqtool.ui.output import Output, refuse_inputs
from rmqtool.ui.status import CommandError, ExitStatus
from tests.expected import SAMPLES
from tests.rmqtool.command import PROGRAM, ROOT, rmqtool

KILL = SAMPLES / "fault-kill-5x.pcap"


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "x"
    target.write_text("former")
    output = Output(str(target), force=True)
    output.write(b"new")
    output.flush()
    assert target.read_text() == "former"
    output.finish()
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["x"]


def test_a_discarded_file_leaves_no_trace(tmp_path: Path) -> None:
    output = Output(str(tmp_path / "x"))
    output.write(b"half")
    output.discard()
    assert os.listdir(tmp_path) == []


def test_a_direct_file_can_be_read_meanwhile(tmp_path: Path) -> None:
    output = Output(str(tmp_path / "x"), direct=True)
    output.write(b"a\n")
    output.flush()
    assert (tmp_path / "x").read_bytes() == b"a\n"
    output.finish()


def test_a_device_is_written_directly() -> None:
    output = Output("/dev/null")
    output.write(b"x")
    output.finish()
    assert not [name for name in os.listdir("/dev") if name.startswith(".null")]


def test_a_descriptor_is_not_emptied(tmp_path: Path) -> None:
    """As with `-o /dev/stdout >> FILE`."""
    target = tmp_path / "x"
    target.write_text("former ")
    with target.open("ab") as file:
        output = Output(f"/dev/fd/{file.fileno()}")
        output.write(b"new")
        output.finish()
    assert target.read_text() == "former new"


def test_captures_of_a_folder_and_key_logs_are_inputs(tmp_path: Path) -> None:
    capture, keys = tmp_path / "a.pcap", tmp_path / "keys"
    capture.write_bytes(KILL.read_bytes())
    keys.write_text(f"CLIENT_RANDOM {'0' * 64} {'0' * 96}\n")
    for arguments in (
        ("trace", tmp_path, "key", "-o", capture),
        ("decode", "pcap", capture, "--tls-keylog", keys, "-o", keys),
        ("diagnose", capture, "--tls-keylog", keys, "-o", keys),
        ("trace", capture, "key", "--tls-keylog", keys, "-o", keys),
    ):
        done = rmqtool(*arguments, "--force")
        assert (done.status, "would be overwritten" in done.err) == (2, True), done.err
    assert keys.read_text().startswith("CLIENT_RANDOM")


def test_the_suffix_of_parquet_may_be_in_capitals(tmp_path: Path) -> None:
    target = tmp_path / "X.PARQUET"
    assert rmqtool("decode", "pcap", KILL, "-o", target).status == 0
    assert target.read_bytes()[:4] == b"PAR1"


@pytest.mark.parametrize("direct", [True, False])
def test_a_file_that_exists_is_replaced_only_where_that_is_asked_for(
    tmp_path: Path, direct: bool
) -> None:
    target, link = tmp_path / "x", tmp_path / "link"
    target.write_text("former")
    link.symlink_to(target)
    for name in (target, link):
        with pytest.raises(CommandError, match="already exists") as refused:
            Output(str(name), direct)
        assert refused.value.hint == "add --force to replace it"
        assert refused.value.status is ExitStatus.USAGE
    assert target.read_text() == "former"
    assert sorted(os.listdir(tmp_path)) == ["link", "x"]


def test_a_file_that_appears_meanwhile_stays(tmp_path: Path) -> None:
    target = tmp_path / "x"
    output = Output(str(target))
    output.write(b"new")
    target.write_text("of another run")
    with pytest.raises(CommandError, match="already exists"):
        output.finish()
    output.discard()
    assert target.read_text() == "of another run"
    assert os.listdir(tmp_path) == ["x"]


def test_a_pipe_is_written_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    output = Output(str(pipe))
    output.write(b"x")
    output.finish()
    assert os.read(reader, 9) == b"x"
    os.close(reader)
    assert os.listdir(tmp_path) == ["pipe"]


def _change_of(path: str) -> tuple[int, int, int]:
    """Return what a change of a link itself changes; following it changes its access time."""
    found = os.lstat(path)
    return found.st_dev, found.st_ino, found.st_ctime_ns


@pytest.mark.slow
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
def test_what_the_shell_opened_is_written_where_it_is(tmp_path: Path, name: str) -> None:
    target = tmp_path / "x"
    before = _change_of("/dev/stdout")
    with target.open("wb") as file:
        command = [*PROGRAM, "decode", "pcap", str(KILL), "-T", "csv", "-o", name]
        subprocess.run(command, stdout=file, check=True, cwd=ROOT)
    assert target.read_bytes().startswith(b"capture,")
    assert _change_of("/dev/stdout") == before
    assert os.listdir(tmp_path) == ["x"]


def test_a_name_of_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is a folder"):
        Output(f"{tmp_path}/new/")


def test_an_input_is_no_output(tmp_path: Path) -> None:
    capture = tmp_path / "a.pcap"
    capture.write_bytes(b"x")
    link = tmp_path / "link"
    link.symlink_to(capture)
    for target in (capture, link):
        with pytest.raises(CommandError, match="is also an input"):
            refuse_inputs(str(target), [str(capture)])
    refuse_inputs("-", ["-"])
    refuse_inputs(str(tmp_path / "new"), [str(capture), "-"])


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_an_output_keeps_the_mode_of_what_it_replaces(tmp_path: Path, mode: int) -> None:
    target, link = tmp_path / "x", tmp_path / "link"
    target.touch()
    target.chmod(mode)
    link.symlink_to(target)
    for name in (target, link):
        output = Output(str(name), force=True)
        (half,) = (path for path in tmp_path.iterdir() if path.name.endswith(".tmp"))
        assert half.stat().st_mode & 0o777 == mode
        output.finish()
        assert name.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("direct", [True, False])
def test_only_the_user_may_read_what_is_private(tmp_path: Path, direct: bool) -> None:
    output = Output(str(tmp_path / "x"), direct=direct, private=True)
    assert [path.stat().st_mode & 0o777 for path in tmp_path.iterdir()] == [0o600]
    output.finish()
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600


def test_an_input_by_another_name_is_no_output(tmp_path: Path) -> None:
    capture, hard, log = tmp_path / "a.pcap", tmp_path / "hard", tmp_path / "log"
    capture.write_bytes(b"x")
    hard.hardlink_to(capture)
    with pytest.raises(CommandError, match="is also an input"):
        refuse_inputs(str(hard), [str(capture)])
    log.mkdir()
    (log / "part").touch()
    refuse_inputs(str(log / "part"), [str(log)])
    (log / MARKER).touch()
    for name in ("part", "../log/part"):
        with pytest.raises(CommandError, match="is also an input"):
            refuse_inputs(str(log / name), [str(log)])


@pytest.mark.slow
def test_what_is_redirected_is_an_input_too(capture: Path) -> None:
    """`< x` and `>> x` give no name, and the file is the same."""
    before = capture.read_bytes()
    with capture.open("rb") as given:
        command = [*PROGRAM, "decode", "pcap", "-", "-o", str(capture)]
        ended = subprocess.run(command, stdin=given, capture_output=True, check=False, cwd=ROOT)
        assert ended.returncode == ExitStatus.USAGE
        assert b"is also an input" in ended.stderr
    with capture.open("ab") as taken:
        command = [*PROGRAM, "decode", "pcap", str(capture), "-T", "jsonl"]
        ended = subprocess.run(command, stdout=taken, stderr=-1, check=False, cwd=ROOT)
        assert ended.returncode == ExitStatus.USAGE
        assert b"standard output is also an input" in ended.stderr
    assert capture.read_bytes() == before


TEXTS = {
    "table": ("decode", "pcap", KILL),
    "rows": ("decode", "pcap", KILL, "-T", "jsonl"),
    "tree": ("decode", "pcap", KILL, "-V"),
    "diagnosis": ("diagnose", KILL),
    "ladder": ("trace", KILL, "K1", "-T", "ladder"),
    "report": ("report", "errors", KILL, "-T", "json"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_does_not_get_the_name_of_a_page(name: str, tmp_path: Path) -> None:
    """A browser would run the script that a topic or a body is."""
    for suffix in ("html", "HTM"):
        page = tmp_path / f"page.{suffix}"
        refused = rmqtool(*TEXTS[name], "-o", page)
        assert refused.status == 2
        assert "is an HTML file name" in refused.err
        assert not page.exists()


@pytest.mark.parametrize("count", [0, 3, 2500])
def test_pieces_are_written_in_order_behind_what_was_written(tmp_path: Path, count: int) -> None:
    output = Output(str(tmp_path / "out"))
    output.write(b"head\n")
    pieces = [memoryview(b"%d\n" % number) for number in range(count)]
    output.write_pieces(pieces)
    output.write(b"end\n")
    output.finish()
    wanted = b"".join([b"head\n", *pieces, b"end\n"])
    assert (tmp_path / "out").read_bytes() == wanted
    assert output.written == len(wanted)


@pytest.mark.parametrize("arguments", [("help", "sandbox"), ("decode", "pcap", "--help")])
def test_help_needs_no_character_that_the_output_lacks(arguments: tuple[str, ...]) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(
        [*PROGRAM, *arguments], env=environment, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")

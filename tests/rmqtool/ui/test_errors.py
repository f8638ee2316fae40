"""What a user sees when something goes wrong: one message, the way out, a status."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from dissectors.rows.parquet import MissingLibraryError
from dissectors.tcp.source import CaptureError
from rmqtool.ui.errors import guarded, print_note, said
from rmqtool.ui.status import CommandError, ExitStatus, Terminated
from tests.expected import SAMPLES
from tests.rmqtool.command import ROOT, rmqtool


def raising(error: BaseException) -> ExitStatus:
    def command() -> ExitStatus:
        raise error

    return guarded(command)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (CommandError("-x: no", "give y", ExitStatus.USAGE), 2, "rmqtool: -x: no\n  give y\n"),
        (CaptureError("a.pcap", "gone", 7, "look"), 1, "rmqtool: a.pcap, offset 7: gone\n  look\n"),
        (MissingLibraryError("X", "y", "z"), 1, "pip install 'rmqtool[z]'"),
        (FileNotFoundError(2, "No such file", "f\x1b"), 1, "rmqtool: f\\x1b: No such file\n"),
        (OSError("odd"), 1, "rmqtool: odd\n"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (Terminated(), 143, "terminated"),
        (ValueError("a\nb"), 1, "this should not have happened: ValueError: a"),
    ],
)
def test_errors(
    capsys: pytest.CaptureFixture[str], error: BaseException, status: int, message: str
) -> None:
    assert raising(error) == status
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
    assert "\x1b" not in shown


def test_what_goes_well_is_passed_on() -> None:
    assert guarded(lambda: ExitStatus.FINDINGS) is ExitStatus.FINDINGS


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_an_error_on_a_terminal_is_in_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here plain lines, too, where it cannot be drawn; conditions and Ctrl-C never are."""
    for name, value in (("COLUMNS", "80"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    said("a.pcap\x1b: [red]no[/red] :smile:", f"look\n  here: {'x' * 90}", ExitStatus.USAGE)
    first, message, hint, *_, last = screen.getvalue().splitlines()
    assert first.startswith("╭─ Error ─")
    assert message.strip("│ ") == r"a.pcap\x1b: [red]no[/red] :smile:"
    assert hint.strip("│ ") == "look"
    assert last.startswith("╰")
    assert {len(line) for line in screen.getvalue().splitlines()} == {80}
    monkeypatch.setattr("rmqtool.ui.screen.panels.error_lines", None)
    for status in (ExitStatus.DIFFERENCES, ExitStatus.INTERRUPTED, ExitStatus.FAILURE):
        screen.truncate(0)
        screen.seek(0)
        said("it is so", status=status)
        assert screen.getvalue() == "rmqtool: it is so\n"


EVIL = "\x1b[2J\u202e\x9bz"


def test_a_remark_is_printable_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_note(f"36 rows → {EVIL}\n  more")
    assert capsys.readouterr().err == "rmqtool: 36 rows → \\x1b[2J\\u202e\\x9bz\n  more\n"


def test_remarks_have_one_way_to_standard_error() -> None:
    own = {"rmqtool/ui/errors.py", "rmqtool/owners.py"}
    for path in (ROOT / "rmqtool").rglob("*.py"):
        if path.relative_to(ROOT).as_posix() not in own:
            for line in path.read_text().splitlines():
                assert not ('"rmqtool: ' in line and "print(" in line), (path, line)


def test_names_of_files_in_remarks_are_escaped(tmp_path: Path) -> None:
    capture = SAMPLES / "push-orderly-5x.pcap"
    send = ("send", "-n", "127.0.0.1:1", "-t", "T", "--body", "x", "--timeout", "1s")
    ends = ("broker", "--port", "0", "--namesrv-port", "0", "--duration", "100ms")
    for number, (command, option) in enumerate(
        (
            (("decode", "pcap", capture), "-o"),
            (("decode", "pcap", capture, "--messages"), "-o"),
            (("decode", "pcap", capture, "-T", "parquet"), "-o"),
            (("diagnose", capture), "-o"),
            (("trace", capture, "key-1"), "-o"),
            (("wireshark",), "-o"),
            (send, "--log"),
            (send, "-w"),
            (ends, "--store"),
        )
    ):
        done = rmqtool(*command, option, tmp_path / f"{number}{EVIL}")
        assert "should not have happened" not in done.err
        for raw in ("\x1b[2J", "\u202e", "\x9b"):
            assert raw not in done.out + done.err, command

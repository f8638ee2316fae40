"""Commands that are imported late: what a group says of them is what they say of themselves."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from rmqtool.cli import app
from rmqtool.commands import CommandGroup, LazyCommand, in_plain_words
from tests.rmqtool.command import rmqtool

ROOT = get_command(app)
GROUPS = (ROOT, ROOT.commands["decode"])  # type: ignore[attr-defined]
SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "send-sync-5x.pcap"
KEY = "key-1"
"""a message of the sample"""
NAMES = [(group, name) for group in GROUPS for name in group.places]


@pytest.mark.parametrize(("group", "name"), NAMES, ids=[name for _, name in NAMES])
def test_a_summary_is_the_first_paragraph_of_the_help(group: CommandGroup, name: str) -> None:
    whole = group.commands[name]
    first = inspect.cleandoc(whole.help).split("\n\n")[0]
    assert group.places[name].summary == " ".join(first.split())
    assert whole.name == name
    assert len(whole.params) > 1


@pytest.mark.slow
def test_only_what_is_run_is_imported() -> None:
    code = (
        "import sys; sys.argv = ['rmqtool', 'decode', '--help']\n"
        "try:\n import rmqtool.cli; rmqtool.cli.main()\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.endswith('.command')], file=sys.stderr)\n"
    )
    folder = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=folder, check=True)
    assert done.stderr.decode().strip() == "[]"


def test_a_group_gives_what_is_not_imported_to_its_help_alone() -> None:
    group = get_command(app)
    assert isinstance(group, CommandGroup)
    assert isinstance(group.get_command(None, "replay"), LazyCommand)
    assert group.commands.get("replay") is group.commands["replay"]
    assert not isinstance(group.commands["replay"], LazyCommand)
    assert group.commands.get("repla") is None


@pytest.mark.slow
def test_what_help_does_not_draw_is_there_for_others() -> None:
    code = (
        "import sys; sys.argv = ['rmqtool', 'decode', 'pcap', '--help']\n"
        "try:\n import rmqtool.cli; rmqtool.cli.main()\n"
        "except SystemExit: pass\n"
        "print({'markdown_it', 'pygments'} & {one.partition('.')[0] for one in sys.modules},"
        " file=sys.stderr)\n"
        "import rich.markdown, rich.traceback\n"
        "print(rich.markdown.Markdown('a').markup, rich.traceback.install, file=sys.stderr)\n"
    )
    folder = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=folder, check=True)
    said = done.stderr.decode().splitlines()
    assert said[0] == "set()"
    assert said[1].startswith("a <function install")


@pytest.mark.parametrize(("group", "name"), NAMES, ids=[name for _, name in NAMES])
def test_common_options_are_options_of_the_command(group: CommandGroup, name: str) -> None:
    known = {one.name for one in group.commands[name].params}
    assert set(group.places[name].common) - known == set()


@pytest.mark.parametrize(("group", "name"), NAMES, ids=[name for _, name in NAMES])
def test_help_fits(group: CommandGroup, name: str) -> None:
    """Help shows about a dozen options, and its examples fit into 80 columns."""
    command, common = group.commands[name], group.places[name].common
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    assert len([one for one in options if not common or one.name in common]) <= 14
    assert _wide_examples(command) == []


@pytest.mark.parametrize("group", GROUPS, ids=["rmqtool", "decode"])
def test_examples_of_a_group_fit(group: CommandGroup) -> None:
    assert _wide_examples(group) == []


def _wide_examples(command: Any) -> list[str]:
    lines = inspect.cleandoc(command.help).splitlines()
    return [line for line in lines if line.startswith("  ") and len(line) > 78]


@pytest.mark.parametrize("command", [("decode",), ("decode", "pcap"), ("diagnose",), ("report",)])
def test_a_capture_may_follow_r_as_in_tshark(command: tuple[str, ...]) -> None:
    named = rmqtool(*command, SAMPLE, "-q")  # progress depends on how long a run takes
    assert named.status == 0
    assert rmqtool(*command, "-r", SAMPLE, "-q") == named


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("trace", SAMPLE, KEY), ("trace", KEY, "-r", SAMPLE)),
        (("trace", SAMPLE, KEY), ("trace", "-r", SAMPLE, KEY)),
        (("report", "overview", SAMPLE), ("report", "overview", "-r", SAMPLE)),
        (("report", "overview", SAMPLE), ("report", "-r", SAMPLE, "overview")),
    ],
)
def test_r_may_stand_anywhere(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    named = rmqtool(*before)
    assert named.status == 0
    assert rmqtool(*after) == named


def test_a_capture_without_a_command_gets_a_suggestion() -> None:
    for arguments in ((SAMPLE,), ("-r", SAMPLE)):
        assert f"rmqtool decode {SAMPLE}" in " ".join(
            rmqtool(*arguments, COLUMNS="300").err.split()
        )


def test_help_shows_the_common_options_and_help_all_every_one() -> None:
    short, whole = rmqtool("send", "--help").out, rmqtool("send", "--help-all").out
    assert "--timeout" in short
    assert "--tls-cert" not in short
    assert "rmqtool send --help-all" in short
    assert "--tls-cert" in whole
    assert "--help-all" not in whole
    assert "--tls-cert" not in rmqtool("send", "-h").out


@pytest.mark.parametrize(
    ("message", "plain"),
    [
        ("'ten' is not a valid int range.", "'ten' is not a whole number"),
        ("'1\\n2' is not a valid int.", "'1\\n2' is not a whole number"),
        ("'2.5' is not a valid integer.", "'2.5' is not a whole number"),
        ("'x' is not a valid float.", "'x' is not a number"),
        ("'x' is not a valid float range.", "'x' is not a number"),
        ("0 is not in the range x>=1.", "0 is out of range; give 1 or more"),
        ("9.5 is not in the range x<=2.5.", "9.5 is out of range; give 2.5 or less"),
        ("99 is not in the range 1<=x<=64.", "99 is out of range; give 1 to 64"),
        ("'x' is not a valid boolean.", "'x' is not a valid boolean."),
        ("No such option: --x", "No such option: --x"),
    ],
)
def test_errors_about_numbers_name_no_type(message: str, plain: str) -> None:
    assert in_plain_words(message) == plain

"""`rmqtool replay --resume` of a journal that somebody else wrote, or that was damaged."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from replay.run.journal import read_run
from replay.run.journal_rows import ATTEMPTS, RUN, SKIPPED, STEPS
from rmqtool.ui.status import ExitStatus
from tests.rmqtool.command import EVIL, ROOT, rmqtool

SAMPLE = ROOT / "samples" / "send-sync-5x.pcap"
CODE = """
from pathlib import Path
Path({ran!r}).write_text("ran")
def change(message):
    return message
def other(message):
    return None
"""


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """What exists once the code of `change.py` ran."""
    path = tmp_path / "ran"
    (tmp_path / "change.py").write_text(CODE.format(ran=str(path)))
    return path


def _journal(folder: Path, *arguments: str | Path) -> Path:
    journal = folder / "run"
    options = ("--target", "sandbox", "-q", "-o", journal, "--top-speed", "--limit", "3")
    done = rmqtool("replay", SAMPLE, *options, *arguments)
    assert done.status == 0, done.err
    return journal


def _change(journal: Path, **options: object) -> None:
    run = json.loads((journal / RUN).read_text())
    run["options"] |= options
    (journal / RUN).write_text(json.dumps(run))


@pytest.mark.parametrize("send", [["--dry-run"], ["--target", "sandbox"]])
def test_a_journal_that_names_code_does_not_run_it(
    tmp_path: Path, ran: Path, send: list[str]
) -> None:
    journal = _journal(tmp_path)
    _change(journal, rewrite=[f"{tmp_path}/change.py:change"])
    done = rmqtool("replay", "--resume", journal, *send)
    assert done.status == ExitStatus.FAILURE
    assert "never runs from a journal" in done.err
    assert "--rewrite FILE.py:FUNCTION" in done.err
    assert not ran.exists()


def test_the_code_of_a_run_is_named_anew_and_must_be_the_same(tmp_path: Path, ran: Path) -> None:
    function = f"{tmp_path}/change.py:change"
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\ngroup = "others"\n')
    journal = _journal(tmp_path, "--rewrite", function, "--rewrite", rules)
    assert read_run(journal).options["rewrite"] == [str(rules)]
    assert "change.py" not in (journal / RUN).read_text()
    ran.unlink()

    without = rmqtool("replay", "--resume", journal, "--dry-run")
    assert without.status == ExitStatus.USAGE
    assert "1 Python function" in without.err
    again = rmqtool("replay", "--resume", journal, "--dry-run", "--rewrite", function)
    assert again.status == 0, again.err
    ran.unlink()
    other = rmqtool(
        "replay", "--resume", journal, "--dry-run", "--rewrite", function[:-6] + "other"
    )
    assert "have changed since the run began" in other.err
    with (tmp_path / "change.py").open("a") as file:
        file.write("# changed\n")
    changed = rmqtool("replay", "--resume", journal, "--dry-run", "--rewrite", function)
    assert changed.status == ExitStatus.FAILURE
    assert "have changed since the run began" in changed.err
    assert not ran.exists()


def test_code_cannot_be_added_to_a_run_that_has_none(tmp_path: Path, ran: Path) -> None:
    journal = _journal(tmp_path)
    done = rmqtool("replay", "--resume", journal, "--rewrite", f"{tmp_path}/change.py:change")
    assert done.status == ExitStatus.USAGE
    assert "no Python function" in done.err
    assert not ran.exists()


@pytest.mark.parametrize(
    "options",
    [
        {"where": 7},
        {"rewrite": "rules.toml"},
        {"rewrite": [[]]},
        {"loop": "x"},
        {"loop": 0},
        {"limit": -1},
        {"limit": [1]},
        {"include": "dlq"},
        {"mark": "yes"},
        {"mode": None},
        {"mode": EVIL},
        {"where": EVIL},
        {"group": 1},
        {"sample": {"a": EVIL}},
        {"rewrite_digest": 5},
        {"rewrite_functions": "x"},
    ],
)
def test_damaged_options_are_said(tmp_path: Path, options: dict[str, object]) -> None:
    journal = _journal(tmp_path)
    _change(journal, **options)
    done = rmqtool("replay", "--resume", journal, "--dry-run")
    assert done.status in (ExitStatus.FAILURE, ExitStatus.USAGE), done.err
    assert "should not have happened" not in done.err
    assert "\x1b" not in done.err + done.out
    assert "\u202e" not in done.err + done.out


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"options": ' * 50_000, "", "nothing", "\x00", "null"]
)
def test_a_damaged_run_is_said(tmp_path: Path, text: str) -> None:
    journal = _journal(tmp_path)
    (journal / RUN).write_text(text)
    done = rmqtool("replay", "--resume", journal, "--dry-run")
    assert done.status == ExitStatus.FAILURE
    assert "run.json" in done.err
    assert "should not have happened" not in done.err


@pytest.mark.parametrize("name", ["/dev/zero", "-", "/proc/self/fd/0", EVIL, "{folder}/fifo"])
def test_a_capture_that_is_no_file_is_not_read(tmp_path: Path, name: str) -> None:
    journal = _journal(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    run = json.loads((journal / RUN).read_text())
    run["sources"][0]["name"] = name.format(folder=tmp_path)
    (journal / RUN).write_text(json.dumps(run))
    done = rmqtool("replay", "--resume", journal, "--dry-run")
    assert done.status == ExitStatus.FAILURE
    assert "\x1b" not in done.err
    assert "should not have happened" not in done.err


def test_another_capture_is_no_source_of_a_dry_run_either(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    run = json.loads((journal / RUN).read_text())
    run["sources"][0]["name"] = str(SAMPLE.with_name("send-batch-5x.pcap"))
    (journal / RUN).write_text(json.dumps(run))
    done = rmqtool("replay", "--resume", journal, "--dry-run")
    assert done.status == ExitStatus.FAILURE
    assert "have changed since the run began" in done.err


@pytest.mark.parametrize("link", [os.symlink, os.link, None])
@pytest.mark.parametrize("name", [STEPS, ATTEMPTS, SKIPPED])
def test_no_file_but_the_journal_s_own_is_written_to(
    tmp_path: Path, name: str, link: Callable[[Path, Path], None] | None
) -> None:
    journal = _journal(tmp_path)
    other = tmp_path / "other"
    other.write_text("not whole")
    (journal / name).unlink(missing_ok=True)
    if link is None:
        os.mkfifo(journal / name)
    else:
        link(other, journal / name)
    done = rmqtool("replay", "--resume", journal, "--target", "sandbox")
    assert done.status == ExitStatus.FAILURE
    assert "is not a file of its own" in done.err
    assert other.read_text() == "not whole"


def test_texts_of_a_journal_cannot_steer_the_terminal(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    lines = []
    for line in (journal / STEPS).read_text().splitlines():
        row = json.loads(line)
        lines.append(json.dumps({name: _evil(name, value) for name, value in row.items()}))
    (journal / STEPS).write_text("\n".join(lines) + "\n")
    done = rmqtool("replay", "--resume", journal, "--target", "sandbox", "--color", "never")
    assert done.status == 0, done.err
    assert "[red]evil" in done.out
    for mark in ("\x1b", "\x9b", "\u202e"):
        assert mark not in done.out + done.err


def _evil(name: str, value: object) -> object:
    """The value of a row, made as evil as its type allows."""
    if name in ("kind", "step", "mode", "result", "captured_result", "status"):
        return value
    if isinstance(value, str):
        return EVIL
    if isinstance(value, list):
        return [EVIL for _ in value]
    return 10**300 if isinstance(value, int) and not isinstance(value, bool) else value


def test_a_folder_of_captures_is_replayed_and_resumed(tmp_path: Path) -> None:
    day, journal = tmp_path / "day", tmp_path / "run"
    day.mkdir()
    for number in range(2):
        (day / f"{number}.pcap").write_bytes(SAMPLE.read_bytes())
    done = rmqtool("replay", day, "--target", "sandbox", "-q", "-o", journal, "--top-speed")
    assert done.status == 0, done.err
    assert [source.name for source in read_run(journal).sources] == [
        str(day / "0.pcap"),
        str(day / "1.pcap"),
    ]
    again = rmqtool("replay", day, "--resume", journal, "--dry-run")
    assert again.status == 0, again.err


def test_an_option_with_its_default_counts_when_a_run_is_resumed(tmp_path: Path) -> None:
    journal = _journal(tmp_path, "--queues", "new", "--ids", "new")
    for options, says in (
        (("--no-mark",), "--mark: the run used True"),
        (("--limit", "0"), "--limit: the run used 3"),
        (("--ids", "keep"), "--ids: the run used 'new'"),
    ):
        done = rmqtool("replay", "--resume", journal, "--dry-run", *options)
        assert done.status == ExitStatus.USAGE
        assert says in done.err
    resume = ("replay", "--resume", journal, "--dry-run", "--format", "jsonl")
    for options, queues in (((), {None}), (("--queues", "keep"), {"broker-a"})):
        (journal / STEPS).write_bytes(b"")  # all steps are left to send
        done = rmqtool(*resume, *options)
        rows = [json.loads(line) for line in done.out.splitlines()]
        assert {row["broker"] for row in rows if row["kind"] == "step"} == queues


def test_the_plan_of_a_resumed_run_has_what_is_left_to_send(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    steps = [json.loads(line) for line in (journal / STEPS).read_text().splitlines()]
    (journal / STEPS).write_text(
        "".join(json.dumps(row) + "\n" for row in steps if row["step"] != 1)
    )
    done = rmqtool("replay", "--resume", journal, "--dry-run", "--loop", "1", "--format", "jsonl")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["step"] for row in rows if row["kind"] == "step"] == [1]
    shown = rmqtool("replay", "--resume", journal, "--dry-run")
    assert (
        "1 message in 1 send would be replayed, over 0 µs; 2 done by the earlier run" in shown.err
    )
    assert len(shown.out.splitlines()) == 1 + 1

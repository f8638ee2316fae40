"""What producers of this toolkit wrote is judged like a capture of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replay.run import journal_rows
from replay.sandbox import Injection, InjectionKind, SandboxOptions, TopicSpec, sandbox_thread
from rmqtool.diagnose.run import ATTEMPTS
from rmqtool.ui.output import JOURNAL_MARK

from ..command import ROOT, rmqtool

SENDS = ROOT / "samples" / "send-sync-5x.pcap"


def rules_in(path: Path) -> set[str]:
    """The errors that are found in a file or folder."""
    result = rmqtool("diagnose", path, "-T", "jsonl", "-q")
    assert result.status == 0, result.err
    found = [json.loads(line) for line in result.out.splitlines()]
    return {one["rule"] for one in found if one["severity"] == "error"}


@pytest.mark.parametrize("name", ["log.jsonl", "log.parquet"])
def test_a_log_of_send(tmp_path: Path, name: str) -> None:
    full = Injection(InjectionKind.DISK_FULL)
    options = SandboxOptions(topics=[TopicSpec("Orders")], injections=[full])
    with sandbox_thread(options) as box:
        log = tmp_path / name
        arguments = ("-t", "Orders", "--body", "x", "--retries", "0", "--log", log)
        rmqtool("send", "-n", box.namesrv, *arguments)
        assert rules_in(log) == {"disk-full"}


def test_a_journal_of_replay(tmp_path: Path) -> None:
    journal = tmp_path / "run"
    with sandbox_thread(SandboxOptions()) as box:
        rmqtool("replay", SENDS, "-n", box.namesrv, "--top-speed", "-o", journal)
    assert rules_in(journal) == set()
    result = rmqtool("diagnose", journal, "-q")
    assert result.out.startswith("run: no problems found\n20")
    assert "): 8 exchanges, checked against" in result.out


def test_cells_are_refused(tmp_path: Path) -> None:
    cells = tmp_path / "cells"
    assert rmqtool("report", SENDS, "--cells", cells, "-q").status == 0
    result = rmqtool("diagnose", cells)
    assert result.status == 1
    assert result.err.startswith(f"rmqtool: {cells} has cells, not exchanges\n")


def test_who_may_not_import_the_journal_calls_its_files_as_it_does() -> None:
    assert (JOURNAL_MARK, ATTEMPTS) == (journal_rows.RUN, journal_rows.ATTEMPTS)

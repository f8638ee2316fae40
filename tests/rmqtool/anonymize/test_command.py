"""`rmqtool anonymize`: files in, files out, and what is said about them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import BinaryIO

import pytest

from dissectors.anonymize.pseudonyms import Pseudonyms
from dissectors.anonymize.rows import rewrite_rows
from rmqtool.anonymize import run
from tests.expected import SAMPLES
from tests.rmqtool.command import rmqtool

from .tables import tables_of

CAPTURE = SAMPLES / "push-orderly-5x.pcap"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.key"
    path.write_bytes(b"0123456789abcdef")
    return path


def rows(path: Path) -> list[dict[str, object]]:
    decoded = rmqtool("decode", "pcap", path, "-T", "jsonl")
    return [json.loads(line) for line in decoded.out.splitlines()]


@pytest.mark.parametrize("name", ["transaction-5x", "send-auto-batch-5x", "subscription-tags-4x"])
@pytest.mark.parametrize("table", [(), ("--messages",)])
def test_rows_of_each_table_are_those_of_the_capture(
    name: str, table: tuple[str, ...], tmp_path: Path, secret: Path
) -> None:
    capture, shared, lines = SAMPLES / f"{name}.pcap", tmp_path / "shared", tmp_path / "rows.jsonl"
    assert rmqtool("anonymize", capture, "-o", shared, "--secret", secret).status == 0
    lines.write_text(rmqtool("decode", "pcap", capture, "-T", "jsonl", *table).out)
    again = rmqtool("anonymize", lines, "--secret", secret).out.splitlines()
    ours = rmqtool("decode", "pcap", shared, "-T", "jsonl", *table).out.splitlines()
    for one, other in zip(map(json.loads, again), map(json.loads, ours), strict=True):
        for row in (one, other):
            row["capture"] = row["body_crc"] = None  # a row has no body to compute it from
        assert one == other


def test_a_line_may_have_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = tmp_path / "rows.jsonl"
    lines.write_bytes(b'{"topic":"' + b"a" * 100_000)
    monkeypatch.setattr("dissectors.anonymize.rows.LONGEST_LINE", 10_000)
    failed = rmqtool("anonymize", lines, "-o", tmp_path / "out")
    assert failed.status != 0
    assert "a line of more than" in failed.err


def test_a_capture_and_its_rows_get_the_same_pseudonyms(tmp_path: Path, secret: Path) -> None:
    shared, lines = tmp_path / "shared.pcapng", tmp_path / "rows.jsonl"
    done = rmqtool("anonymize", CAPTURE, "-o", shared, "--secret", secret)
    assert done.status == 0
    assert "rewrote 64 commands in 102 packets" in done.err
    assert "0123456789abcdef" not in done.err
    lines.write_text(rmqtool("decode", "pcap", CAPTURE, "-T", "jsonl").out)
    changed = rmqtool("anonymize", lines, "--secret", secret)
    again = [json.loads(line) for line in changed.out.splitlines()]
    ours = rows(shared)
    for row in (*again, *ours):
        row["capture"] = ""
        row["group"] = ",".join(sorted((row["group"] or "").split(",")))
    assert [row["topic"] for row in again] == [row["topic"] for row in ours]
    assert again == ours
    assert "OrderlyTopic" not in changed.out


def test_a_parquet_file(tmp_path: Path, secret: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    stored, shared = tmp_path / "rows.parquet", tmp_path / "shared.parquet"
    assert rmqtool("decode", "pcap", CAPTURE, "-T", "parquet", "-o", stored, "-q").status == 0
    assert rmqtool("anonymize", stored, "-o", shared, "--secret", secret, "-q").status == 0
    before, after = (pyarrow.parquet.read_table(path).to_pylist() for path in (stored, shared))
    assert [row["latency_us"] for row in after] == [row["latency_us"] for row in before]
    assert {row["topic"] for row in after}.isdisjoint({"OrderlyTopic", "%RETRY%orderly_group"})


def test_each_run_without_a_secret_has_its_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert rmqtool("anonymize", CAPTURE, "-o", tmp_path / name, "-q").status == 0
    assert (tmp_path / "one").read_bytes() != (tmp_path / "two").read_bytes()


def test_names_are_kept_if_asked(tmp_path: Path) -> None:
    shared = tmp_path / "shared.pcapng"
    done = rmqtool("anonymize", CAPTURE, "-o", shared, "--keep", "names,addresses")
    assert "kept addresses, names" in done.err
    assert {row["topic"] for row in rows(shared)} == {row["topic"] for row in rows(CAPTURE)}


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("partition", [(), ("--partition", "date")])
def test_a_decoded_log(form: str, partition: tuple[str, ...], tmp_path: Path, secret: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    log, shared, capture = tmp_path / "log", tmp_path / "shared", tmp_path / "shared.pcapng"
    given = ("-T", form, *partition)
    assert rmqtool("decode", "pcap", CAPTURE, "-o", f"{log}/", *given, "-q").status == 0
    done = rmqtool("anonymize", log, "-o", shared, "--secret", secret)
    assert done.status == 0, done.err
    assert rmqtool("anonymize", CAPTURE, "-o", capture, "--secret", secret).status == 0
    ours = tmp_path / "ours"
    assert rmqtool("decode", "pcap", capture, "-o", f"{ours}/", *given, "-q").status == 0
    found = tables_of(shared)
    assert set(found) == {"exchanges", "messages", "conversations", "findings"}
    assert found == tables_of(ours)
    if not partition:
        assert "is a decoded log already" in rmqtool("anonymize", log, "-o", shared).err
    for path in shared.rglob("*"):
        assert not path.is_file() or b"OrderlyTopic" not in path.read_bytes()
    assert CAPTURE.name not in (shared / "manifest.json").read_text()


def test_topics_are_kept_wherever_they_stand(tmp_path: Path, secret: Path) -> None:
    shared = tmp_path / "shared.pcapng"
    done = rmqtool("anonymize", CAPTURE, "-o", shared, "--keep", "topics", "--secret", secret)
    assert "kept topics" in done.err
    before, after = rows(CAPTURE), rows(shared)
    kept = {row["topic"] for row in before if not str(row["topic"]).startswith("%RETRY%")}
    assert {row["topic"] for row in after} >= kept
    assert b"orderly_group" not in shared.read_bytes()
    lines, again = tmp_path / "rows.jsonl", tmp_path / "again.jsonl"
    lines.write_text(rmqtool("decode", "pcap", CAPTURE, "-T", "jsonl").out)
    rmqtool("anonymize", lines, "-o", again, "--keep", "topics", "--secret", secret)
    topics = [json.loads(line)["topic"] for line in again.read_text().splitlines()]
    assert topics == [row["topic"] for row in after]


def test_the_first_pass_keeps_nothing_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs: list[object] = []

    def rewrite(path: Path, out: BinaryIO, names: Pseudonyms) -> None:
        outputs.append(getattr(out, "name", None))
        rewrite_rows(path, out, names)

    monkeypatch.setattr(run, "rewrite_rows", rewrite)
    lines, made = tmp_path / "rows.jsonl", tmp_path / "made.jsonl"
    lines.write_text('{"topic":"Orders"}\n')
    assert rmqtool("anonymize", lines, "-o", made, "--keep", "topics").status == 0
    assert outputs == [os.devnull, str(made)]
    assert made.read_text() == lines.read_text()


def test_errors_name_the_file_and_the_fix(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_bytes(b"x")
    text = tmp_path / "text"
    text.write_text("hello, this is not a capture\n" * 10)
    out = tmp_path / "out"
    for arguments, said in (
        ((CAPTURE, "--secret", short), f"--secret: {short} has 1 bytes, at least 16 are needed"),
        ((CAPTURE, "--keep", "colors"), "unknown kind: 'colors'"),
        ((CAPTURE, "--keep", ","), "--keep: names no kind; the kinds are: "),
        ((tmp_path / "absent",), "no such file"),
        (("/dev/null",), "the file is empty"),
        ((tmp_path,), "is not a decoded log: it has no manifest.json"),
        ((text,), "not a pcap or pcapng file"),
    ):
        failed = rmqtool("anonymize", *arguments, "-o", out)
        assert failed.status != 0
        assert said in failed.err
        assert not out.exists()
    commands = tmp_path / "commands.jsonl"
    commands.write_text(rmqtool("decode", "pcap", CAPTURE, "--commands", "-T", "jsonl").out)
    failed = rmqtool("anonymize", commands, "-o", out)
    assert "line 1 has a command; anonymize its capture instead" in failed.err


def test_rows_refuse_options_of_captures(tmp_path: Path) -> None:
    lines, out = tmp_path / "rows.jsonl", tmp_path / "out"
    lines.write_text(rmqtool("decode", "pcap", CAPTURE, "-T", "jsonl").out)
    log = f"{tmp_path / 'log'}/"
    assert rmqtool("decode", "pcap", CAPTURE, "-T", "jsonl", "-o", log).status == 0
    for source in (lines, log):
        for option in ("--decode-as", "--max-ratio"):
            failed = rmqtool("anonymize", source, "-o", out, option, "9")
            assert failed.status == 2
            assert f"{option}: is for captures, and the input is already decoded" in failed.err
            assert not out.exists()


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("mine")
    assert "already exists" in rmqtool("anonymize", CAPTURE, "-o", out).err
    assert out.read_text() == "mine"


def test_a_filter_of_a_log_has_pseudonyms(tmp_path: Path, secret: Path) -> None:
    log, shared = tmp_path / "log", tmp_path / "shared"
    where = """latency > 5 ms and (topic != "Account" or topic not in (order, 'Own') or bad)"""
    where += " and status == answered and note !~ '^message' and client != 203.0.113.7"
    given = ("-T", "jsonl", "--where", where, "-q")
    assert rmqtool("decode", "pcap", CAPTURE, "-o", f"{log}/", *given).status == 0
    done = rmqtool("anonymize", log, "-o", shared, "--secret", secret)
    assert done.status == 0, done.err
    names = Pseudonyms(secret.read_bytes())
    new = json.loads((shared / "manifest.json").read_text())["options"]["where"]
    for name in ("Account", "order", "Own", "203.0.113.7"):
        where = where.replace(name, names.name(name))
    assert new == where

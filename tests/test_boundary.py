"""Files and texts from others, made to break what reads them: a clear error each, or a value."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

from analytics.diagnosis.context import Context
from analytics.inputs.inputs import InputError, inputs_of
from dissectors.decode.decoded_log import DecodedLogError, read_manifest
from dissectors.owned_folder import MARKER, FolderRefused, check_folder
from replay.message import Message
from replay.plan.rewrite import RewriteError, rules_of
from replay.run.journal import read_run, read_skipped, read_steps
from replay.run.journal_rows import RUN, SKIPPED, STEPS, JournalError
from replay.sandbox import SandboxError, injections_of_file
from tests.expected import SAMPLES
from tests.rmqtool.command import rmqtool

NESTED = b"[" * 100_000
DIGITS = "9" * 5000
NASTY = {
    "nested": b'{"x": ' + NESTED,
    "closed": b'{"x": ' + NESTED + b"]" * 100_000 + b"}",
    "digits": b'{"version": ' + DIGITS.encode() + b"}",
    "no text": b'{"\xff": "\xff"}',
    "surrogate": b'{"format": "\\ud800"}',
    "list": b"[1]",
    "null": b"null",
    "cut": b'{"form',
}
every_nasty = pytest.mark.parametrize("name", NASTY)


@every_nasty
@pytest.mark.parametrize("file", [RUN, STEPS, SKIPPED])
def test_a_journal_of_somebody_else(name: str, file: str, tmp_path: Path) -> None:
    (tmp_path / file).write_bytes(NASTY[name] + b"\n")
    (tmp_path / file).chmod(0o600)
    readers: dict[str, Callable[[Path], object]] = {
        RUN: read_run,
        STEPS: lambda folder: list(read_steps(folder)),
        SKIPPED: lambda folder: list(read_skipped(folder)),
    }
    with pytest.raises(JournalError, match=file):
        readers[file](tmp_path)


@every_nasty
def test_a_decoded_log_of_somebody_else(name: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(NASTY[name])
    with pytest.raises(DecodedLogError):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        *(b"a = " + NESTED, b"seed = " + DIGITS.encode(), b"\xff = 1", b"a = " + b"{b=" * 100_000),
        *(b"[[rule]]\ntopic = " + NESTED, b"[[fault]]\nerror = " + DIGITS.encode()),
    ],
)
def test_a_toml_file_of_somebody_else(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(SandboxError, match=r"a\.toml"):
        injections_of_file(path)
    with pytest.raises(RewriteError, match=r"a\.toml"):
        rules_of(content, str(path))


@every_nasty
def test_a_folder_that_somebody_else_marked(name: str, tmp_path: Path) -> None:
    (tmp_path / MARKER).write_bytes(NASTY[name])
    (tmp_path / "kept.txt").write_text("kept")
    with pytest.raises(FolderRefused):
        check_folder(tmp_path, "decoded log", True)
    assert (tmp_path / "kept.txt").exists()


@pytest.mark.parametrize("name", [name for name, data in NASTY.items() if data[:1] == b"{"])
def test_json_lines_of_somebody_else(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(NASTY[name] + b"\n")
    with pytest.raises(InputError, match=r"log\.jsonl"):
        inputs_of([str(path)])


@pytest.mark.parametrize("port", [DIGITS, "٣", "²", "-1", "", "1_0"])
def test_ports_of_brokers_are_any_text(port: str) -> None:
    context = Context()
    context.names[f"10.0.0.1:{port}"] = "a"
    assert context.names_of_ports() == {f"10.0.0.1:{port}": "a"}
    assert context.own_address(f"10.0.0.2:{port}") == f"10.0.0.2:{port}"


@pytest.mark.parametrize("level", [DIGITS, "٣", "²", "-1", ""])
def test_a_delay_level_is_any_text(level: str) -> None:
    assert Message("T", b"", properties={"DELAY": level}).delay_level == 0


KEY = "C000020A05274E0E2F2A67850EAA0000"
VALUES = (
    *(None, True, -1, 2**63, 2**64, 1e308, "", "x" * 100_000, [], [[[1]]], {"a": 1}, "9" * 5000),
    *("\u00b2", "NaN", "\x1b[2J", 9_999_999_999_999_999, -(2**63)),
)
"""values that a column never has"""


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoded log of a message that came again and died."""
    folder = tmp_path_factory.mktemp("decoded") / "log"
    sample = SAMPLES / "push-retry-dlq-5x.pcap"
    done = rmqtool("decode", "pcap", sample, "-T", "jsonl", "-o", f"{folder}/")
    assert done.status == 0, done.err
    return folder


def _reads(folder: Path, *arguments: str) -> None:
    done = rmqtool(arguments[0], folder, *arguments[1:])
    assert done.status in (0, 1), (arguments, done)
    assert "should not have happened" not in done.err, (arguments, done)
    if "otlp" not in arguments:  # JSON that is no terminal's has what there is
        assert "\x1b" not in done.out + done.err


@pytest.mark.slow
@pytest.mark.parametrize("table", ["messages", "exchanges"])
def test_rows_of_somebody_elses_log(table: str, decoded: Path) -> None:
    (part,) = (decoded / table).glob("*.jsonl")
    whole = part.read_text()
    rows = [json.loads(line) for line in whole.splitlines()]
    values = cycle(VALUES)
    try:
        for column in rows[0]:
            value = next(values)
            lines = (json.dumps({**row, column: value}) for row in rows)
            part.write_text("\n".join(lines) + "\n")
            _reads(decoded, "trace", KEY)
            _reads(decoded, "diagnose")
    finally:
        part.write_text(whole)


@pytest.mark.parametrize("event", ["\x1b[2J", "", "sent later", {"a": 1}])
@pytest.mark.parametrize("form", ["ladder", "jsonl", "otlp", "html"])
def test_an_event_that_is_not_known(event: object, form: str, decoded: Path) -> None:
    """As logs of a later release may have."""
    (part,) = (decoded / "messages").glob("*.jsonl")
    whole = part.read_text()
    rows = [json.loads(line) for line in whole.splitlines()]
    try:
        lines = (json.dumps({**row, "event": event}) for row in rows)
        part.write_text("\n".join(lines) + "\n")
        _reads(decoded, "trace", KEY, "-T", form)
    finally:
        part.write_text(whole)

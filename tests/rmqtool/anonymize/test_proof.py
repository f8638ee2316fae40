"""What rmqtool says of anonymized samples is what it says of the originals, under one renaming.

The renaming is that of the tables: each text of a row of the original, and the text in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dissectors.decode.decoded_log import read_manifest
from tests.dissectors.anonymize.test_samples import CAPTURES, READ, SECRET
from tests.profiles import explores
from tests.rmqtool.command import rmqtool

from .tables import tables_of

pytestmark = pytest.mark.slow
REPORTED = (
    *("acl-4x", "busy-send-queue-5x", "fault-freeze-detector-5x", "format-pcapng-5x"),
    *("grpc-consume-53", "grpc-push-stuck-5x", "ha-replication-4x", "lite-pull-5x"),
    *("not-yet-open-5x", "push-consumer-4x", "request-abandoned-5x", "send-namespace-4x"),
    *("stored-twice-5x", "transactions-5x"),
)
"""samples of which the suite compares reports, which takes seconds each; `make explore`: of all"""
UNREAD = [path for path in CAPTURES if path not in READ and "foreign" not in path.name]
"""samples with what is dropped from captures; of unknown protocols, logs have no bytes either"""
_PART = re.compile(r"[^\s=,|\[\]]+")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_UNLIKE = ("capture", "captures", "source", "sources", "inputs", "created", "body_crc", "columns")
"""names of files, the checksum of a body, which rows cannot tell, and what columns mean"""


class Shared:
    """A sample, its log, and the anonymized log."""

    def __init__(self, capture: Path, folder: Path) -> None:
        self._folder = folder
        secret = folder / "secret"
        secret.write_bytes(SECRET)
        self._given = ("--secret", secret, "-q")
        self.before = folder / "a" / f"{capture.name.partition('.')[0]}.pcap"
        self.before.parent.mkdir()
        self.before.symlink_to(capture)
        self.log = self._log_of(self.before, "log")
        self.renamed_log = folder / "renamed"
        assert rmqtool("anonymize", self.log, "-o", self.renamed_log, *self._given).status == 0

    def anonymize(self) -> Path:
        """Write the anonymized capture; return its log."""
        self.after = self._folder / "b" / self.before.name
        self.after.parent.mkdir()
        assert rmqtool("anonymize", self.before, "-o", self.after, *self._given).status == 0
        return self._log_of(self.after, "log-after")

    def _log_of(self, capture: Path, name: str) -> Path:
        log = self._folder / name
        done = rmqtool("decode", "pcap", capture, "-o", f"{log}/", "-T", "jsonl", "-q")
        assert done.status == 0 or "no RocketMQ in" in done.err
        return log

    def rows(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Give each row of the original, and the one in its place."""
        for path in sorted(self.log.rglob("*.jsonl")):
            other = self.renamed_log / path.relative_to(self.log)
            lines = path.read_text().splitlines(), other.read_text().splitlines()
            for one, two in zip(*lines, strict=True):
                yield json.loads(one), json.loads(two)

    def renaming(self) -> dict[str, str]:
        """Return each text, and each part of one, and what became of it."""
        found: dict[str, str] = {}
        for row, other in self.rows():
            for text, new in zip(_texts(row), _texts(other), strict=True):
                if text != new and len(text) == len(new):
                    found[text] = new
                    found.update(_parts(text, new))
        return found

    def assert_says_the_same(self, *commands: str, of_logs: bool = False) -> None:
        """Compare what commands print about both captures, or both logs."""
        keys = [
            (row["unique_key"], other["unique_key"])
            for row, other in self.rows()
            if row.get("unique_key")
        ]
        renaming = self.renaming()
        # In a sentence, a number is a number, even if it is somebody's key.
        words = [text for text in renaming if not text.isdigit()]
        texts = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
        known = re.compile(rf"(?<![\w.])(?:{texts})(?!\w|\.\w)" if texts else "(?!)")
        for command in commands:
            wanted = keys[len(keys) // 2 :][:1] if command == "trace" else []
            if command == "trace" and not keys:
                continue
            given = (self.log, self.renamed_log) if of_logs else (self.before, self.after)
            before = _said(given[0], command, [key for key, _ in wanted])
            after = _said(given[1], command, [key for _, key in wanted])
            before = _with_words(_renamed(before, renaming, known), renaming)
            assert _plain(before) == _plain(_with_words(after, renaming)), command


@pytest.mark.parametrize("capture", READ, ids=lambda path: path.name)
def test_all_tables_totals_and_problems_are_the_same(capture: Path, tmp_path: Path) -> None:
    shared = Shared(capture, tmp_path)
    log_after = shared.anonymize()
    assert tables_of(shared.renamed_log) == tables_of(log_after)
    one, other = read_manifest(shared.renamed_log), read_manifest(log_after)
    for name in ("exchanges", "messages", "conversations", "not_decoded", "frames", "commands",
                 "gaps", "gap_bytes", "findings", "replications"):  # fmt: skip
        assert getattr(one, name) == getattr(other, name), name
    shared.assert_says_the_same("diagnose", "trace")


@pytest.mark.parametrize("capture", UNREAD, ids=lambda path: path.name)
def test_a_log_shares_what_captures_cannot(capture: Path, tmp_path: Path) -> None:
    """Decrypted bytes, TLS handshakes, and frames that are cut off have rows."""
    Shared(capture, tmp_path).assert_says_the_same("diagnose", "trace", of_logs=True)


@pytest.mark.examples
@pytest.mark.parametrize(
    "capture",
    [path for path in READ if explores() or path.name.partition(".")[0] in REPORTED],
    ids=lambda path: path.name,
)
def test_reports_are_the_same(capture: Path, tmp_path: Path) -> None:
    shared = Shared(capture, tmp_path)
    shared.anonymize()
    shared.assert_says_the_same("report")


def _said(path: Path, command: str, given: list[str]) -> Any:
    done = rmqtool(command, path, *given, "-T", "json")
    return json.loads(done.out.replace(str(path), "CAPTURE")) if done.out else done.err


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)


def _parts(text: str, new: str) -> Iterator[tuple[str, str]]:
    """Give the parts that differ: of lists, facts, addresses, and ids of messages."""
    parts = _PART.findall(text), _PART.findall(new)
    if len(parts[0]) != len(parts[1]):
        return
    if "SQL92 " in text:  # a filter, with its blanks and numbers
        yield text.partition("SQL92 ")[2], new.partition("SQL92 ")[2]
    for one, other in zip(*parts, strict=True):
        if one != other:
            yield one, other
            if ":" in one:
                yield one.rpartition(":")[0], other.rpartition(":")[0]
            if "@" in one:  # a client ID, of which the address may be left out
                yield one.rpartition("@")[2], other.rpartition("@")[2]
            if re.fullmatch(r"01[0-9A-F]{32}", one):  # of a client: its MAC address, then a process
                yield one[2:14], other[2:14]
            shown = _NUMBER.sub("…", one)  # in the pattern of remarks
            if any(map(str.isalpha, shown)):
                yield shown, _NUMBER.sub("…", other)


def _renamed(value: Any, renaming: dict[str, str], known: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return renaming.get(value) or known.sub(lambda found: renaming[found[0]], value)
    if isinstance(value, list):
        return [_renamed(one, renaming, known) for one in value]
    if isinstance(value, dict):
        names = [_renamed(name, renaming, known) for name in value]
        values = [_renamed(one, renaming, known) for one in value.values()]
        return dict(zip(names, values, strict=True))
    return value


def _with_words(value: Any, renaming: dict[str, str]) -> Any:
    """Return a value with words such as `producer` for names that are one: texts have them, too."""
    words = {new: name for name, new in renaming.items() if name.isalpha() and name.islower()}
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b" if words else "(?!)")
    return _renamed(value, words, pattern)


def _plain(value: Any) -> Any:
    """Return a value without what differs by design, lists in an order that names do not decide.

    Texts have lists, too, which are sorted by address or by name.
    """
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items() if name not in _UNLIKE}
    if isinstance(value, list):
        return sorted(map(_plain, value), key=lambda one: json.dumps(one, sort_keys=True))
    if isinstance(value, str):
        return sorted(filter(None, re.split(r"[:.]?(?:[\s,;()]+|$)", value)))
    return value

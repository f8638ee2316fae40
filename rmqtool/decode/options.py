"""What a user asked `decode` for, checked: texts of the command line become values."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from dissectors.times import Moment, moment_of, text_of_time

from .console import When
from .status import CommandError, ExitStatus


class View(StrEnum):
    """What a row is."""

    exchanges = "exchanges"
    commands = "commands"
    tree = "tree"
    summary = "summary"
    follow = "follow"
    messages = "messages"


class Format(StrEnum):
    """How rows are written."""

    table = "table"
    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"


_SUFFIXES = {
    ".jsonl": Format.jsonl,
    ".ndjson": Format.jsonl,
    ".json": Format.jsonl,
    ".csv": Format.csv,
    ".parquet": Format.parquet,
}
_PORT = re.compile(r"(?:tcp\.(?:src|dst)?port\s*==?\s*)?(\d{1,5})(?:\s*,\s*rocketmq)?", re.ASCII)
_SIZE = re.compile(r"(\d{1,12})\s*(b|kb|kib|mb|mib|gb|gib|)", re.ASCII)
_SIZES: dict[str, int] = {"": 1, "b": 1} | {
    f"{letter}{mark}b": base**power
    for power, letter in enumerate("kmg", 1)
    for mark, base in (("", 1000), ("i", 1024))
}


@dataclass(frozen=True, slots=True)
class DecodeRequest:
    """A `decode` command, checked."""

    sources: Sequence[str]
    """captures, folders, or ``-``"""
    view: View = View.exchanges
    """what a row is"""
    format: Format = Format.table
    """how rows are written"""
    output: str = "-"
    """where to"""
    force: bool = False
    """an existing decoded log may be replaced"""
    where: str = ""
    """filter expression; empty: all"""
    since: Moment | None = None
    """earliest time"""
    until: Moment | None = None
    """time that is too late"""
    limit: int | None = None
    """how many rows at most"""
    body_limit: int | None = None
    """bytes of a body that are shown; None: as the view thinks best"""
    decode_as: frozenset[int] = frozenset()
    """ports whose conversations are RocketMQ"""
    follow: bool = False
    """the capture is still being written"""
    jobs: int = 1
    """processes"""
    check: bool = False
    """findings of severity error make the status 3"""
    conversation: int | None = None
    """the conversation that is followed"""
    quiet: bool = False
    """no remarks on standard error"""
    colour: When = When.auto
    """when to use colours"""

    @property
    def to_folder(self) -> bool:
        """Whether the output is a decoded log.

        It is for Parquet to what is not called a Parquet file, and for JSON lines to what is
        called or is a folder.
        """
        if self.output == "-" or self.view is not View.exchanges:
            return False
        if self.format is Format.jsonl:
            return self.output.endswith(("/", os.sep)) or Path(self.output).is_dir()
        return self.format is Format.parquet and Path(self.output).suffix != ".parquet"

    def restrictions(self) -> dict[str, object]:
        """Return what keeps rows out of the result, for the manifest."""
        texts = {
            "where": self.where or None,
            "since": _time_text(self.since),
            "until": _time_text(self.until),
            "limit": self.limit,
            "decode_as": sorted(self.decode_as) or None,
        }
        return {name: value for name, value in texts.items() if value is not None}


_SWITCHES = {
    View.commands: "--commands",
    View.tree: "--verbose",
    View.summary: "--summary",
    View.follow: "--follow-conversation",
    View.messages: "--messages",
}


def usage_error(option: str, reason: str) -> CommandError:
    """Return the error about what was given to an option."""
    return CommandError(f"{option}: {reason}", status=ExitStatus.USAGE)


def view_of(
    commands: bool,
    verbose: bool,
    summary: bool,
    follow: int | None = None,
    messages: bool = False,
) -> View:
    """Return the view that the switches ask for; more than one is an error."""
    chosen = [
        view
        for view, wanted in (
            (View.commands, commands),
            (View.tree, verbose),
            (View.summary, summary),
            (View.follow, follow is not None),
            (View.messages, messages),
        )
        if wanted
    ]
    if len(chosen) > 1:
        named = ", ".join(_SWITCHES[view] for view in chosen)
        raise usage_error(named, "only one of them at a time")
    return chosen[0] if chosen else View.exchanges


def format_of(wanted: Format | None, output: str, view: View) -> Format:
    """Return the format that was named, else the one that the output's name says."""
    chosen = wanted or _SUFFIXES.get(Path(output).suffix.lower(), Format.table)
    if view in (View.follow, View.messages) and wanted not in (None, Format.table):
        raise usage_error(_SWITCHES[view], f"has its own form, not {wanted}")
    if view in (View.follow, View.messages):
        return Format.table
    if view is View.tree and chosen is not Format.table:
        raise usage_error("--verbose", "is text for people; --commands --format jsonl has it all")
    if view is View.summary and chosen in (Format.csv, Format.parquet):
        raise usage_error("--summary", "is a table or, with --format jsonl, one JSON object")
    if view is View.commands and chosen in (Format.csv, Format.parquet):
        raise usage_error(
            f"--commands --format {chosen}", "commands are nested; --format jsonl has them whole"
        )
    return chosen


def ports_of(texts: Sequence[str]) -> frozenset[int]:
    """Return the ports of --decode-as: ``9999``, ``8080,8081`` or ``tcp.port==9999``."""
    ports = set()
    for text in texts:
        whole = _PORT.fullmatch(text.strip())
        for part in [text] if whole else text.split(","):
            match = _PORT.fullmatch(part.strip())
            if match is None or not 0 < int(match[1]) < 65536:
                raise usage_error(
                    "--decode-as", f"{part.strip()!r} is no TCP port; give 1 to 65535"
                )
            ports.add(int(match[1]))
    return frozenset(ports)


def time_option(option: str, text: str | None) -> Moment | None:
    """Return the time that an option names."""
    if text is None:
        return None
    moment = moment_of(text)
    if moment is None:
        raise usage_error(
            option, f"{text!r} is no time; give 2026-11-20T10:00:00 or 10:00 (UTC unless it says)"
        )
    return moment


def size_option(option: str, text: str | None) -> int | None:
    """Return the bytes that an option names: ``512``, ``4KiB``."""
    if text is None:
        return None
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None:
        raise usage_error(option, f"{text!r} is no size; give 512, 4KiB or 0")
    return int(match[1]) * _SIZES[match[2]]


def _time_text(moment: Moment | None) -> str | None:
    if moment is None:
        return None
    text = text_of_time(moment.ns)
    return text if moment.has_date else text[11:]

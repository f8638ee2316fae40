"""Who takes part in the benchmark: how each is started, and how its output is read back."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .java_baseline import java_command, java_missing, java_result
from .tshark_baseline import lua_command, lua_missing, summary_command, tshark_missing
from .verify import (
    Found,
    found_in_commands,
    found_in_exchanges,
    found_in_fields,
    found_in_messages,
    json_lines,
    parquet_rows,
)

TOOL = Path(sys.executable).with_name("rmqtool")

_SCAPY = """
import sys
import scapy.layers.inet, scapy.layers.l2
from scapy.utils import PcapReader
for packet in PcapReader(sys.argv[1]):
    pass
"""


def tool_missing() -> str:
    """Return why rmqtool cannot be measured, or an empty text."""
    return "" if os.access(TOOL, os.X_OK) else f"rmqtool is not installed beside {sys.executable}"


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to decode a capture."""

    key: str
    """Short name, used by floors and in JSON."""
    title: str
    """What the table calls it."""
    command: Callable[[Path, Path], list[str]]
    """Capture and output file (or folder) -> command line."""
    missing: Callable[[], str] = tool_missing
    """Why it cannot take part; empty when it can."""
    read: Callable[[Path], Found] | None = None
    """Output -> figures to compare with the ground truth; None when it decodes no commands."""
    capture: str = "main"
    """main, mixed, sends or small: which capture it is given."""
    suffix: str = ""
    """Ending of the output's name; empty for a contestant that writes to standard output."""
    warm: bool = False
    """True when the process measures itself after a first pass."""
    rounds: int = 99
    """Largest number of rounds it is part of: one for those that take a minute."""


def decode_command(capture: Path, output: Path, *options: str, jobs: int = 1) -> list[str]:
    """Return the command that decodes a capture; what is compared with others takes one core."""
    shared = ("--jobs", str(jobs))
    return [
        str(TOOL),
        "decode",
        "pcap",
        str(capture),
        *shared,
        *options,
        "--force",
        "-o",
        str(output),
    ]


def _decode(*options: str) -> Callable[[Path, Path], list[str]]:
    return lambda capture, output: decode_command(capture, output, *options)


def _diagnose(capture: Path, output: Path) -> list[str]:
    return [str(TOOL), "diagnose", str(capture), "--force", "-o", str(output)]


def _read_exchanges(path: Path) -> Found:
    return found_in_exchanges(json_lines(path))


def _read_messages(path: Path) -> Found:
    return found_in_messages(json_lines(path))


def _read_parquet(path: Path) -> Found:
    return found_in_exchanges(parquet_rows(path))


def _read_java(path: Path) -> Found:
    # the rows are in the file beside; the process counts commands with its own decoder
    found = _read_exchanges(path.with_suffix(".rows"))
    said = java_result(path)
    if (said.commands, said.multiset) != (found.commands, f"{found.multiset:016x}"):
        raise ValueError("the Java decoder's rows are not what it counted")
    return found


def contestants(slow: bool = False) -> list[Contestant]:
    """Return the contestants in the order of a round; the slow ones only when asked for."""
    everyone = [
        Contestant(
            "jsonl", "rmqtool, exchanges as JSONL", _decode("--format", "jsonl"),
            read=_read_exchanges, suffix=".jsonl",
        ),
        Contestant(
            "commands", "rmqtool, commands and messages as JSONL",
            _decode("--commands", "--format", "jsonl"),
            read=found_in_commands, suffix=".jsonl", rounds=1,
        ),
        Contestant(
            "parquet", "rmqtool, exchanges as Parquet",
            _decode("--format", "parquet", "--no-message-rows"),
            read=_read_parquet, suffix="-log",
        ),
        Contestant(
            "log", "rmqtool, exchanges and messages as Parquet", _decode("--format", "parquet"),
            read=_read_parquet, suffix="-log",
        ),
        Contestant(
            "messages", "rmqtool, one row per message as JSONL",
            _decode("--list-messages", "--format", "jsonl"),
            read=_read_messages, suffix=".jsonl",
        ),
        Contestant(
            "mixed", "rmqtool, JSONL, 45 % binary headers", _decode("--format", "jsonl"),
            read=_read_exchanges, suffix=".jsonl", capture="mixed",
        ),
        Contestant(
            "sends", "rmqtool, JSONL, small commands only", _decode("--format", "jsonl"),
            read=_read_exchanges, suffix=".jsonl", capture="sends",
        ),
        Contestant(
            "sends-parquet", "rmqtool, Parquet, small commands only",
            _decode("--format", "parquet", "--no-message-rows"),
            read=_read_parquet, suffix="-log", capture="sends",
        ),
        Contestant(
            "sends-plain", "tshark -r, kindly, small commands only",
            lambda capture, _: summary_command(capture, False), missing=tshark_missing,
            capture="sends",
        ),
        Contestant(
            "summary", "rmqtool, summary without verdict: a filter that all rows pass",
            _decode("--summary", "--where", "conversation >= 0"), suffix=".txt",
        ),
        Contestant(
            "diagnose", "rmqtool diagnose, all rules", _diagnose, suffix=".jsonl",
        ),
        Contestant(
            "plain", "tshark -r, kindly: without reassembly",
            lambda capture, _: summary_command(capture, False), missing=tshark_missing,
        ),
        Contestant(
            "default", "tshark -r, as it is: guesses protocols",
            lambda capture, _: summary_command(capture, True), missing=tshark_missing, rounds=1,
        ),
        Contestant(
            "lua", "tshark with a correct Lua dissector, -T fields",
            lambda capture, _: lua_command(capture), missing=lua_missing, read=found_in_fields,
        ),
        Contestant(
            "java", "Java 17 and Jackson, JSONL, warm, in process",
            lambda capture, output: java_command(capture, output.with_suffix(".rows")),
            missing=java_missing, read=_read_java, warm=True,
        ),
    ]  # fmt: skip
    return [*everyone, *_slow()] if slow else everyone


def _slow() -> list[Contestant]:
    return [
        Contestant(
            "scapy", "scapy PcapReader, dissects to TCP, 20,000 packets",
            lambda capture, _: [sys.executable, "-c", _SCAPY, str(capture)],
            missing=lambda: "", capture="small", rounds=1,
        ),
    ]  # fmt: skip

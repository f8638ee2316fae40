"""One letter, one meaning, over the options of all commands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import typer.main

from rmqtool.cli import app
from rmqtool.ui.declared import LETTERS, named
from rmqtool.ui.status import ExitStatus

from ..command import rmqtool


def options() -> Iterator[tuple[str, list[str]]]:
    """Every option of every command: the command, and the option's spellings."""

    def walk(command: object, way: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
        for parameter in getattr(command, "params", ()):
            spellings = [*parameter.opts, *parameter.secondary_opts]
            if any(one.startswith("-") for one in spellings):
                yield " ".join(way) or "rmqtool", spellings
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*way, name))

    return walk(typer.main.get_command(app), ())


def is_letter(spelling: str) -> bool:
    return len(spelling) == 2


def test_a_letter_has_one_meaning_and_a_meaning_one_letter() -> None:
    found = {letter: name for name, letter in LETTERS.items()}
    assert len(found) == len(LETTERS)
    for command, spellings in options():
        letters = [one for one in spellings if is_letter(one)]
        names = [one for one in spellings if not is_letter(one)]
        wanted = [LETTERS[name] for name in names if name in LETTERS]
        assert letters == wanted, f"{command}: {' '.join(spellings)}"


def test_every_letter_is_used() -> None:
    used = {one for _, spellings in options() for one in spellings if is_letter(one)}
    assert used | {"-h"} == set(LETTERS.values())


def test_spellings() -> None:
    assert named("--where") == ("--where", "-Y")
    assert named("--output", "--journal") == ("--output", "--journal", "-o")
    assert named("--tags") == ("--tags",)


@pytest.mark.parametrize(
    "arguments",
    [
        ("decode", "pcap", "x.pcap", "-w", "failed"),
        ("decode", "pcap", "x.pcap", "-f", "jsonl"),
        ("decode", "pcap", "x.pcap", "-n", "3"),
        ("decode", "live", "-n", "3"),
        ("decode", "hex", "-i", "raw"),
        ("replay", "x.pcap", "-r", "rules.toml"),
        ("report", "x.pcap", "-t", "latency"),
        ("report", "x.pcap", "-v"),
        ("send", "-p", "x"),
        ("send", "-c", "tag"),
        ("send", "-f", "body.bin"),
        ("send", "-i", "1"),
        ("broker", "-b", "2"),
        ("broker", "-f", "busy"),
        ("broker", "-p", "0"),
        ("broker", "-l"),
        ("codes", "-k", "request"),
    ],
)
def test_a_letter_that_is_gone_is_an_error(arguments: tuple[str, ...]) -> None:
    result = rmqtool(*arguments)
    assert result.status == ExitStatus.USAGE
    assert "no such option" in result.err.lower()

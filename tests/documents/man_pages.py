"""`python -m tests.documents.man_pages`: writes docs/man/*.1 from the options of the commands.

One page per command, as git has them; the wheel installs them under share/man/man1.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from rmqtool import __version__
from rmqtool.cli import app
from rmqtool.ui.status import ExitStatus

from .options_docs import has_examples

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "man"
_STATUS = ROOT / "rmqtool" / "ui" / "status.py"


def pages() -> dict[str, str]:
    """Return the pages by file name."""
    root = typer.main.get_command(app)
    found = dict(_commands(root, ("rmqtool",)))
    names = ["-".join(path) for path in found]
    return {
        f"{'-'.join(path)}.1": _page(command, path, names, found) for path, command in found.items()
    }


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, below in sorted(getattr(command, "commands", {}).items()):
        if not below.hidden:
            yield from _commands(below, (*path, name))


def _page(
    command: Any, path: Sequence[str], names: Sequence[str], found: Mapping[tuple[str, ...], Any]
) -> str:
    context = _context(found, path)
    subject, *paragraphs = re.split(r"\n{2,}", command.help.strip())
    name = "-".join(path)
    lines = [f'.TH "{name.upper()}" "1" "" "rmqtool {__version__}" "User Commands"', ".SH NAME"]
    lines.append(f"{_text(name)} \\- {_text(_sentence(subject))}")
    lines += [".SH SYNOPSIS", f".B {_text(' '.join(path))}"]
    arguments = [param.metavar for param in command.params if param.param_type_name == "argument"]
    last = ["COMMAND ..."] if hasattr(command, "commands") else []
    lines.append(_text(" ".join(["[OPTIONS]", *arguments, *last])))
    examples = _examples(paragraphs)
    prose = [part for part in paragraphs if not has_examples(part)]
    if prose:
        lines.append(".SH DESCRIPTION")
        lines += _joined(".PP", [_text(" ".join(part.split())) for part in prose])
    below = [(other, found[other]) for other in found if other[:-1] == tuple(path)]
    if below:
        lines.append(".SH COMMANDS")
        for other, one in below:
            what = _sentence(re.split(r"\n{2,}", one.help.strip())[0])
            lines += [".TP", f".BR {_text('-'.join(other))} (1)", _text(what)]
    lines += _options(command, context)
    if examples:
        lines += [".SH EXAMPLES", ".EX", *(_text(line) for line in examples), ".EE"]
    if len(path) == 1:
        lines += [".SH EXIT STATUS", *_statuses()]
    others = [other for other in names if other != name]
    see = [other for other in others if len(path) == 1 or other == "rmqtool"]
    lines.append(".SH SEE ALSO")
    lines += [f".BR {_text(other)} (1)" + "," * (other != see[-1]) for other in see]
    if len(path) > 1:
        lines += [".PP", "Documents: " + _text("rmqtool help")]
    return "\n".join(_unbroken(lines)) + "\n"


def _context(found: Mapping[tuple[str, ...], Any], path: Sequence[str]) -> Any:
    """Return the context of a command below those of its parents, whose settings it has."""
    context = None
    for depth, word in enumerate(path, start=1):
        command = found[tuple(path[:depth])]
        context = command.make_context(word, [], parent=context, resilient_parsing=True)
    return context


def _options(command: Any, context: Any) -> list[str]:
    """Return the arguments, then the options, in the panels of the help."""
    arguments, panels = [], {}
    for param in command.get_params(context):
        if getattr(param, "hidden", False):
            continue
        panel = param.rich_help_panel or ""
        if param.param_type_name == "argument":
            arguments += _entry(param.metavar or param.name.upper(), param.help or "")
        else:
            names, what = param.get_help_record(context)
            panels.setdefault(panel, []).extend(_entry(names, what))
    lines = [".SH ARGUMENTS", *arguments] if arguments else []
    lines.append(".SH OPTIONS")
    lines += panels.pop("", [])
    for panel, entries in panels.items():
        lines += [f".SS {_text(panel)}", *entries]
    return lines


def _entry(names: str, what: str) -> list[str]:
    return [".TP", f"\\fB{_text(names)}\\fR", _text(" ".join(what.split()))]


def _examples(paragraphs: Sequence[str]) -> list[str]:
    return [line for part in paragraphs if has_examples(part) for line in part.splitlines()[1:]]


def _statuses() -> list[str]:
    """Return what each exit status means, as it is declared."""
    (kind,) = (
        node
        for node in ast.parse(_STATUS.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == ExitStatus.__name__
    )
    lines = []
    for member, said in zip(kind.body, kind.body[1:], strict=False):
        if isinstance(member, ast.Assign) and isinstance(said, ast.Expr):
            number = ast.literal_eval(member.value)
            meaning = ast.literal_eval(said.value)
            lines += [".TP", f".B {number}", _text(meaning)]
    return lines


def _sentence(text: str) -> str:
    """Return a first sentence as the section NAME wants it: no full stop."""
    return " ".join(text.split()).removesuffix(".")


def _joined(between: str, parts: Sequence[str]) -> list[str]:
    return [line for part in parts for line in (between, part)][1:]


def _text(text: str) -> str:
    """Return text that no macro and no escape is read from."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    text = text.replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    text = text.replace('"', "\\(dq")
    return "\\&" + text if text.startswith(".") else text


def _unbroken(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line]


def main() -> int:
    """Return the exit status."""
    FOLDER.mkdir(exist_ok=True)
    written = pages()
    for path in FOLDER.glob("*.1"):
        if path.name not in written:
            path.unlink()
    for name, text in written.items():
        (FOLDER / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The commands and options in docs/options.md, made from the code; run as a module, it writes them.

python -m tests.documents.options_docs
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from typing import Any

import typer.main

from rmqtool.cli import app

from .pages import DOCS

PAGE = DOCS / "options.md"
BEGIN, END = "<!-- options: begin -->", "<!-- options: end -->"
_NO_TEXT = re.compile(r"(`[^`]*`)|([|<*])")
_EVERYWHERE = ("--help", "--install-completion", "--show-completion")


def commands() -> Iterator[tuple[str, Any]]:
    """All commands that do something, by their words, in the order of the help."""

    def walk(command: Any, words: str) -> Iterator[tuple[str, Any]]:
        inner = getattr(command, "commands", {})
        if not inner:
            yield words, command
        for name, one in inner.items():
            yield from walk(one, f"{words} {name}")

    return walk(typer.main.get_command(app), "rmqtool")


def options_text() -> str:
    """All commands with their help and their options."""
    return "\n\n".join(_command_text(words, command) for words, command in commands())


def _command_text(words: str, command: Any) -> str:
    parts = [f"## {words}", _help_of(command.help)]
    panels: dict[str, list[str]] = {}
    for parameter in command.params:
        if not parameter.hidden and not set(parameter.opts) & set(_EVERYWHERE):
            panel = parameter.rich_help_panel or "Arguments and options"
            panels.setdefault(panel, []).append(_row_of(parameter))
    for panel, rows in panels.items():
        parts.append("\n".join([f"| {panel} | |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _help_of(text: str) -> str:
    """The help of a command; its examples are a block of code."""
    blocks = []
    for block in text.split("\n\n"):
        if has_examples(block):
            heading, *lines = block.splitlines()
            blocks.append("\n".join([heading, "", "```", *(line[2:] for line in lines), "```"]))
        else:
            blocks.append(_escaped(" ".join(block.split())))
    return "\n\n".join(blocks)


def has_examples(paragraph: str) -> bool:
    """Return whether a paragraph of help is a heading and indented examples."""
    return "\n  " in paragraph


def _row_of(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    names = [*sorted(parameter.opts, key=len, reverse=True), *parameter.secondary_opts]
    value = "" if getattr(parameter, "is_flag", False) else _value_of(parameter)
    shown = [f"{names[0]} {value}".rstrip(), *names[1:]] if is_option else [value]
    text = _escaped(" ".join((parameter.help or "").split()))
    default = _default_of(parameter)
    told = f"{text} Default: `{default}`." if default else text
    cell = ", ".join(f"`{one}`" for one in shown).replace("|", "\\|")
    return f"| {cell} | {told} |"


def _value_of(parameter: Any) -> str:
    """The word that stands for the value: the choices, where it has some."""
    if parameter.metavar:
        return str(parameter.metavar)
    choices = getattr(parameter.type, "choices", ())
    if choices:
        return "|".join(str(getattr(one, "value", one)) for one in choices)
    return str(parameter.name).upper()


def _default_of(parameter: Any) -> str:
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    value = parameter.default
    if (
        not parameter.show_default
        or value is None
        or isinstance(value, bool)
        or value in ("", [], ())
    ):
        return ""
    return str(value.value if isinstance(value, enum.Enum) else value)


def _escaped(text: str) -> str:
    """What is said as prose, with nothing in it that Markdown would take for its own."""
    return _NO_TEXT.sub(
        lambda match: match[1].replace("|", "\\|") if match[1] else f"\\{match[2]}", text
    )


def page_with_options(page: str) -> str:
    """The page with the options of today."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{options_text()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_options(PAGE.read_text()))

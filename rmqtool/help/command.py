"""`rmqtool help`: the documents of the project and the help of each command."""

from __future__ import annotations

import sys
from textwrap import fill
from typing import Annotated

import typer

from ..ui import common_options as options
from ..ui.console import When, terminal_of
from ..ui.errors import guarded
from ..ui.status import CommandError, ExitStatus

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TOPIC [SECTION]]",
        help="Topic, optionally with words from a heading; or a command (default: list topics).",
        show_default=False,
    ),
]
Search = Annotated[
    str | None,
    typer.Option("--search", metavar="WORD", help="List sections that contain WORD."),
]
_MOST_TOPICS = 5
"""Most topics with a section that are suggested."""
_WIDEST = 120
"""Cells of a line of text; longer ones are hard to read."""


def help_(
    context: typer.Context,
    words: Words = None,
    search: Search = None,
    color: Annotated[When, options.COLOR.made("color")] = When.auto,
) -> None:
    """Show documentation: columns, filters, reports, sandbox faults, replay rules.

    Examples:
      rmqtool help
      rmqtool help decoded-log filters
      rmqtool help sandbox faults
      rmqtool help --search isolated
      rmqtool help decode pcap            same as rmqtool decode pcap --help

    Topics: rmqtool help.
    """

    def run() -> ExitStatus:
        if search is not None:
            return _list_sections(search, color)
        if not words:
            return _list_topics(color)
        from .documents import topics

        path = topics().get(words[0])
        if path is not None:
            return _show(words[0], " ".join(words[1:]), color)
        return _help_of_command(context, words)

    raise typer.Exit(int(guarded(run)))


def _list_topics(color: When) -> ExitStatus:
    from ..ui.screen.panels import Labelled, fact_lines
    from .documents import document, title_of, topics

    documents = topics()
    indent = max(map(len, documents), default=0) + 4
    _write_markdown("Topics: `rmqtool help TOPIC`, or `rmqtool help TOPIC SECTION`", color)
    facts = [
        Labelled(title_of(document(path)).replace("`", ""), label=f"  {name}", indent=indent)
        for name, path in documents.items()
    ]
    print("\n".join(fact_lines(facts, terminal_of(sys.stdout, color))))
    return ExitStatus.OK


def _list_sections(word: str, color: When) -> ExitStatus:
    from .documents import sections_with

    matches = sections_with(word)
    if not matches:
        raise CommandError(f"no section contains {word!r}", "rmqtool help")
    _write_markdown(f"Sections with {word!r}: `rmqtool help TOPIC SECTION`", color)
    width = min(terminal_of(sys.stdout, color).width, _WIDEST)
    for place, line in matches:
        print(f"  {place}")
        print(fill(line, width, initial_indent=" " * 6, subsequent_indent=" " * 6))
    return ExitStatus.OK


def _show(topic: str, words: str, color: When) -> ExitStatus:
    from .documents import chosen_sections, document, sections, topics

    text = document(topics()[topic])
    if words:
        chosen = chosen_sections(text, words)
        if not chosen:
            titles = "\n".join(section.title for section in sections(text))
            raise CommandError(f"{topic} has no section {words!r}. Sections:", titles)
        text = "\n".join(line for section in chosen for line in (*section.lines, ""))
    _write_markdown(text, color)
    return ExitStatus.OK


def _write_markdown(text: str, color: When) -> None:
    """Write a document of the project: laid out on a terminal, as it is elsewhere."""
    terminal = terminal_of(sys.stdout, color)
    if not terminal.is_terminal and color is not When.always:
        print(text.rstrip("\n"))
        return
    from ..ui.screen.drawing import document_lines

    shown = terminal._replace(width=min(terminal.width, _WIDEST))
    print("\n".join(document_lines(text, shown)))


def _unknown_topic(words: list[str], commands: list[str]) -> CommandError:
    """Return the error for words that name neither a topic nor a command."""
    from dissectors.where.fields import similar

    from .documents import topics, topics_with

    text = f"no topic {words[0]!r}"
    section = " ".join(words)
    if found := topics_with(section)[:_MOST_TOPICS]:
        commands = [f"rmqtool help {topic} {section}" for topic in found]
        return CommandError(f"{text}; did you mean:", "\n".join(commands), ExitStatus.USAGE)
    near = similar(words[0], [*topics(), *commands])
    return CommandError(f"{text}{near}", "`rmqtool help` lists the topics", ExitStatus.USAGE)


def _help_of_command(context: typer.Context, words: list[str]) -> ExitStatus:
    command = context.find_root().command
    names = getattr(command, "commands", {})
    if words[0] not in names:
        raise _unknown_topic(words, sorted(names))
    try:
        # Not standalone: errors come here instead of ending the program.
        command.main([*words, "--help"], prog_name="rmqtool", standalone_mode=False)
    except Exception as error:  # an unknown subcommand
        message = getattr(error, "message", None)
        if message is None:
            raise
        raise CommandError(str(message), status=ExitStatus.USAGE) from None
    return ExitStatus.OK

"""Command groups whose commands are imported when they are run or their options are needed.

A group has only the name and summary of each command, which is enough for its help.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, Final, NamedTuple

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo


class CommandPlace(NamedTuple):
    """The location of a command."""

    module: str
    """module of this package"""
    function: str
    """name of the command function"""
    summary: str
    """summary: the first paragraph of its help"""
    settings: Mapping[str, Any] | None = None
    panel: str | None = None
    """help panel in its group"""
    common: tuple[str, ...] = ()
    """parameters that `--help` shows; `--help-all` shows all; empty: all"""
    reads: bool = False
    """`-r FILE` is the same as `FILE`, because tshark and tcpdump have it"""
    inputs_last: bool = False
    """inputs follow other arguments, as in `report latency FILE`; otherwise they come first"""


_NOT_DRAWN: Final = (("rich.markdown", "Markdown"), ("rich.traceback", "Traceback"))
"""Modules that typer imports but our help does not need; they take a quarter of the startup time:
Markdown has a parser, both have a syntax highlighter."""


def _load_drawing() -> None:
    """Load the help renderer of typer, with stubs for unused modules.

    The stubs are removed at once: later imports get the real modules.
    """
    if "typer.rich_utils" in sys.modules:
        return
    left_out = []
    for module, name in _NOT_DRAWN:
        if module not in sys.modules:
            stand_in = sys.modules[module] = ModuleType(module)
            setattr(stand_in, name, type(name, (), {}))
            left_out.append(module)
    try:
        # Help texts that name a default themselves write it the same way.
        import_module("typer.rich_utils").DEFAULT_STRING = "(default: {})"  # type: ignore[attr-defined]
    finally:
        for module in left_out:
            del sys.modules[module]


_NO_NUMBER: Final = re.compile(r"(.+) is not a valid (int|integer|float)(?: range)?\.")
_OUTSIDE: Final = re.compile(
    r"(\S+) is not in the range (?:(\S+)<=x<=(\S+?)|x>=(\S+?)|x<=(\S+?))\."
)


def in_plain_words(message: str) -> str:
    """Return the error about a number in plain words; others as they are."""
    if found := _NO_NUMBER.fullmatch(message):
        return f"{found[1]} is not a {'number' if found[2] == 'float' else 'whole number'}"
    if found := _OUTSIDE.fullmatch(message):
        number, least, most, floor, ceiling = found.groups()
        bound = f"{floor} or more" if floor else f"{ceiling} or less"
        return f"{number} is out of range; give {f'{least} to {most}' if least else bound}"
    return message


class _WholeCommand(TyperCommand):
    """A command with its options."""

    common: tuple[str, ...] = ()
    """parameters that `--help` shows; empty: all"""
    shows_all = False
    """`--help-all` was given"""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, without rarely used options unless `--help-all` was given."""
        _load_drawing()
        rare = [] if self.shows_all or not self.common else self._rare_options()
        # Hidden only for now: completion and man pages have all options.
        for option in rare:
            option.hidden = True
        self.epilog = f"{len(rare)} more options: {ctx.command_path} --help-all" if rare else None
        try:
            super().format_help(ctx, formatter)
        finally:
            for option in rare:
                option.hidden = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments; an unknown short option suggests the one in the other case.

        Errors about numbers are in plain words, without names of types.
        """
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if isinstance(message := getattr(error, "message", None), str):
                vars(error)["message"] = in_plain_words(message)
            name = getattr(error, "option_name", "")
            known = {text for option in self.params for text in option.opts}
            if len(name) == 2 and (other := name.swapcase()) in known:
                vars(error)["possibilities"] = [other]
            raise

    def _rare_options(self) -> list[Any]:
        return [
            option
            for option in self.params
            if option.param_type_name == "option" and option.name not in self.common
        ]


HELP_ALL: Final = "--help-all"
"""the option `--help-all`"""
READ: Final = "-r"
"""the option of tshark and tcpdump before a capture, which needs none here"""


def _inputs_of(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the inputs behind `-r`, and the other arguments."""
    inputs: list[str] = []
    others: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == READ:
            inputs += [name] if (name := next(words, None)) is not None else []
            continue
        others.append(word)
        if word == "--":  # all behind it are arguments
            break
    return inputs, [*others, *words]


class LazyCommand(TyperCommand):
    """A command with name and summary; everything else is delegated to the imported command."""

    def __init__(self, name: str, place: CommandPlace) -> None:
        super().__init__(name, short_help=place.summary, rich_help_panel=place.panel)
        self._place: Final = place
        self._whole: _WholeCommand | None = None

    def whole(self) -> _WholeCommand:
        """Return the command with its options; import it if needed."""
        if self._whole is None:
            place = self._place
            function = getattr(import_module(f"{__package__}.{place.module}"), place.function)
            info = CommandInfo(self.name, cls=_WholeCommand, callback=function)
            if place.settings is not None:
                info.context_settings = dict(place.settings)
            made = get_command_from_info(
                info, pretty_exceptions_short=True, rich_markup_mode=self.rich_markup_mode
            )
            assert isinstance(made, _WholeCommand)
            made.common = place.common
            self._whole = made
        return self._whole

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Return the context of the imported command; handle `--help-all`."""
        whole = self.whole()
        whole.shows_all = HELP_ALL in args
        known = ["--help" if arg == HELP_ALL else arg for arg in args]
        if self._place.reads:  # -r FILE may stand anywhere, as in tshark: `trace KEY -r FILE`
            inputs, others = _inputs_of(known)
            known = others + inputs if self._place.inputs_last else inputs + others
        return whole.make_context(info_name, known, parent, **extra)

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the help for shell completion."""
        return self.whole().get_short_help_str(limit)


class _Commands(dict[str, Any]):
    """The commands of a group; access returns the imported command."""

    # Running a command goes through `CommandGroup.get_command`. Man pages and documents read this
    # dictionary, and need the parameters.

    def __getitem__(self, name: str) -> Any:
        return _whole(super().__getitem__(name))

    def get(self, name: str, default: Any = None) -> Any:
        return _whole(super().get(name, default))

    def items(self) -> Any:
        return {name: self[name] for name in self}.items()

    def values(self) -> Any:
        return {name: self[name] for name in self}.values()


def _whole(command: Any) -> Any:
    return command.whole() if isinstance(command, LazyCommand) else command


class CommandGroup(TyperGroup):
    """A group with lazily imported commands, which a subclass lists."""

    places: ClassVar[Mapping[str, CommandPlace]] = {}

    def __init__(self, *, commands: Any = None, **settings: Any) -> None:
        self._lazy: Final = {n: LazyCommand(n, place) for n, place in self.places.items()}
        super().__init__(commands=_Commands({**self._lazy, **(commands or {})}), **settings)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, not imported yet."""
        return self._lazy.get(cmd_name) or super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments; the help of a group shows all, so `--help-all` is `--help`."""
        return super().parse_args(ctx, ["--help"] if args[:1] == [HELP_ALL] else args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        _load_drawing()
        super().format_help(ctx, formatter)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of the commands in the order of the help, groups first."""
        return sorted(self.commands, key=self._lazy.__contains__)

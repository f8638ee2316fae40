"""Command options as the fields of a dataclass: each is declared once, with its help and the parser
of its value. The command works with an instance of the dataclass.

```python
@declared
class CountRequest:
    inputs: list[str] = argument("INPUT...", "Captures.")
    limit: int | None = option("Stop after N rows.", "Filters", metavar="N", min=0)
    buffer: int = option("Buffer size.", default="1MiB", value=1 << 20, typed=str, read=size_option)

count = command_with(CountRequest, run_count)
```
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, get_annotations
from types import SimpleNamespace
from typing import Annotated, Any, Final, TypeVar, dataclass_transform, get_type_hints

import typer

from .errors import guarded
from .pager import paged
from .status import ExitStatus

Request = TypeVar("Request")
_REQUIRED: Final = Parameter.empty
_SAME: Final = object()
_DECLARED: Final = "declared"
"""key in the field metadata"""
_NAMED: Final = "named_options"
"""name of the field of `named_options`"""
_CONTEXT: Final = "context"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """An option, an argument, or a value derived from them."""

    parameter: Callable[..., Any] | None
    """`typer.Option` or `typer.Argument`; None: not on the command line"""
    settings: Mapping[str, Any]
    """keyword arguments of `parameter`"""
    names: tuple[str, ...]
    """names; empty: that of the field"""
    default: Any
    """default that typer passes"""
    value: Any
    """default of the field for programs"""
    typed: Any
    """type for typer; None: that of the field"""
    read: Callable[..., Any] | None
    """converts to the value"""
    needs: tuple[str, ...]
    """fields that are read first and passed to `read`"""

    def spelled(self, field: str) -> tuple[str, ...]:
        """Return the names of the option of `field`."""
        if self.parameter is typer.Argument or any("/" in name for name in self.names):
            return self.names
        return named(*(self.names or (f"--{field.replace('_', '-')}",)))

    def made(self, field: str) -> Any:
        """Return the typer parameter of the option of `field`."""
        assert self.parameter is not None
        return self.parameter(*self.spelled(field), **self.settings)


def option(
    text: str,
    panel: str | None = None,
    default: Any = None,
    *,
    names: str | Sequence[str] = (),
    value: Any = _SAME,
    typed: Any = None,
    read: Callable[..., Any] | None = None,
    needs: tuple[str, ...] = (),
    **settings: Any,
) -> Any:
    """Declare an option: help, panel, default, and further arguments of `typer.Option`.

    `names`: names, if not that of the field; letters are added. `read(name, given, *needed)`
    converts the value from typer, of type `typed`; `needs` lists further fields that it receives.
    `value` is the default for programs that create the request themselves.
    """
    spelled = (names,) if isinstance(names, str) else tuple(names)
    settings.update(help=text, rich_help_panel=panel)
    value = default if value is _SAME else value
    return Declared(typer.Option, settings, spelled, default, value, typed, read, needs)


def text_option(
    text: str,
    panel: str | None = None,
    default: str | list[str] | None = None,
    *,
    read: Callable[..., Any],
    **others: Any,
) -> Any:
    """Declare an option whose texts `read` converts; `others` as for `option`."""
    typed = str if isinstance(default, str) else str | None if default is None else list[str]
    return option(text, panel, default, typed=typed, read=read, **others)


def argument(
    metavar: str, text: str, default: Any = (), *, required: bool = False, typed: Any = None
) -> Any:
    """Declare a positional argument: metavar, help, and default."""
    settings = {"metavar": metavar, "help": text, "show_default": False}
    value = [] if default == () else default
    default = _REQUIRED if required else value
    return Declared(typer.Argument, settings, (), default, value, typed, None, ())


def derived(read: Callable[..., Any], *needs: str, value: Any) -> Any:
    """Declare a value that `read` derives from the fields `needs`."""
    return Declared(
        None, {}, (), None, value, None, lambda _name, _given, *rest: read(*rest), needs
    )


def as_given() -> Any:
    """Declare a field with all raw options from typer, by field name."""
    return Declared(None, {}, (), None, {}, None, None, ())


def named_options() -> Any:
    """Declare the field `named_options`: field → name of each option on the command line.

    It tells an option that the user gave from one with its default value.
    """
    return Declared(None, {}, (), None, {}, None, lambda _name, named: named or {}, ())


@dataclass_transform(frozen_default=True)
def declared(cls: type[Request]) -> type[Request]:
    """Make a class a frozen dataclass; the value of an option is the default of its field."""
    for name in cls.__annotations__:
        declaration = cls.__dict__.get(name)
        if isinstance(declaration, Declared):
            setattr(cls, name, _field_of(declaration))
    return dataclasses.dataclass(frozen=True)(cls)


def _field_of(declaration: Declared) -> Any:
    metadata = {_DECLARED: declaration}
    if isinstance(declaration.value, (list, dict)):
        return dataclasses.field(default_factory=declaration.value.copy, metadata=metadata)
    return dataclasses.field(default=declaration.value, metadata=metadata)


def command_with(
    request: type[Request], run: Callable[[Request], ExitStatus], without: Sequence[str] = ()
) -> Callable[..., None]:
    """Return a function for typer that reads the command line as `request` and runs `run`.

    `without` names options that this command does not have: their fields keep their defaults. The
    help is the docstring of `run`.
    """
    known = {
        name: declaration
        for name, declaration in options_of(request).items()
        if name not in without
    }

    def command(**given: Any) -> None:
        if _NAMED in known:
            given[_NAMED] = _named_in(given.pop(_CONTEXT), known)
        with paged(bool(given.get("pager"))):
            status = guarded(lambda: run(_read(request, known, given)))
        raise typer.Exit(int(status))

    parameters = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=declaration.default,
            annotation=Annotated[declaration.typed, declaration.made(name)],
        )
        for name, declaration in known.items()
        if declaration.parameter is not None
    ]
    if _NAMED in known:
        context = Parameter(_CONTEXT, Parameter.KEYWORD_ONLY, annotation=typer.Context)
        parameters.append(context)
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__doc__ = run.__doc__
    return command


def _named_in(context: typer.Context, known: Mapping[str, Declared]) -> dict[str, str]:
    """Return the options on the command line: field → name."""
    named = {}
    for name, declaration in known.items():
        if declaration.parameter is typer.Option:
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                named[name] = declaration.spelled(name)[0]
    return named


def options_of(request: type[Any]) -> dict[str, Declared]:
    """Return the declarations by field name."""
    declarations: dict[str, Declared] = {}
    for field in dataclasses.fields(request):
        declaration: Declared | None = field.metadata.get(_DECLARED)
        if (
            declaration is not None
            and declaration.parameter is not None
            and declaration.typed is None
        ):
            declaration = dataclasses.replace(declaration, typed=_type_of(request, field.name))
        if declaration is not None:
            declarations[field.name] = declaration
    return declarations


def read_request(request: type[Request], given: Mapping[str, Any]) -> Request:
    """Return the request for raw typer values; missing options have defaults."""
    known = options_of(request)
    defaults = {
        name: declaration.default
        for name, declaration in known.items()
        if declaration.parameter is not None
    }
    return _read(request, known, defaults | dict(given))


def _read(
    request: type[Request], known: Mapping[str, Declared], given: Mapping[str, Any]
) -> Request:
    """Return the request with all values, each read after those that it needs."""
    values: dict[str, Any] = {}

    def value_of(name: str) -> Any:
        if name not in known:  # an option that this command does not have
            return getattr(request(), name)
        if name not in values:
            declaration = known[name]
            values[name] = given if declaration.parameter is None else given.get(name)
            if declaration.read is not None:
                spelled = (
                    declaration.spelled(name)[0] if declaration.parameter is typer.Option else ""
                )
                values[name] = declaration.read(
                    spelled, given.get(name), *map(value_of, declaration.needs)
                )
        return values[name]

    for name in known:
        value_of(name)
    return request(**values)


def _type_of(request: type[Any], name: str) -> Any:
    """Return the type of one field; types of others may need modules that help must not load."""
    # `get_type_hints` resolves all annotations of what it gets, so it gets only this one.
    for owner in request.__mro__:
        text = get_annotations(owner).get(name)
        if text is not None:
            only = SimpleNamespace(__annotations__={name: text})
            names = vars(sys.modules[owner.__module__])
            return get_type_hints(only, names, include_extras=True)[name]
    raise AssertionError(name)


# A letter means the same in all commands, and the same as in tshark and tcpdump, if they have it.
LETTERS: Mapping[str, str] = {
    # of tshark and tcpdump
    "--limit": "-c",
    "--list-interfaces": "-D",
    "--decode-as": "-d",
    "--filter": "-f",
    "--interface": "-i",
    "--no-promiscuous": "-p",
    "--quiet": "-q",
    "--format": "-T",
    "--verbose": "-V",
    "--write": "-w",
    "--where": "-Y",
    # of mqadmin and kcat
    "--broker": "-b",
    "--group": "-g",
    "--keys": "-k",
    "--namesrv": "-n",
    "--topic": "-t",
    # of many programs
    "--help": "-h",
    "--jobs": "-j",
    "--mode": "-m",
    "--output": "-o",
    "--yes": "-y",
}
"""long name → letter"""


def named(name: str, *others: str) -> tuple[str, ...]:
    """Return all names of an option, including its letter if any."""
    letter = LETTERS.get(name)
    return (name, *others) if letter is None else (name, *others, letter)

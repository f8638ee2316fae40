"""Command options as the fields of a dataclass: each is declared once, with its help and how its
text becomes a value. The dataclass is what the command then works with.

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
from .letters import named
from .pager import paged
from .status import ExitStatus

Request = TypeVar("Request")
_REQUIRED: Final = Parameter.empty
_SAME: Final = object()
_DECLARED: Final = "declared"
"""key in the metadata of a field"""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """One option, argument, or value made of them."""

    parameter: Callable[..., Any] | None
    """`typer.Option` or `typer.Argument`; None: the command line does not have it"""
    settings: Mapping[str, Any]
    """what that takes"""
    names: tuple[str, ...]
    """how it is spelled; empty: as its field"""
    default: Any
    """what typer gives where the command line has nothing"""
    value: Any
    """what the field is where a program makes the request"""
    typed: Any
    """type for typer; None: that of the field"""
    read: Callable[..., Any] | None
    """makes the value"""
    needs: tuple[str, ...]
    """fields that are read before, and given to `read`"""

    def spelled(self, field: str) -> tuple[str, ...]:
        """Return the names of the option that is declared as `field`."""
        if self.parameter is typer.Argument or any("/" in name for name in self.names):
            return self.names
        return named(*(self.names or (f"--{field.replace('_', '-')}",)))

    def made(self, field: str) -> Any:
        """Return what typer wants to know of the option that is declared as `field`."""
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
    """Declare an option: its help, its heading there, its default, and more of `typer.Option`.

    `names`: how it is spelled, if not as its field; letters are added. `read(name, given, *needed)`
    makes the value from what typer gives, which has the type `typed`; `needs` names the fields that
    it takes, too. `value` is the value for programs that make the request themselves.
    """
    spelled = (names,) if isinstance(names, str) else tuple(names)
    settings.update(help=text, rich_help_panel=panel)
    value = default if value is _SAME else value
    return Declared(typer.Option, settings, spelled, default, value, typed, read, needs)


def argument(
    metavar: str, text: str, default: Any = (), *, required: bool = False, typed: Any = None
) -> Any:
    """Declare arguments that are no options: how they are shown, their help, and their default."""
    settings = {"metavar": metavar, "help": text, "show_default": False}
    value = [] if default == () else default
    default = _REQUIRED if required else value
    return Declared(typer.Argument, settings, (), default, value, typed, None, ())


def derived(read: Callable[..., Any], *needs: str, value: Any) -> Any:
    """Declare what is made of options: by `read`, from the fields `needs`."""
    return Declared(
        None, {}, (), None, value, None, lambda _name, _given, *rest: read(*rest), needs
    )


def as_given() -> Any:
    """Declare what has all options as typer gave them, by the names of their fields."""
    return Declared(None, {}, (), None, {}, None, None, ())


@dataclass_transform(frozen_default=True)
def declared(cls: type[Request]) -> type[Request]:
    """Make a class a frozen dataclass; the value of an option is the default of its field."""
    for name in cls.__annotations__:
        one = cls.__dict__.get(name)
        if isinstance(one, Declared):
            setattr(cls, name, _field_of(one))
    return dataclasses.dataclass(frozen=True)(cls)


def _field_of(one: Declared) -> Any:
    metadata = {_DECLARED: one}
    if isinstance(one.value, (list, dict)):
        return dataclasses.field(default_factory=one.value.copy, metadata=metadata)
    return dataclasses.field(default=one.value, metadata=metadata)


def command_with(
    request: type[Request], run: Callable[[Request], ExitStatus], without: Sequence[str] = ()
) -> Callable[..., None]:
    """Return a function for typer that reads the command line as `request` and runs `run`.

    `without` names options that this command does not have: their fields keep their defaults. The
    help is the docstring of `run`.
    """
    known = {name: one for name, one in options_of(request).items() if name not in without}

    def command(**given: Any) -> None:
        with paged(bool(given.get("pager"))):
            status = guarded(lambda: run(_read(request, known, given)))
        raise typer.Exit(int(status))

    parameters = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=one.default,
            annotation=Annotated[one.typed, one.made(name)],
        )
        for name, one in known.items()
        if one.parameter is not None
    ]
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__doc__ = run.__doc__
    return command


def options_of(request: type[Any]) -> dict[str, Declared]:
    """Return what is declared, by the names of the fields."""
    found: dict[str, Declared] = {}
    for field in dataclasses.fields(request):
        one: Declared | None = field.metadata.get(_DECLARED)
        if one is not None and one.parameter is not None and one.typed is None:
            one = dataclasses.replace(one, typed=_type_of(request, field.name))
        if one is not None:
            found[field.name] = one
    return found


def read_request(request: type[Request], given: Mapping[str, Any]) -> Request:
    """Return the request for what typer would give; options that are not there have defaults."""
    known = options_of(request)
    defaults = {name: one.default for name, one in known.items() if one.parameter is not None}
    return _read(request, known, defaults | dict(given))


def _read(
    request: type[Request], known: Mapping[str, Declared], given: Mapping[str, Any]
) -> Request:
    """Return the request with the values of all options, each read after those that it needs."""
    values: dict[str, Any] = {}

    def value_of(name: str) -> Any:
        if name not in known:
            return getattr(request(), name)
        if name not in values:
            one = known[name]
            values[name] = given if one.parameter is None else given.get(name)
            if one.read is not None:
                spelled = one.spelled(name)[0] if one.parameter is typer.Option else ""
                values[name] = one.read(spelled, given.get(name), *map(value_of, one.needs))
        return values[name]

    for name in known:
        value_of(name)
    return request(**values)


def _type_of(request: type[Any], name: str) -> Any:
    """Return the type of one field; those of others may be of modules that help must not load."""
    for owner in request.__mro__:
        text = get_annotations(owner).get(name)
        if text is not None:
            only = SimpleNamespace(__annotations__={name: text})
            names = vars(sys.modules[owner.__module__])
            return get_type_hints(only, names, include_extras=True)[name]
    raise AssertionError(name)

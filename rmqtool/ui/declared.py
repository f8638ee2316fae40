"""A command whose options are the fields of a dataclass: declared once, given on as one value."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any, TypeVar, get_type_hints

import typer

from .errors import guarded
from .pager import paged
from .status import ExitStatus

Arguments = TypeVar("Arguments")


def command_with(
    arguments: type[Arguments], run: Callable[[Arguments], ExitStatus]
) -> Callable[..., None]:
    """Return a function for typer that reads the command line as `arguments` and runs `run`.

    The fields of `arguments`, a dataclass, are the options: annotated as typer wants parameters to
    be. The help is the docstring of `run`.
    """
    hints = get_type_hints(arguments, include_extras=True)

    def command(**values: Any) -> None:
        with paged(bool(values.get("pager"))):
            status = guarded(lambda: run(arguments(**values)))
        raise typer.Exit(int(status))

    parameters = [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=_default_of(field),
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(arguments)  # type: ignore[arg-type]
    ]
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__doc__ = run.__doc__
    return command


def _default_of(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return Parameter.empty if field.default is dataclasses.MISSING else field.default

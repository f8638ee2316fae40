"""A plugin for mypy: `int` and `float` of a text are an error, but where a comment allows it.

`test_foreign` says where it may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mypy.errorcodes import ErrorCode
from mypy.plugin import FunctionContext, Plugin
from mypy.types import AnyType, Instance, Type, UnionType, get_proper_type

TEXTS = frozenset(("builtins.str", "builtins.bytes", "builtins.bytearray", "builtins.object"))
CODE = ErrorCode("number-in-text", "int and float of a text", "Foreign data")
SAID = "a number is read from text"


def _names_of(kind: Type) -> Iterator[str]:
    proper = get_proper_type(kind)
    if isinstance(proper, UnionType):
        for one in proper.items:
            yield from _names_of(one)
    elif isinstance(proper, Instance):
        yield proper.type.fullname
    elif isinstance(proper, AnyType):
        yield "Any"


def _checked(context: FunctionContext) -> Type:
    given = context.arg_types[0] if context.arg_types else []
    if given and TEXTS & set(_names_of(given[0])):
        context.api.fail(SAID, context.context, code=CODE)
    return context.default_return_type


class _Numbers(Plugin):
    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        return _checked if fullname in ("builtins.int", "builtins.float") else None


def plugin(_: str) -> type[Plugin]:
    """Entry point of mypy."""
    return _Numbers

"""Find plug-ins that decode bodies, by file name or entry point.

Rules: a plug-in is code, so it is run only if a user or a program names it; inputs never name one,
and installed plug-ins are not loaded by themselves.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Final

from dissectors.remoting.bodies.custom import MessageBody, NamedDecoder, error_text

from .errors import PluginError

GROUP: Final = "rmqtool.bodies"
"""group of entry points"""
FUNCTION: Final = "decode_body"
"""name of the function that a file must define"""

BodyDecoder = Callable[[MessageBody], object]


def decoders_of(plugins: Iterable[str | os.PathLike[str] | BodyDecoder]) -> list[NamedDecoder]:
    """Return the decoders with these names or functions; raise PluginError."""
    return [_decoder_of(plugin) for plugin in plugins]


def _decoder_of(plugin: str | os.PathLike[str] | BodyDecoder) -> NamedDecoder:
    if callable(plugin):
        return NamedDecoder(getattr(plugin, "__name__", type(plugin).__name__), plugin)
    name = os.fspath(plugin)
    if name.endswith(".py"):
        return NamedDecoder(Path(name).stem, _function_in(Path(name)))
    entries = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    for point in entries:
        if point.name == name:
            try:
                return NamedDecoder(name, _checked(name, point.load()))
            except (PluginError, KeyboardInterrupt):
                raise
            except BaseException as error:  # SystemExit, too: a plug-in ends no program
                raise PluginError(_text_of(error), f"plug-in {name}") from error
    known = ", ".join(point.name for point in entries) or "none"
    raise PluginError(
        "no such plug-in",
        name,
        hint=f"give FILE.py, or the name of an installed plug-in ({known} in group {GROUP})",
    )


def _function_in(path: Path) -> BodyDecoder:
    """Run a file and return its function."""
    module = ModuleType(f"rmqtool_plugin_{path.stem}")
    module.__file__ = str(path)
    try:
        source = path.read_bytes()
        # Without `dont_inherit`, the plug-in would have the `__future__` imports of this module.
        code = compile(source, str(path), "exec", dont_inherit=True)
        sys.modules[module.__name__] = module  # data classes look their module up
        exec(code, module.__dict__)
    except OSError as error:
        raise PluginError(error.strerror or str(error), str(path)) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        sys.modules.pop(module.__name__, None)
        raise PluginError(_text_of(error, str(path)), str(path)) from error
    if not hasattr(module, FUNCTION):
        raise PluginError(
            f"it has no function {FUNCTION}",
            str(path),
            hint=f"define {FUNCTION}(message), which returns JSON types, text, or None",
        )
    return _checked(str(path), getattr(module, FUNCTION))


def _checked(name: str, function: object) -> BodyDecoder:
    if not callable(function):
        raise PluginError(f"{type(function).__name__} is not a function", name)
    return function


def _text_of(error: BaseException, path: str = "") -> str:
    """Return why a plug-in cannot be loaded; `path`: the file whose line is named."""
    line = ""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        line = f", line {error.lineno}"
    elif error.__traceback__ is not None:
        frames = list(walk_tb(error.__traceback__))
        own = [number for frame, number in frames if frame.f_code.co_filename == path]
        line = f", line {own[-1] if own else frames[-1][1]}"
    return f"it cannot be loaded: {type(error).__name__}: {error_text(error)}{line}"

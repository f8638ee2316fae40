"""The files that rules and functions of a rewrite come from: read once, then digested and used.

Rules: what is digested is what is used. A file's code runs only in `rewrite_of`, from the bytes
that were read: no compiled file beside it is taken.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .rewrite import Function, Rewrite, RewriteError, rules_of

RULES: Final = ".toml"
"""how the name of a file with rules ends; any other name is `FILE.py:FUNCTION`"""
_MAX_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class RewriteFiles:
    """The files of a rewrite, as they were read."""

    rules: dict[str, bytes]
    """name of a file with rules → its content, in order"""
    functions: dict[str, bytes]
    """``FILE.py:FUNCTION`` → content of the file, in order"""

    @property
    def digest(self) -> str:
        """Digest of all contents and of the functions' names; empty where there is no file."""
        if not self.rules and not self.functions:
            return ""
        digest = hashlib.blake2b(digest_size=16)
        for data in self.rules.values():
            digest.update(b"rules %d\n" % len(data) + data)
        for name, data in self.functions.items():
            function = name.rpartition(":")[2].encode(errors="surrogateescape")
            digest.update(b"function %s %d\n" % (function, len(data)) + data)
        return digest.hexdigest()


def read_rewrite_files(names: Sequence[str]) -> RewriteFiles:
    """Read the files that are named; RewriteError where one cannot be. Runs nothing of them."""
    rules: dict[str, bytes] = {}
    functions: dict[str, bytes] = {}
    for name in names:
        if name.endswith(RULES):
            rules[name] = _content_of(name, "TOML")
            continue
        path, _, function = name.rpartition(":")
        if not path or not function:
            raise RewriteError(f"{name!r}: give FILE.py:FUNCTION")
        functions[name] = _content_of(path, "Python")
    return RewriteFiles(rules, functions)


def rewrite_of(files: RewriteFiles) -> Rewrite:
    """Return rules and functions ready to use; RewriteError where one is wrong.

    This runs the code of the functions' files.
    """
    rules = [rule for name, data in files.rules.items() for rule in rules_of(data, name)]
    functions = [_function_of(data, name) for name, data in files.functions.items()]
    return Rewrite(rules, functions)


def _function_of(data: bytes, name: str) -> Function:
    """Run the content of a file and return the function that ``FILE.py:FUNCTION`` names.

    RewriteError where the code fails or has no such function.
    """
    path, _, function_name = name.rpartition(":")
    module = types.ModuleType("rmqtool_rewrite")
    module.__file__ = path
    try:
        exec(compile(data, path, "exec"), module.__dict__)
    except Exception as error:  # whatever the user's file does
        raise RewriteError(f"{path}: {type(error).__name__}: {error}") from None
    function = getattr(module, function_name, None)
    if not callable(function):
        raise RewriteError(f"{path}: there is no function {function_name!r} in it")
    return function  # type: ignore[no-any-return]


def _content_of(name: str, kind: str) -> bytes:
    path = Path(name)
    try:
        if path.exists() and not path.is_file():
            raise RewriteError(f"{name}: no regular file")
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise RewriteError(f"{name}: no {kind} file: {error.strerror or error}") from None
    if len(data) > _MAX_BYTES:
        raise RewriteError(f"{name}: larger than {_MAX_BYTES >> 20} MiB")
    return data

"""What a program wants read: names, bytes, packets, an interface, as sources that are opened anew.

Rules: each question reads its input from the beginning; what can be read only once says so at the
second. Nothing is opened before something is asked, but a name that does not exist is said at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from dissectors.tcp.source import STDIN, BytesSource, Source, expand_sources

from ..errors import ArgumentError, ReadError
from .translated import translated

Part = str | Callable[[], Source]
"""The name of a file, or what opens something else."""
BYTES_NAME: Final = "bytes"
"""what rows call a capture in memory"""


@dataclass(slots=True)
class Inputs:
    """What is read, in order."""

    parts: Sequence[Part]
    once: str | None = None
    """what of it can be read only once; None: nothing"""
    _spent: bool = field(default=False, init=False)

    @property
    def files(self) -> list[str] | None:
        """Names of the files; None where something else is read."""
        names = [one for one in self.parts if isinstance(one, str) and one != STDIN]
        return names if len(names) == len(self.parts) else None

    def opened(self) -> list[str | Source]:
        """Return what a run reads; raise ReadError where it was read and is gone."""
        if self.once is not None:
            if self._spent:
                raise ReadError(
                    "can be read only once, and was",
                    self.once,
                    hint="keep it: write it to a file first, or take one question of it",
                )
            self._spent = True
        return [one if isinstance(one, str) else one() for one in self.parts]


def inputs_of(given: Iterable[object]) -> Inputs:
    """Return what is read for what a program gave; raise ReadError, ArgumentError."""
    parts: list[Part] = []
    for one in given:
        parts += _parts_of(one)
    if not parts:
        raise ArgumentError("nothing to read", hint="rmqtool.read('incident.pcap')")
    return Inputs(parts, "standard input" if STDIN in parts else None)


def _parts_of(one: object) -> list[Part]:
    if isinstance(one, (str, os.PathLike)):
        with translated():
            return list(expand_sources([os.fspath(one)]))
    if isinstance(one, (bytes, bytearray, memoryview)):
        data = bytes(one)
        return [lambda: BytesSource(BYTES_NAME, data)]
    if isinstance(one, Iterable):
        return [part for each in one for part in _parts_of(each)]
    raise ArgumentError(
        f"cannot read {type(one).__name__}", hint="give a name, a folder, bytes, or scapy packets"
    )

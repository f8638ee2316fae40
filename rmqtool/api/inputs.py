"""What a program wants read: names, bytes, packets, an interface, as sources that are opened anew.

Rules: each question reads its input from the beginning; what can be read only once says so at the
second. Nothing is opened before something is asked, but a name that does not exist is said at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dissectors.decode.decoded_log import MANIFEST
from dissectors.tcp.source import STDIN, BytesSource, Source, expand_sources

from ..errors import ArgumentError, ReadError
from .translated import translated

Part = str | Callable[[], Source]
"""The name of a file, or what opens something else."""
BYTES_NAME: Final = "bytes"
"""what rows call a capture in memory"""
PACKETS_NAME: Final = "packets"
"""what rows call a list of packets"""


@dataclass(slots=True)
class Inputs:
    """What is read, in order."""

    parts: Sequence[Part]
    once: str | None = None
    """what of it can be read only once; None: nothing"""
    live: bool = False
    """packets come as they happen"""
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
                    "can be read only once and has been read",
                    self.once,
                    hint="keep it: write it to a file first, or take one question of it",
                )
            self._spent = True
        return [one if isinstance(one, str) else one() for one in self.parts]


def decoded_logs(given: Iterable[object]) -> list[str]:
    """Return the names of decoded logs where nothing else is given, else nothing."""
    names = [os.fspath(one) for one in given if isinstance(one, (str, os.PathLike))]
    logs = [str(name) for name in names if _is_log(str(name))]
    return logs if len(logs) == len(list(given)) else []


def _is_log(name: str) -> bool:
    return (Path(name) / MANIFEST).is_file()


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
        name = os.fspath(one)
        if _is_log(name):
            hint = "read decoded logs alone, each as an argument: rmqtool.read('log/', 'other/')"
            raise ReadError("a decoded log cannot be mixed with other inputs", name, hint=hint)
        with translated():
            return list(expand_sources([name]))
    if isinstance(one, (bytes, bytearray, memoryview)):
        data = bytes(one)
        return [lambda: BytesSource(BYTES_NAME, data)]
    if _is_packet(one):
        return _packets_part([one])
    if isinstance(one, Iterable):
        one = list(one)
        if one and all(map(_is_packet, one)):
            return _packets_part(one)
        return [part for each in one for part in _parts_of(each)]
    raise ArgumentError(
        f"cannot read {type(one).__name__}", hint="give a name, a folder, bytes, or scapy packets"
    )


def _is_packet(one: object) -> bool:
    """Return whether something is a packet of scapy, which is not imported for that."""
    return any(cls.__module__ == "scapy.packet" for cls in type(one).__mro__)


def _packets_part(packets: Sequence[object]) -> list[Part]:
    def opened() -> Source:
        from .opened import packets_source

        return packets_source(PACKETS_NAME, packets)

    return [opened]


def interface_inputs(
    interface: str,
    packet_filter: str,
    duration: float | None,
    promiscuous: bool,
    drop_privileges: bool,
) -> Inputs:
    """Return an interface as what is read; it is opened by each question."""
    if duration is not None and duration <= 0:
        raise ArgumentError(f"duration: {duration} seconds are not a valid time")

    def opened() -> Source:
        from .opened import interface_source

        return interface_source(interface, packet_filter, duration, promiscuous, drop_privileges)

    return Inputs([opened], live=True)

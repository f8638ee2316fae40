"""Inputs of a program: names, bytes, packets, an interface, as sources that can be reopened.

Rules: each query reads its input from the beginning; a one-time input raises an error at the second
query. Nothing is opened before a query, but a missing name is an error at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissectors.decode.decoded_log import MANIFEST
from dissectors.rows.parquet import MissingLibraryError
from dissectors.tcp.source import STDIN, BytesSource, CaptureError, Source, expand_sources

from ..errors import ArgumentError, MissingExtraError, ReadError

if TYPE_CHECKING:
    from dissectors.broker_store.evidence import StoreEvidence

Part = str | Callable[[], Source]
"""A file name, or a function that opens another source."""
BYTES_NAME: Final = "bytes"
"""name of a capture in memory"""
PACKETS_NAME: Final = "packets"
"""name of a list of packets"""


@dataclass(slots=True)
class Inputs:
    """The inputs, in order."""

    parts: Sequence[Part]
    once: str | None = None
    """name of the input that can be read only once, or None"""
    live: bool = False
    _spent: bool = field(default=False, init=False)

    @property
    def files(self) -> list[str] | None:
        """Names of the files, or None if there are other inputs."""
        names = [part for part in self.parts if isinstance(part, str) and part != STDIN]
        return names if len(names) == len(self.parts) else None

    def opened(self) -> list[str | Source]:
        """Return the sources of a run; raise ReadError if a one-time input was already read."""
        if self.once is not None:
            if self._spent:
                raise ReadError(
                    "can be read only once and has been read",
                    self.once,
                    hint="write it to a file first, or query it only once",
                )
            self._spent = True
        return [part if isinstance(part, str) else part() for part in self.parts]


def evidence_of(folders: Iterable[str | os.PathLike[str]]) -> StoreEvidence | None:
    """Return the evidence in copies of broker stores, or None without stores.

    Raise ReadError for a folder without a commit log.
    """
    # A single name is accepted, too: otherwise each of its characters would be one.
    paths = [folders] if isinstance(folders, (str, os.PathLike)) else folders
    names = [os.fspath(path) for path in paths]
    if not names:
        return None
    from dissectors.broker_store.evidence import evidence_in

    with translated():
        return evidence_in(names)


def decoded_logs(given: Iterable[object]) -> list[str]:
    """Return the names of decoded logs, or nothing if there are other inputs."""
    names = [os.fspath(item) for item in given if isinstance(item, (str, os.PathLike))]
    logs = [str(name) for name in names if _is_log(str(name))]
    return logs if len(logs) == len(list(given)) else []


def _is_log(name: str) -> bool:
    return (Path(name) / MANIFEST).is_file()


def inputs_of(given: Iterable[object]) -> Inputs:
    """Return the inputs for a program's arguments; raise ReadError, ArgumentError."""
    parts: list[Part] = []
    for item in given:
        parts += _parts_of(item)
    if not parts:
        raise ArgumentError("nothing to read", hint="rmqtool.read('incident.pcap')")
    return Inputs(parts, "standard input" if STDIN in parts else None)


def _parts_of(item: object) -> list[Part]:
    if isinstance(item, (str, os.PathLike)):
        name = os.fspath(item)
        if _is_log(name):
            hint = "read decoded logs alone, each as an argument: rmqtool.read('log/', 'other/')"
            raise ReadError("a decoded log cannot be mixed with other inputs", name, hint=hint)
        with translated():
            return list(expand_sources([name]))
    if isinstance(item, (bytes, bytearray, memoryview)):
        data = bytes(item)
        return [lambda: BytesSource(BYTES_NAME, data)]
    if _is_packet(item):
        return _packets_part([item])
    if isinstance(item, Iterable):
        item = list(item)
        if item and all(map(_is_packet, item)):
            return _packets_part(item)
        return [part for each in item for part in _parts_of(each)]
    raise ArgumentError(
        f"cannot read {type(item).__name__}", hint="give a name, a folder, bytes, or scapy packets"
    )


def _is_packet(item: object) -> bool:
    """Return whether an object is a scapy packet, without importing scapy."""
    return any(cls.__module__ == "scapy.packet" for cls in type(item).__mro__)


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
    """Return an interface as an input, which each query opens."""
    if duration is not None and duration <= 0:
        raise ArgumentError(f"duration: {duration} seconds are not a valid time")

    def opened() -> Source:
        from .opened import interface_source

        return interface_source(interface, packet_filter, duration, promiscuous, drop_privileges)

    return Inputs([opened], live=True)


@contextmanager
def translated() -> Iterator[None]:
    """Translate errors of reading and writing to `rmqtool.Error`."""
    try:
        yield
    except CaptureError as error:
        raise ReadError(error.reason, error.path, error.offset, error.hint) from error
    except MissingLibraryError as error:
        raise MissingExtraError(str(error)) from error

"""`rmqtool.read`: where programs begin."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ..errors import ArgumentError
from .capture import Capture
from .inputs import inputs_of, interface_inputs

Given = str | os.PathLike[str] | bytes | bytearray | memoryview | Iterable[Any]


def read(
    *given: Given,
    interface: str | None = None,
    packet_filter: str = "",
    duration: float | None = None,
    promiscuous: bool = True,
    drop_privileges: bool = False,
    decode_as: Iterable[int] = (),
    jobs: int = 1,
) -> Capture:
    """Return the capture in what is given, or on an interface.

    Given are names of files and folders, ``-`` for standard input, bytes, lists of scapy packets,
    or lists of them. All together are one: a connection goes on from one to the next. `decode_as`
    are TCP ports of which every connection is taken to be RocketMQ; `jobs` is the number of
    processes that decode.

    `interface`: each question captures from it anew, for `duration` seconds or until nobody asks
    for more rows; `packet_filter` is tcpdump's. The right to capture is needed, and kept: unlike
    the command, this never changes whom the process runs as, unless `drop_privileges` says that it
    may give up its rights for good once the interface is open.

    Nothing is read yet. Raise ReadError for a name that does not exist, ArgumentError for what is
    no input.
    """
    if interface is None:
        return Capture(inputs_of(given), frozenset(decode_as), jobs)
    if given:
        raise ArgumentError("an interface and other inputs", hint="read them one after the other")
    live = interface_inputs(interface, packet_filter, duration, promiscuous, drop_privileges)
    return Capture(live, frozenset(decode_as))

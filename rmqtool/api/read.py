"""`rmqtool.read`: where programs begin."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dissectors.decode.secrets import key_log_named
from dissectors.tcp.decompression import MOST_TIMES

from ..errors import ArgumentError
from .capture import Capture
from .inputs import decoded_logs, inputs_of, interface_inputs

if TYPE_CHECKING:
    from dissectors.remoting.bodies.custom import NamedDecoder

    from ..plugins import BodyDecoder

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
    tls_keylog: str | os.PathLike[str] | None = None,
    max_ratio: int = MOST_TIMES,
    plugins: Iterable[str | os.PathLike[str] | BodyDecoder] = (),
) -> Capture:
    """Return a capture of files, bytes, or packets, or of a network interface.

    Inputs are names of files and folders, ``-`` for standard input, bytes, lists of scapy packets,
    or lists of these. Together they are one capture: connections continue from one to the next.
    `decode_as` lists TCP ports whose connections are all decoded as RocketMQ; `jobs` is the number
    of decoder processes. `tls_keylog` is a TLS key log file (default: SSLKEYLOGFILE, if it
    exists). `max_ratio` limits the expansion of a compressed capture, beyond 128 MiB. `plugins`
    decode message bodies: functions of a message, names of files that define ``decode_body``, or
    names of installed plug-ins; with plug-ins, one process decodes.
    Decoded logs, without other inputs, are also read: their rows, without commands.

    `interface`: each query captures for `duration` seconds, or until no more rows are requested;
    `packet_filter` has pcap-filter syntax. The process needs capture privileges and keeps them
    (unlike the command), unless `drop_privileges` lets it drop them for good once the interface
    is open.

    Nothing is read yet. Raise ReadError for a missing file, ArgumentError for an invalid input,
    PluginError for a plug-in that cannot be loaded.
    """
    named = [plugins] if isinstance(plugins, (str, os.PathLike)) else list(plugins)
    decoders: Sequence[NamedDecoder] = ()
    if named:
        from ..plugins import decoders_of

        decoders = decoders_of(named)
    if interface is None and (logs := decoded_logs(given)):
        if decoders:
            raise ArgumentError("plug-ins decode bodies of captures, not of decoded logs")
        from .decoded import DecodedLog

        return DecodedLog(logs)
    key_log = key_log_named(None if tls_keylog is None else os.fspath(tls_keylog))
    if interface is None:
        return Capture(inputs_of(given), frozenset(decode_as), jobs, decoders, key_log, max_ratio)
    if given:
        raise ArgumentError(
            "an interface cannot be combined with other inputs",
            hint="read them one after the other",
        )
    live = interface_inputs(interface, packet_filter, duration, promiscuous, drop_privileges)
    return Capture(live, frozenset(decode_as), plugins=decoders, tls_keylog=key_log)

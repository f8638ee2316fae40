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
    """Return the capture in what is given, or on an interface.

    Given are names of files and folders, ``-`` for standard input, bytes, lists of scapy packets,
    or lists of them. All together are one: a connection goes on from one to the next. `decode_as`
    are TCP ports of which every connection is taken to be RocketMQ; `jobs` is the number of
    processes that decode. `tls_keylog` is a file with secrets of TLS sessions, in the key log
    format; None: the one that SSLKEYLOGFILE names, where it is there. `max_ratio` is how many bytes
    each byte of a compressed capture may become, beyond 128 MiB. `plugins` decode bodies of
    messages: functions of a message, names of files that define ``decode_body``, names of installed
    ones; with them, one process decodes.
    Names of decoded logs, and of nothing else, are read as well: what they have, without commands.

    `interface`: each question captures from it anew, for `duration` seconds or until nobody asks
    for more rows; `packet_filter` is tcpdump's. The right to capture is needed, and kept: unlike
    the command, this never changes whom the process runs as, unless `drop_privileges` says that it
    may give up its rights for good once the interface is open.

    Nothing is read yet. Raise ReadError for a name that does not exist, ArgumentError for what is
    no input, PluginError for a plug-in that cannot be loaded.
    """
    named = [plugins] if isinstance(plugins, (str, os.PathLike)) else list(plugins)
    decoders: Sequence[NamedDecoder] = ()
    if named:
        from ..plugins import decoders_of

        decoders = decoders_of(named)
    if interface is None and (logs := decoded_logs(given)):
        if decoders:
            raise ArgumentError(
                "plug-ins decode bodies where captures are read, not in a decoded log"
            )
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

"""Errors for inputs with nothing to decode: a terminal, captures with only other protocols."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dissectors.conversations.recognition import (
    GRPC,
    HTTP2,
    NO_PAYLOAD,
    TLS,
    UNKNOWN,
)
from dissectors.quantities import counted

from ..ui.figures import text_of_counts
from ..ui.status import CommandError, ExitStatus

if TYPE_CHECKING:
    from dissectors.decode.pipeline import DecodeStats

_OTHER = "another program; capture the ports of NameServers (9876), brokers (10911) and clients"
_NO_CALLS = (
    "no RocketMQ call was recognized. It is another service, or the capture starts within a"
    " connection: start capturing before the clients connect"
)
_WAYS_OUT: Mapping[str, str] = {
    TLS: "encrypted. Capture unencrypted traffic, or have one end log its TLS secrets and use"
    " --tls-keylog FILE (rmqtool help tls)",
    GRPC: _NO_CALLS,
    HTTP2: _NO_CALLS,
    UNKNOWN: "unknown protocol; if a port is RocketMQ, use --decode-as PORT",
}
"""protocol → meaning and hint; every other one is `_OTHER`"""


def refuse_terminal(names: Sequence[str], command: str) -> None:
    """Raise CommandError if standard input is named but nothing is piped into `command`."""
    if "-" in names and sys.stdin.isatty():
        raise CommandError(
            "no capture on stdin (it is a terminal)",
            f"pipe one in: tcpdump -w - … | rmqtool {command}",
            ExitStatus.USAGE,
        )


def nothing_decoded(stats: DecodeStats) -> CommandError | None:
    """Return the error of a capture with only other protocols, or None.

    Conversations without payload are no reason: refused connections are evidence.
    """
    others = {name: n for name, n in stats.not_decoded.items() if name != NO_PAYLOAD}
    if stats.rocketmq_conversations or stats.replication_conversations or not others:
        return None
    message = (
        f"no RocketMQ in {counted(stats.conversations, 'conversation')}"
        f" ({text_of_counts(stats.not_decoded)})"
    )
    ranked = sorted(others, key=lambda name: -others[name])
    hints = [f"{name}: {_WAYS_OUT.get(name, _OTHER)}" for name in ranked]
    return CommandError(message, "\n".join(hints))

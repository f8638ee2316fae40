"""The options of `decode live`: the interface, and the options of `decode pcap`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dissectors.live.packet_ring import RING_BYTES

from ..decode.options import BODY_LIMIT, UNANSWERED_AFTER, DecodeRequest
from ..ui import common_options as options
from ..ui.declared import declared, derived, option, text_option
from ..ui.option_values import duration_option, refuse_named, size_option, usage_error
from ..ui.status import CommandError, ExitStatus

_CAPTURE = "Capture"


def _interface(_option: str, name: str | None, only_lists: bool) -> str:
    if not name and not only_lists:
        raise CommandError(
            "no interface given; use -i NAME",
            "list interfaces: rmqtool decode live -D",
            ExitStatus.USAGE,
        )
    return name or ""


def refuse_stdout(keep: str | None) -> None:
    """Raise CommandError if packets and rows have the same destination."""
    if keep == "-":
        raise CommandError(
            "-w -: stdout is used for rows",
            "name a file; for packets only, use tcpdump -i INTERFACE -U -w -",
            ExitStatus.USAGE,
        )


def kept_in(_option: str, path: str | None) -> str | None:
    """Return the file of `-w`; raise CommandError for standard output."""
    refuse_stdout(path)
    return path


def _secrets(write_secrets: bool, keep: str | None, tls_keylog: str) -> str:
    if write_secrets and not (keep and tls_keylog):
        raise usage_error("--write-secrets", "needs -w FILE and --tls-keylog FILE")
    return tls_keylog if write_secrets else ""


def seconds_of(option: str, text: str | None) -> float | None:
    """Return the seconds of an option: ``30``, ``500ms``, ``10m``; raise CommandError for 0."""
    length = duration_option(option, text)
    if length is not None and not length:
        raise usage_error(option, f"not a valid duration: {text!r}; give 30s, 10m or 2h")
    return None if length is None else float(length) / 1e9


def keep(panel: str) -> Any:
    """Return the option `--write` of a command that captures."""
    return option(
        "Also save the packets as pcapng.", panel, names="--write", metavar="FILE", read=kept_in
    )


def duration(panel: str) -> Any:
    """Return the option `--duration` of a command that captures; its value is in seconds."""
    text = "Stop after this time, such as 30s, 10m, or 2h (default: until Ctrl-C)."
    return text_option(text, panel, metavar="TIME", read=seconds_of)


PROMISCUOUS = option(
    "Capture only packets sent or received by this machine.",
    _CAPTURE,
    False,
    names="--no-promiscuous",
    value=True,
    read=lambda _option, only_own: not only_own,
)


def buffer(text: str) -> Any:
    """Return the option `--buffer` of a command that captures."""
    return text_option(
        text,
        _CAPTURE,
        "64MiB",
        metavar="SIZE",
        value=RING_BYTES,
        read=lambda option, size: size_option(option, size) or 0,
    )


USER = option(
    "Switch to this user after opening the interface (default: the user who ran sudo).",
    _CAPTURE,
    metavar="NAME",
)


def _overdue(option: str, text: str) -> int:
    length = duration_option(option, text)
    if not length:
        raise usage_error(option, f"not a valid duration: {text!r}; give 5s or 500ms")
    return int(length)


@declared
class LiveRequest:
    """The source of packets, and the packet file."""

    interface: str = text_option(
        "Capture from this network interface.",
        _CAPTURE,
        metavar="NAME",
        value="",
        read=_interface,
        needs=("list_interfaces",),
    )
    list_interfaces: bool = option("List interfaces and exit.", _CAPTURE, False)
    filter: str = options.capture_filter(_CAPTURE)
    keep: str | None = keep(_CAPTURE)
    write_secrets: bool = option(
        "Save TLS secrets in the -w file; its readers can decrypt it.",
        _CAPTURE,
        False,
    )
    secrets: str = derived(_secrets, "write_secrets", "keep", "tls_keylog", value="")
    """key log whose secrets are written to the packet file; empty: none"""
    duration: float | None = duration(_CAPTURE)
    promiscuous: bool = PROMISCUOUS
    buffer: int = buffer("Capture buffer size; packets beyond it are dropped.")
    user: str | None = USER


@declared
class LiveDecodeRequest(DecodeRequest, LiveRequest):
    """A `decode live` command: a live capture, decoded as `decode pcap` decodes a growing one."""

    unanswered_after: int = text_option(
        "Show a request as unanswered after this time (long polls: 30s).",
        _CAPTURE,
        "5s",
        metavar="TIME",
        value=UNANSWERED_AFTER,
        read=_overdue,
    )
    body_limit: int | None = replace(BODY_LIMIT, needs=("plugin", "view"))
    plugin: Sequence[str] = replace(options.PLUGINS, names=(), typed=list[str] | None, read=None)
    """plug-ins; loaded once the interface is open, without the rights that this takes"""

    def refuse_unused(self) -> None:
        """Raise CommandError for an option that has no effect on the requested rows."""
        super().refuse_unused()
        if not replace(self, follow=True).overdue_after:
            only = "works only with exchanges that are shown as they come"
            refuse_named(self.named_options, ("unanswered_after",), only)


NOT_LIVE = (
    *("sources", "follow_conversation", "messages", "list_messages", "sort", "pager"),
    *("max_ratio", "plugins", "no_message_rows", "follow", "jobs"),
)
"""options of `decode pcap` that `decode live` does not have"""

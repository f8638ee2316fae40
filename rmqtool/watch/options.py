"""The options of `watch`: packet source, notifications, recordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from analytics.diagnosis.problem import ProblemSeverity
from analytics.diagnosis.rule import DiagnosisRule
from dissectors.endpoint import split_endpoint
from dissectors.times import SECOND, Zone

from ..diagnose.request import chosen_rules
from ..live import options as live
from ..ui import common_options as options
from ..ui.console import When
from ..ui.declared import argument, declared, named_options, option, text_option
from ..ui.option_values import duration_option, one_of, refuse_named, size_option, usage_error
from ..ui.status import CommandError, ExitStatus

_CAPTURE, _EVENTS, _KEPT, _METRICS = "Capture", "Events", "Kept packets", "Metrics"
MIB = 1 << 20
_OF_INTERFACES = ("filter", "duration", "promiscuous", "buffer", "user", "processes")
_OF_INCIDENTS = ("keep_severity", "before", "after", "most_incidents", "incidents_size")
SYSLOG = "/dev/log"
"""the local syslog"""


class WatchFormat(StrEnum):
    """The format of events."""

    lines = "lines"
    json = "json"
    jsonl = "jsonl"


def _ns(option: str, text: str) -> int:
    length = duration_option(option, text)
    assert isinstance(length, Fraction)
    return int(length)


def _interval(option: str, text: str) -> int:
    length = _ns(option, text)
    if not length:  # pushes would never pause
        raise usage_error(option, f"not a valid duration: {text!r}; give 30s or 5m")
    return length


def _window(option: str, text: str) -> int:
    length = _ns(option, text)
    if length < 60 * SECOND:
        raise usage_error(option, f"too short: {text!r}; give 1m or more")
    return length


def _size(option: str, text: str) -> int:
    size = size_option(option, text) or 0
    if size < 4 * MIB:
        raise usage_error(option, f"too small: {text!r}; give 4MiB or more")
    return size


def _folder(_option: str, text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _listen(option: str, text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    address = split_endpoint(text)
    if address is None:
        raise usage_error(option, f"not an address: {text!r}; give 127.0.0.1:9464")
    return address


def _url(option: str, text: str | None) -> str:
    from .deliveries import Target

    if text and Target.of(text) is None:
        raise usage_error(option, "not a URL; give http://host:port/path or https://…")
    return text or ""


def _syslog(option: str, text: str | None) -> str | tuple[str, int]:
    if not text or text.startswith("/"):
        return text or ""
    address = split_endpoint(text)
    if address is None:
        raise usage_error(option, f"not an address: {text!r}; give {SYSLOG} or host:514")
    return address


def _duration(
    text: str, default: str, panel: str, seconds: int, read: Callable[[str, str], int] = _ns
) -> Any:
    value = seconds * SECOND
    return text_option(text, panel, default, metavar="TIME", value=value, read=read)


def _severity(text: str, panel: str, default: ProblemSeverity) -> Any:
    return text_option(
        text,
        panel,
        str(default),
        metavar="error|warning|info",
        value=default,
        read=partial(one_of, ProblemSeverity),
    )


@declared
class WatchRequest:
    """A `watch` command."""

    source: str = argument(
        "[CAPTURE]", "Capture to watch: a file, or - for stdin (otherwise: -i).", ""
    )
    interfaces: Sequence[str] = option(
        "Watch this network interface; repeatable.",
        _CAPTURE,
        [],
        names="--interface",
        metavar="NAME",
        typed=list[str],
    )
    filter: str = options.capture_filter(_CAPTURE)
    duration: float | None = live.duration(_CAPTURE)
    promiscuous: bool = live.PROMISCUOUS
    buffer: int = live.buffer(
        "Capture buffer size of each interface; packets beyond it are dropped."
    )
    user: str | None = live.USER
    processes: bool = option(
        "Also identify other users' processes, through a privileged helper process.",
        _CAPTURE,
        False,
    )
    decode_as: frozenset[int] = options.DECODE_AS
    tls_keylog: str = options.TLS_KEYLOG
    rules: Sequence[DiagnosisRule] = text_option(
        "Check only this rule; repeatable.",
        _EVENTS,
        [],
        names="--rule",
        metavar="RULE",
        value=(),
        read=chosen_rules,
    )
    severity: ProblemSeverity = _severity(
        "Report problems of this severity or higher.", _EVENTS, ProblemSeverity.INFO
    )
    window: int = text_option(
        "Time window that the rules check.",
        _EVENTS,
        "30m",
        metavar="TIME",
        value=1800 * SECOND,
        read=_window,
    )
    status: int = _duration(
        "Report the state of the watch this often (0: never).", "1h", _EVENTS, 3600
    )
    format: WatchFormat = option("Output format of events.", _EVENTS, WatchFormat.lines)
    webhook: str = text_option(
        "Also POST each event as JSON to this URL.", _EVENTS, metavar="URL", value="", read=_url
    )
    syslog: str | tuple[str, int] = text_option(
        "Also send events to syslog: /dev/log, or host:514 (UDP).",
        _EVENTS,
        metavar="ADDRESS",
        value="",
        read=_syslog,
    )
    ring_folder: Path | None = text_option(
        "Keep the latest packets in this folder, as pcapng files.",
        _KEPT,
        names="--ring-dir",
        metavar="DIR",
        read=_folder,
    )
    ring: int = text_option(
        "Size of the ring.", _KEPT, "2GiB", metavar="SIZE", value=2 << 30, read=_size
    )
    incidents: Path | None = text_option(
        "Keep the packets around each problem in this folder (needs --ring-dir).",
        _KEPT,
        metavar="DIR",
        read=_folder,
    )
    keep_severity: ProblemSeverity = _severity(
        "Keep packets of problems of this severity or higher.", _KEPT, ProblemSeverity.ERROR
    )
    before: int = _duration("Keep packets from this long before the problem.", "60s", _KEPT, 60)
    after: int = _duration(
        "Keep packets until this long after the problem starts.", "30s", _KEPT, 30
    )
    most_incidents: int = option(
        "Keep this many incidents; the oldest are removed.", _KEPT, 100, min=1, metavar="N"
    )
    incidents_size: int = text_option(
        "Keep incidents up to this total size; the oldest are removed.",
        _KEPT,
        "1GiB",
        metavar="SIZE",
        value=1 << 30,
        read=_size,
    )
    metrics: tuple[str, int] | None = text_option(
        "Serve Prometheus metrics and /healthz here, such as 127.0.0.1:9464.",
        _METRICS,
        metavar="HOST:PORT",
        read=_listen,
    )
    otlp: str = text_option(
        "Push metrics over OTLP/HTTP to this URL.",
        _METRICS,
        metavar="URL",
        value="",
        read=_url,
    )
    otlp_interval: int = _duration("Push metrics this often.", "30s", _METRICS, 30, _interval)
    zone: Zone = options.TIME_ZONE
    colour: When = options.COLOR
    quiet: bool = options.QUIET
    named_options: Mapping[str, str] = named_options()

    def check(self) -> None:
        """Raise CommandError for no source, or for contradicting sources."""
        if self.source and self.interfaces:
            raise CommandError(
                "a capture and an interface cannot be combined",
                "omit one of them",
                ExitStatus.USAGE,
            )
        if not self.source and not self.interfaces:
            raise CommandError(
                "no interface given; use -i NAME, or - for a capture on stdin",
                "list interfaces: rmqtool decode live -D",
                ExitStatus.USAGE,
            )
        named = self.named_options
        if self.source:
            refuse_named(named, _OF_INTERFACES, "needs -i NAME: it is for live captures")
        if self.incidents is not None and self.ring_folder is None:
            raise usage_error("--incidents", "needs --ring-dir DIR: its packets come from the ring")
        if self.ring_folder is None:
            refuse_named(named, ("ring",), "needs --ring-dir DIR")
        if self.incidents is None:
            refuse_named(named, _OF_INCIDENTS, "needs --incidents DIR")
        if not self.otlp:
            refuse_named(named, ("otlp_interval",), "needs --otlp URL")

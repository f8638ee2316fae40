"""Values of options as all commands read them: times, zones, durations, sizes, ports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dissectors.foreign import natural_of
from dissectors.quantities import duration_ns, size_bytes
from dissectors.times import UTC_ZONE, Moment, Zone, moment_of, text_of_time, zone_named

from .errors import reason_of
from .figures import show_times_in
from .status import CommandError, ExitStatus

if TYPE_CHECKING:
    from dissectors.where.conditions import Test
    from dissectors.where.fields import FieldSet

_PORT = re.compile(r"(?:tcp\.(?:src|dst)?port\s*==?\s*)?(\d{1,5})(?:\s*,\s*rocketmq)?", re.ASCII)


def usage_error(option: str, reason: str) -> CommandError:
    """Return the error for the value of an option."""
    return CommandError(f"{option}: {reason}", status=ExitStatus.USAGE)


def refuse_named(named: Mapping[str, str], fields: Iterable[str], reason: str) -> None:
    """Raise CommandError for the first of `fields` that the user named (see `named_options`)."""
    for field in fields:
        if field in named:
            raise usage_error(named[field], reason)


def one_of(known: Iterable[str], option: str, text: str | None) -> Any:
    """Return the enum value of an option; None for None."""
    for member in known:
        if member == text:
            return member
    if text is None:
        return None
    raise usage_error(option, f"must be one of {', '.join(known)}, not {text!r}")


@contextmanager
def about(option: str) -> Iterator[None]:
    """Add the option's name to errors about its file."""
    try:
        yield
    except CommandError as error:
        if error.message.startswith("--"):
            raise
        raise CommandError(f"{option}: {error.message}", error.hint, error.status) from error
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        raise CommandError(f"{option}: {name}{reason_of(error)}") from error


def ports_of(texts: Sequence[str]) -> frozenset[int]:
    """Return the ports of --decode-as: ``9999``, ``8080,8081`` or ``tcp.port==9999``."""
    ports = set()
    for text in texts:
        # `8080,rocketmq` as in tshark is one port, `8080,8081` are two
        whole = _PORT.fullmatch(text.strip())
        for part in [text] if whole else text.split(","):
            match = _PORT.fullmatch(part.strip())
            port = natural_of(match[1]) if match is not None else None
            if port is None or not 0 < port < 65536:
                raise usage_error("--decode-as", f"{part.strip()!r} is not a TCP port (1 to 65535)")
            ports.add(port)
    return frozenset(ports)


def zone_option(name: str) -> Zone:
    """Return the zone of --tz and show times in it from now on."""
    zone = zone_named(name)
    if zone is None:
        from zoneinfo import available_timezones

        from dissectors.where.fields import suggestion

        near = suggestion(name, available_timezones(), "zones")
        raise usage_error(
            "--tz", f"unknown zone {name!r}{near or '; give local, UTC, +08:00 or Asia/Shanghai'}"
        )
    show_times_in(zone)
    return zone


def time_option(option: str, text: str | None, zone: Zone = UTC_ZONE) -> Moment | None:
    """Return the time of an option; without an offset it is in `zone`."""
    if text is None:
        return None
    moment = moment_of(text, zone)
    if moment is None:
        raise usage_error(
            option,
            f"not a valid time: {text!r}; give 2026-11-20T10:00:00, 10:00 or 10:00+08:00"
            f" (no offset means {zone.name})",
        )
    return moment


def until_option(
    option: str, text: str | None, since: Moment | None, zone: Zone = UTC_ZONE
) -> Moment | None:
    """Return the end of the time range that begins with `since`; raise CommandError if it is empty.

    Without a date, times are compared only in one zone: they are on the first day of the input.
    """
    until = time_option(option, text, zone)
    if since is None or until is None or since.has_date != until.has_date:
        return until
    if since.ns >= until.ns and (until.has_date or since.zone.name == until.zone.name):
        raise usage_error("--since and --until", "the range is empty")
    return until


def where_option(
    option: str, text: str, fields: Callable[[], FieldSet], zone: Zone = UTC_ZONE
) -> Test | None:
    """Return the test of a filter, or None without one; times without an offset are in `zone`."""
    if not text.strip():
        return None
    from dissectors.where.filter import WhereError, compile_where

    try:
        return compile_where(text, fields(), zone)
    except WhereError as error:
        reason = f"{option}: {error.reason}"
        raise CommandError(reason, error.pointed(), ExitStatus.USAGE) from None


def size_option(option: str, text: str | None) -> int | None:
    """Return the bytes of an option: ``512``, ``4KiB``."""
    if text is None:
        return None
    size = size_bytes(text)
    if size is None:
        raise usage_error(option, f"not a valid size: {text!r}; give 512, 4KiB or 0")
    return size


def names_in(text: str | None) -> tuple[str, ...]:
    """Return the distinct names of a comma-separated list."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, (text or "").split(",")))))


def duration_option(option: str, text: str | None) -> Fraction | None:
    """Return the nanoseconds of an option: ``500ms``, ``5m``, ``3`` (seconds)."""
    if text is None:
        return None
    length = duration_ns(text, bare="s")
    if length is None:
        raise usage_error(option, f"not a valid duration: {text!r}; give 500ms, 10s, 5m or 1h")
    return length


def text_of_moment(moment: Moment | None) -> str | None:
    """Return a time in the form for manifests; None for None."""
    if moment is None:
        return None
    text = text_of_time(moment.ns)
    if moment.has_date:
        return text
    zone = moment.zone
    return text[11:] if zone is UTC_ZONE else f"{text[11:-1]} {zone.name}"

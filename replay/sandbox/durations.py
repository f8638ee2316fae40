"""Durations in options and injections of the sandbox."""

from __future__ import annotations

from dissectors.quantities import DURATIONS_SPELLED, duration_ns

from .errors import SandboxError


def duration_ms(text: str) -> int:
    """Return the milliseconds of `20ms`, `1.5s`, `2m`, `1h`; raise SandboxError for others."""
    length = duration_ns(text)
    if length is None:
        hint = f"give a number and a unit ({DURATIONS_SPELLED}): 20ms"
        raise SandboxError(f"not a valid duration: {text!r}", hint)
    return round(length / 1_000_000)

"""Parse faults from one-line options or a TOML file, with the same keys.

`latency=20ms..200ms broker=broker-b from=5s until=15s`, `busy p=0.3 requests=send`,
`error=16 remark='no permission' topic=Order*`; in a file `[[fault]]` tables with these words as
keys and `kind` for the first one.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from dissectors.foreign import Unreadable, natural_of, real_of, toml_of
from dissectors.quantities import size_bytes
from dissectors.remoting.codes import RequestCode, ResponseCode

from ..errors import SandboxError
from .injection import FAMILIES, NOT_OF_REQUESTS, Injection, InjectionKind, duration_ms, latency_of

_EXAMPLE: Final = "for example: busy p=0.3 broker=broker-a from=5s until=15s"
_FILE_LIMIT: Final = 1024 * 1024


def injections_of_file(path: Path) -> tuple[list[Injection], int | None]:
    """Parse a TOML file to injections and an optional seed; SandboxError names the place."""
    try:
        with path.open("rb") as file:
            text = file.read(_FILE_LIMIT + 1)
        if len(text) > _FILE_LIMIT:
            raise SandboxError(f"{path}: more than {_FILE_LIMIT} bytes")
        table = toml_of(text)
    except OSError as error:
        raise SandboxError(f"{path}: {error.strerror or error}") from None
    except Unreadable as error:
        raise SandboxError(f"{path}: {error}", "it should be TOML with [[fault]] tables") from None
    return _injections_of_table(table, str(path))


def _injections_of_table(table: dict[str, object], name: str) -> tuple[list[Injection], int | None]:
    unknown = sorted(set(table) - {"fault", "seed"})
    if unknown:
        raise SandboxError(f"{name}: unknown key {unknown[0]}", "known keys: seed and [[fault]]")
    seed = table.get("seed")
    if seed is not None and type(seed) is not int:
        raise SandboxError(f"{name}: seed is not an integer")
    rows = table.get("fault", [])
    if not isinstance(rows, list):
        raise SandboxError(f"{name}: fault is not an array of tables", "write [[fault]]")
    injections = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise SandboxError(f"{name}, fault {number}: not a table", "write [[fault]]")
        try:
            injections.append(injection_of_words({key: _word(value) for key, value in row.items()}))
        except SandboxError as error:
            raise SandboxError(f"{name}, fault {number}: {error.reason}", error.hint) from None
    return injections, seed


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)


def injection_of_text(text: str) -> Injection:
    """Parse the injection of an option; SandboxError if invalid."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise SandboxError(f"fault {text!r}: {error}", _EXAMPLE) from None
    if not words:
        raise SandboxError("an empty fault", _EXAMPLE)
    pairs: dict[str, str] = {}
    kind, equals, value = words[0].partition("=")
    pairs["kind"] = kind
    if equals:
        pairs["value"] = value
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if not equals or name in pairs:
            raise SandboxError(f"fault {text!r}: {word!r} is not a new key=value", _EXAMPLE)
        pairs[name] = value
    try:
        return injection_of_words(pairs)
    except SandboxError as error:
        raise SandboxError(f"fault {text!r}: {error.reason}", error.hint) from None


def injection_of_words(words: Mapping[str, str]) -> Injection:
    """Return the injection of keys and values; `value` is the kind's.

    Raise SandboxError if it is invalid.
    """
    pairs = dict(words)
    name = pairs.pop("kind", "")
    if name not in list(InjectionKind):
        raise SandboxError(f"{name!r} is not a kind of fault", f"kinds: {', '.join(InjectionKind)}")
    kind = InjectionKind(name)
    own = pairs.pop("value", None)
    if own is not None:
        key = _VALUE_OF.get(kind)
        if key is None:
            raise SandboxError(f"{kind} takes no value", _EXAMPLE)
        if key in pairs:
            raise SandboxError(f"{key} is given twice", _EXAMPLE)
        pairs[key] = own
    fields: dict[str, object] = {"kind": kind}
    for key, text in pairs.items():
        if key not in FAULT_KEYS:
            raise SandboxError(f"{key!r} is not a key of a fault", f"keys: {', '.join(FAULT_KEYS)}")
        field, read = FAULT_KEYS[key]
        fields[field] = value = read(text)
        # `requests=all` says what they do
        if kind not in _KINDS_OF.get(key, InjectionKind) and not (key == "requests" and not value):
            raise SandboxError(f"{key} has no effect on {kind}", "omit it")
    injection = Injection(**fields)  # type: ignore[arg-type]
    _check(injection)
    return injection


def _check(injection: Injection) -> None:
    if injection.kind is InjectionKind.LATENCY and injection.latency is None:
        raise SandboxError("latency needs a duration", "for example latency=20ms..200ms")
    if injection.until_ms is not None and injection.until_ms <= injection.from_ms:
        raise SandboxError("the fault ends before it begins", "until must be later than from")
    if bool(injection.every_ms) != bool(injection.for_ms) or injection.for_ms > injection.every_ms:
        raise SandboxError(
            "every and for must be given together; for must not exceed every",
            "for example every=30s for=5s",
        )
    if injection.every_ms and injection.every_ms < 100:
        raise SandboxError("the fault recurs more often than every 100ms")
    if (
        injection.kind is InjectionKind.FREEZE
        and not injection.every_ms
        and injection.until_ms is None
    ):
        raise SandboxError("the freeze has no end", "give until, or every and for")


def _codes_of(text: str) -> frozenset[int]:
    """Return the codes of `send`, `pull,heartbeat`, `310` or `SEND_MESSAGE_V2`."""
    codes: set[int] = set()
    for word in text.split(","):
        name = word.strip()
        if name == "all":
            return frozenset()
        if name in FAMILIES:
            codes |= FAMILIES[name]
        elif (code := natural_of(name)) is not None and code < 1 << 31:
            codes.add(code)
        elif name in RequestCode.__members__:
            codes.add(RequestCode[name])
        else:
            hint = f"give a code, its name, or {', '.join(FAMILIES)}"
            raise SandboxError(f"{name!r} is not a request", hint)
    return frozenset(codes)


def _code_of(text: str) -> int:
    name = text.strip()
    if name in ResponseCode.__members__:
        return ResponseCode[name]
    code = natural_of(name)
    if code is not None and 0 < code < 1 << 31:
        return code
    raise SandboxError(f"{name!r} is not a response code", "for example 2 or SYSTEM_BUSY")


def _share_of(text: str) -> float:
    number = real_of(text.removesuffix("%"))
    share = -1.0 if number is None else number / (100 if text.endswith("%") else 1)
    if not 0 <= share <= 1:
        raise SandboxError(f"{text!r} is not a valid probability", "give 0.3 or 30%")
    return share


def _count_of(text: str) -> int:
    count = natural_of(text)
    if count is None or count >= 1_000_000_000:
        raise SandboxError(f"{text!r} is not a number")
    return count


def _rate_of(text: str) -> int:
    rate = size_bytes(text.strip().lower().removesuffix("/s"))
    if not rate:
        raise SandboxError(f"{text!r} is not a valid rate", "for example 1KiB/s")
    return rate


def _truth_of(text: str) -> bool:
    if text not in ("true", "false", "yes", "no"):
        raise SandboxError(f"{text!r} is neither true nor false")
    return text in ("true", "yes")


FAULT_KEYS: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "broker": ("broker", str),
    "topic": ("topic", str),
    "group": ("group", str),
    "client": ("client", str),
    "requests": ("codes", _codes_of),
    "from": ("from_ms", duration_ms),
    "until": ("until_ms", duration_ms),
    "every": ("every_ms", duration_ms),
    "for": ("for_ms", duration_ms),
    "p": ("probability", _share_of),
    "times": ("times", _count_of),
    "latency": ("latency", latency_of),
    "code": ("code", _code_of),
    "remark": ("remark", str),
    "stored": ("stored", _truth_of),
    "rate": ("rate", _rate_of),
}
"""key → field of `Injection`, and how its text is read"""

_VALUE_OF: Final = {
    InjectionKind.LATENCY: "latency",
    InjectionKind.ERROR: "code",
    InjectionKind.SLOW_READ: "rate",
}
_OF_REQUESTS: Final = frozenset(InjectionKind) - NOT_OF_REQUESTS
_KINDS_OF: Final = {
    "code": frozenset({InjectionKind.ERROR}),
    "remark": frozenset(
        {
            InjectionKind.ERROR,
            InjectionKind.BUSY,
            InjectionKind.DISK_FULL,
            InjectionKind.READ_ONLY,
        }
    ),
    "rate": frozenset({InjectionKind.SLOW_READ}),
    # the work is always done
    "stored": _OF_REQUESTS - {InjectionKind.LATENCY, InjectionKind.FREEZE},
    "latency": _OF_REQUESTS - {InjectionKind.FREEZE},
    "client": frozenset(InjectionKind) - {InjectionKind.LEAVE_ROUTE},
    **dict.fromkeys(("topic", "group", "requests", "p", "times"), _OF_REQUESTS),
}
"""key → the kinds that it has an effect on; others: all"""

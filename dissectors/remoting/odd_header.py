"""Read headers that differ from Java's, like the two JSON libraries of RocketMQ.

RocketMQ through 5.3 uses fastjson 1, later releases fastjson2. A header that either accepts is
accepted; how they differ is a note for a finding. RocketMQ: RemotingCommand.headerDecode;
fastjson's JavaBeanDeserializer and TypeUtils, fastjson2's ObjectReaderBean and JSONReaderUTF8.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from ..foreign import LONGEST_REAL, integer_of, read_json
from .code_names import language_code, language_name
from .command import RemotingCommand
from .fastjson.codec import decimal_text, double_text, encode_json, may_be_too_much
from .fastjson.reader import (
    BARE_NAME,
    BARE_NUMBER,
    CONTROL,
    FASTJSON1,
    FASTJSON2,
    MORE_COMMAS,
    NO_VALUE,
    SET,
    SMALL_SUFFIX,
    UNKNOWN_ESCAPE,
    FastjsonReader,
    PairMap,
    Real,
    canonical_name,
    ignored_by_fastjson2,
)

_NUMBERS: Final = ("code", "opaque", "flag", "version")
_SERIALIZATION: Final = "serializeTypeCurrentRPC"
_NAMES: Final = {
    name.lower(): name for name in (*_NUMBERS, "language", "remark", "extFields", _SERIALIZATION)
}
"""Members by their names as fastjson 1 compares them: without case, `_`, and `-`."""
_TYPE: Final = "@type"
_OWN_TYPE: Final = "org.apache.rocketmq.remoting.protocol.RemotingCommand"

LAST_COMMA: Final = "a comma behind the value"
_REFUSED_BY_BOTH: Final = frozenset((BARE_NUMBER, SMALL_SUFFIX, UNKNOWN_ESCAPE))
_REFUSED_BY_1: Final = _REFUSED_BY_BOTH | {LAST_COMMA}
_REFUSED_BY_2: Final = _REFUSED_BY_BOTH | {BARE_NAME, CONTROL, MORE_COMMAS, NO_VALUE, SET}
_CONTROLS: Final = "".join(map(chr, (*range(33), 127)))
"""Characters that fastjson 1 skips before and after the value."""
_BLANKS: Final = " \t\n\r\f\b"
_OTHER_BLANK: Final = re.compile(r"[^\S \t\n\r\f]|\ufeff")
"""White space to Python, but to neither library."""
_STRING: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.DOTALL)

_LEAST, _MOST = -(1 << 31), (1 << 31) - 1
_LARGEST_SCALE: Final = 100
"""Maximum decimals, or zeros before the point, that fastjson 1 accepts in an int."""
_GROUPED: Final = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+", re.ASCII)
_DECIMAL: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:([eE])[-+]?\d*)?", re.ASCII)
_SHOWN: Final = 80
"""Characters of a value in a note."""

_decoder: Final = msgspec.json.Decoder(float_hook=Real)


class OddHeader(NamedTuple):
    """A header that differs from Java's."""

    command: RemotingCommand
    note: str | None
    """how RocketMQ releases differ in reading it, or None"""


class _Refused(Exception):
    """A library does not accept the header; the text says why."""


def odd_header_of(header: bytes) -> OddHeader | None:
    """Return the header as read by either library, or None if both refuse it."""
    try:
        return _odd_header_of(header)
    except Exception:  # the last line of defence: this also runs in searches for frames
        return None


def _odd_header_of(header: bytes) -> OddHeader | None:
    value = None if may_be_too_much(header) else read_json(_decoder, header)
    oddities: set[str] = set()
    if value is None:
        value, oddities = _read_tolerantly(header.decode("utf-8", "replace"))
    if not isinstance(value, dict):
        return None
    old, new = _Reading(value, False, oddities), _Reading(value, True, oddities)
    if old.command is None and new.command is None:
        return None
    notes = _notes_of(old, new)
    # If both accept it, fastjson 1 counts: it also finds names that are spelled differently.
    command = old.command or new.command
    assert command is not None
    if old.command is not None and new.command is not None and not old.language:
        command.language = new.language
    if not command.language:
        command.language = _text_of(old.values.get("language"), False) or ""
    return OddHeader(command, "; ".join(notes) or None)


def _read_tolerantly(text: str) -> tuple[object, set[str]]:
    """Return the value of a text that is not strict JSON, and its oddities."""
    inner = text.removeprefix("\ufeff").strip(_CONTROLS)
    oddity = LAST_COMMA if inner.endswith(",") else None
    if oddity:
        inner = inner[:-1]
    reader = FastjsonReader(inner, as_written=True)
    value = reader.read()
    if reader.problem is not None or _OTHER_BLANK.search(_STRING.sub("", inner)):
        return None, set()
    begin = text.find(inner)
    if oddity:
        reader.oddities.add(oddity)
    around = text[:begin] + text[begin + len(inner) :].rstrip("\x1a,")
    if around.strip(_BLANKS + "\0"):
        reader.oddities.add(CONTROL)
    return value, reader.oddities


class _Reading:
    """A header as read by one of the libraries."""

    def __init__(self, members: Mapping[str, object], new: bool, oddities: set[str]) -> None:
        self.new = new
        self.other_names: list[str] = []
        """members found by another spelling"""
        self.values: dict[str, object] = {}
        self.command: RemotingCommand | None = None
        self.language = ""
        self.refusal = ""
        for name, value in members.items():
            self._take(name, value)
        try:
            odd = oddities & (_REFUSED_BY_2 if new else _REFUSED_BY_1)
            if odd:
                raise _Refused(min(odd))
            if not new and members.get(_TYPE, _OWN_TYPE) != _OWN_TYPE:
                raise _Refused(_TYPE)
            self.command = self._read()
        except _Refused as refused:
            self.refusal = str(refused)

    def _take(self, name: str, value: object) -> None:
        member = _NAMES.get(canonical_name(name))
        if member is None:
            return
        if member in self.values or (name != member and self.new):
            return  # of two spellings the first one counts
        self.values[member] = value
        if name != member and member != _SERIALIZATION:
            self.other_names.append(name)

    def _read(self) -> RemotingCommand | None:
        values, new = self.values, self.new
        if "code" not in values and "opaque" not in values:
            raise _Refused("no code and no opaque")
        _check_serialization(values.get(_SERIALIZATION), new)
        numbers = [_int_of(name, values.get(name), new) for name in _NUMBERS]
        code, opaque, flag, version = numbers
        self.language = _language_of(values.get("language"), new)
        remark = _text_of(values.get("remark"), new)
        fields = _fields_of(values.get("extFields"), new)
        return RemotingCommand(code, opaque, flag, self.language, version, remark, fields)


def _notes_of(old: _Reading, new: _Reading) -> list[str]:
    """Describe how releases differ."""
    notes = []
    for reading, name in ((old, FASTJSON1), (new, FASTJSON2)):
        if reading.command is None:
            notes.append(f"{name} rejects it: {reading.refusal}")
    if old.command is not None and old.other_names:
        notes = [ignored_by_fastjson2(old.other_names)]
    elif old.command is not None and new.command is not None:
        for name in (*_NUMBERS, "language", "remark", "ext_fields"):
            first, second = getattr(old.command, name), getattr(new.command, name)
            if first != second:
                shown = f"{str(first)[:_SHOWN]!r} and {str(second)[:_SHOWN]!r}"
                notes.append(f"{name} is {shown} to {FASTJSON1} and {FASTJSON2}")
    if old.values.get("opaque") in (None, ""):
        notes.append("no opaque: the receiver takes a number of its own")
    return notes


def _check_serialization(value: object, new: bool) -> None:
    if value is None or (isinstance(value, str) and not isinstance(value, Real)):
        return
    number = _truncated(value) if new and isinstance(value, Real) else value
    if isinstance(number, bool) or number not in (0, 1):
        raise _Refused(_SERIALIZATION)


def _int_of(name: str, value: object, new: bool) -> int:
    """Return a 32-bit integer; missing members and empty texts are 0."""
    if value is None:
        return 0
    number: int | None = None
    if isinstance(value, str) and len(value) > LONGEST_REAL:
        raise _Refused(f"{name} with {len(value)} characters")
    if isinstance(value, Real):
        number = _truncated(value) if new else _int_value(value)
    elif isinstance(value, str):
        number = _parsed_by_2(value) if new else _parsed_by_1(value)
    elif isinstance(value, int):
        number = int(value)
    elif new:
        number = _unwrapped(value)
    if number is None or not _LEAST <= number <= _MOST:
        raise _Refused(f"{name} {_shown(value)}")
    return number


def _parsed_by_1(text: str) -> int | None:
    """Parse an integer like TypeUtils.castToInt."""
    if text in ("", "null", "NULL"):
        return 0
    return _parsed_digits(text)


def _parsed_digits(text: str) -> int | None:
    whole = text.replace(",", "")
    if "." in whole:
        head, _, zeros = whole.partition(".")
        whole = whole if zeros.strip("0") else head
    digits = whole.removeprefix("+") if whole[:2] != "+-" else whole  # Java takes one sign only
    if not digits.isascii() and digits.removeprefix("-").isdecimal():
        digits = "".join(c if c == "-" else str(_digit(c)) for c in digits)
    sign, digits = digits[: digits.startswith("-")], digits.removeprefix("-")
    # Without leading zeros, which count for the longest number that `integer_of` accepts.
    return integer_of(sign + (digits.lstrip("0") or digits[-1:]))


def _digit(char: str) -> int:
    import unicodedata

    return unicodedata.decimal(char)


def _parsed_by_2(text: str) -> int | None:
    """Parse an integer like JSONReader.readInt32Value."""
    if text in ("", "null", "false"):
        return 0
    if text == "true":
        return 1
    if not text.isascii() or ("," in text and not _GROUPED.fullmatch(text)):
        return None
    digits = text.replace(",", "")
    match = _DECIMAL.fullmatch(digits)
    if match is not None and ("." in digits or match[1]):
        return _truncated(Real(digits.rstrip("eE+-")))
    return _parsed_digits(digits)


def _int_value(value: Real) -> int | None:
    """Convert a number with a fraction like fastjson 1: BigDecimal.intValue."""
    number = Decimal(value)
    exponent = number.as_tuple().exponent
    if value.lstrip("+-").startswith(".") or not isinstance(exponent, int):
        return None
    return _low_bits(int(number)) if abs(exponent) <= _LARGEST_SCALE else None


def _truncated(value: Real) -> int | None:
    """Convert a number with a fraction or an exponent like fastjson2."""
    if len(value) > LONGEST_REAL:
        return None
    if "e" in value or "E" in value:
        number = float(value)
        return int(max(_LEAST, min(number, _MOST))) if not math.isnan(number) else None
    return _low_bits(int(Decimal(value)))


def _low_bits(number: int) -> int:
    low = number & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def _unwrapped(value: object) -> int | None:
    """Convert an array of one number, or an object, like fastjson2."""
    if isinstance(value, dict):
        inner = value.get("val")
        if isinstance(inner, Real):
            return _truncated(inner)
        return inner if type(inner) is int else 0
    if not isinstance(value, list) or len(value) != 1:
        return None
    (inner,) = value
    if isinstance(inner, Real):
        return _truncated(inner)
    if isinstance(inner, str):
        return _parsed_by_1(inner) if inner.lstrip("+-").isdecimal() and inner.isascii() else None
    return _low_bits(inner) if type(inner) is int else None


def _language_of(value: object, new: bool) -> str:
    """Return the name of a language as Java spells it; empty if Java does not know it."""
    if isinstance(value, (bool, list, dict)):
        raise _Refused(f"language {_shown(value)}")
    if isinstance(value, Real):
        value = _truncated(value) if new else -1
    if isinstance(value, int):
        name = language_name(value)
        if language_code(name) is None:
            raise _Refused(f"language {value}")
        return name
    if not isinstance(value, str) or not value.isascii():
        return ""
    text = value.upper()
    if language_code(text) is not None or not new:
        return text if language_code(text) is not None else ""
    number = integer_of(text)
    if number is not None:
        name = language_name(number)
        return name if language_code(name) is not None else ""
    return _LOOSE_LANGUAGES.get(text.replace("_", ""), "")


_LOOSE_LANGUAGES: Final = {
    language_name(code).replace("_", ""): language_name(code) for code in range(14)
}


def _text_of(value: object, new: bool) -> str | None:
    """Return a value as text; other types become JSON."""
    if isinstance(value, Real):
        if value.lstrip("+-").startswith("."):
            raise _Refused(value)
        if new and ("e" in value or "E" in value):
            return double_text(float(value))
        return decimal_text(value)
    if value is None or isinstance(value, str):
        return value
    return encode_json(_without_nulls(value)).decode()


def _without_nulls(value: object) -> object:
    """Return a value without null members, as Java writes it."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list) and not isinstance(value, PairMap):
        return [_without_nulls(item) for item in value]
    return value


def _fields_of(value: object, new: bool) -> dict[str, str]:
    """Return the ext fields as texts, without null values."""
    if value is None or (new and value in ("", "null")):  # also in fastjson 1 of 5.x, if it is last
        return {}
    if new and isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        raise _Refused(f"extFields {_shown(value)}")
    texts = {str(name): _text_of(item, new) for name, item in value.items()}
    return {name: text for name, text in texts.items() if text is not None}


def _shown(value: object) -> str:
    """Format a value for a note."""
    return encode_json(value).decode()[:_SHOWN]

"""How long before its send a message got its UNIQ_KEY, by the key: as SQL, in Python and NumPy.

Rules: a UNIQ_KEY ends in the milliseconds of the month at its birth and a counter. The month is
that of the client's zone, so the time since birth is known but for multiples of 15 minutes, by
which zones differ from UTC and at which months begin; the smallest is taken. A text that does not
end in twelve hexadecimal digits, or is no key by its length, does not say its birth.
RocketMQ: MessageClientIDSetter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from dissectors.foreign import hexadecimal_of
from dissectors.remoting.ids.message_ids import KEY_END, KEY_LENGTHS

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

Numbers = TypeVar("Numbers", int, "NDArray[np.int64]")
LENGTHS_SQL: Final = f"({', '.join(map(str, KEY_LENGTHS))})"
"""`KEY_LENGTHS` as an SQL list."""
_ZONES_US: Final = 15 * 60 * 1_000_000
"""What zones are multiples of, from UTC."""
_SLACK_US: Final = 1_000_000
"""A clock that steps: a message may seem to be sent so long before it was born."""
_COUNTER_DIGITS: Final = 4
"""Digits of the counter, behind the milliseconds."""
_NO_DIGIT: Final = 255


def lead_sql(key: str, time_us: str) -> str:
    """Return, as SQL, the µs from the birth of a UNIQ_KEY to a time; null: the key does not say."""
    born = f"substr({key}, -{KEY_END}, {KEY_END - _COUNTER_DIGITS})"
    born_us = f"cast(conv({born}, 16, 10) as long) * 1000"
    lead = f"pmod({time_us} - {born_us} + {_SLACK_US}, {_ZONES_US}) - {_SLACK_US}"
    digits = f"regexp_like(substr({key}, -{KEY_END}), '^[0-9A-Fa-f]{{{KEY_END}}}')"
    return f"if(octet_length({key}) in {LENGTHS_SQL} and {digits}, {lead}, null)"


def mark_of(key: str) -> int | None:
    """Return the number in which a UNIQ_KEY ends, birth and counter; None: it does not say them."""
    return hexadecimal_of(key[-KEY_END:]) if len(key) in KEY_LENGTHS else None


def lead_of(mark: Numbers, begin: Numbers) -> Numbers:
    """Return the µs from the birth of a message, or of many, to `begin`.

    `mark` is what `mark_of` or `marks_in` gives; of a negative one the result has no meaning.
    """
    born_us = (mark >> 4 * _COUNTER_DIGITS) * 1000
    return (begin - born_us + _SLACK_US) % _ZONES_US - _SLACK_US


def lead_to(key: str, begin: int) -> int | None:
    """Return the µs from the birth of a UNIQ_KEY to `begin`; None: the key does not say."""
    mark = mark_of(key)
    return None if mark is None else lead_of(mark, begin)


def marks_in(keys: pyarrow.ChunkedArray[pyarrow.StringScalar]) -> NDArray[np.int64]:
    """Return `mark_of` each key; -1 where it is None, and for a null."""
    import numpy as np
    import pyarrow

    array = keys.cast(pyarrow.large_string()).combine_chunks()
    found = np.full(len(array), -1, dtype=np.int64)
    _, bounds, texts = array.buffers()
    if not len(array) or bounds is None or texts is None:
        return found
    begins = np.frombuffer(memoryview(bounds), dtype=np.int64)[array.offset :][: len(array) + 1]
    known = array.is_valid().to_numpy(zero_copy_only=False)
    places = np.flatnonzero(known & np.isin(np.diff(begins), KEY_LENGTHS))
    ends, octets = begins[places + 1], np.frombuffer(memoryview(texts), dtype=np.uint8)
    values = _digit_values()
    marks = np.zeros(len(places), dtype=np.int64)
    valid = np.ones(len(places), dtype=np.bool_)
    for place in range(KEY_END, 0, -1):
        digit = values[octets[ends - place]]
        valid &= digit != _NO_DIGIT
        marks = (marks << 4) | digit
    found[places] = np.where(valid, marks, -1)
    return found


def _digit_values() -> NDArray[np.uint8]:
    """Return, for each byte, the hexadecimal digit that it is, or `_NO_DIGIT`."""
    import numpy as np

    values = np.full(256, _NO_DIGIT, dtype=np.uint8)
    for value, digit in enumerate("0123456789abcdef"):
        values[ord(digit)] = values[ord(digit.upper())] = value
    return values

"""The parts of an id are written as `property_parts` gives them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from dissectors.remoting.bodies.message_texts import put_unique_key
from dissectors.remoting.ids.message_ids import KEY_LENGTHS, created_at
from dissectors.remoting.ids.parts import property_parts

from .shown import NEAR_MS, UNIQUE_KEY

FAR_MS = st.integers(-(1 << 63), (1 << 63) - 1)
IDS = st.sampled_from(KEY_LENGTHS).flatmap(
    lambda size: st.text("0123456789ABCDEFabcdef", min_size=size, max_size=size)
)
MONTH_MS = 31 * 24 * 3600 * 1000


def written(text: str, near_ms: int) -> bytes | None:
    out = BytesWriter()
    data = text.encode()
    if not put_unique_key(out, b"<" + data + b">", 1, 1 + len(data), near_ms):
        assert not out.getvalue()
        return None
    return out.getvalue()


def expected(text: str, near_ms: int) -> bytes:
    return msgspec.json.encode(property_parts({"UNIQ_KEY": text}, near_ms)["UNIQ_KEY"])


@given(IDS, st.integers(NEAR_MS - 20 * MONTH_MS, NEAR_MS + 20 * MONTH_MS) | FAR_MS)
@example(UNIQUE_KEY, NEAR_MS)
def test_any_id(text: str, near_ms: int) -> None:
    found = written(text, near_ms)
    if found is None:  # no time that a calendar has
        assert not -62_000_000_000_000 <= near_ms <= 253_000_000_000_000
    else:
        assert found == expected(text, near_ms)


@given(st.integers(0, MONTH_MS), st.integers(-16 * 60, 16 * 60), st.integers(-70_000, 70_000))
def test_any_zone(month_offset: int, minutes: int, apart: int) -> None:
    """The time near an id is another zone's, and some seconds off."""
    text = f"{UNIQUE_KEY[:20]}{month_offset:08X}0001"
    born = created_at(month_offset, NEAR_MS)
    near_ms = born - minutes * 60_000 + apart
    assert written(text, near_ms) == expected(text, near_ms)


@pytest.mark.parametrize(
    "text",
    ["", "7F", UNIQUE_KEY[:-1], UNIQUE_KEY + "0", "G" + UNIQUE_KEY[1:], UNIQUE_KEY[:-1] + "x",
     UNIQUE_KEY[:-1] + "/", UNIQUE_KEY[:-1] + ":", UNIQUE_KEY[:-1] + "@", UNIQUE_KEY[:-2] + "_1"],
)  # fmt: skip
def test_what_is_no_id_is_left(text: str) -> None:
    assert written(text, NEAR_MS) is None
    assert property_parts({"UNIQ_KEY": text}, NEAR_MS) == {}

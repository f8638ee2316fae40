"""Properties that are plain read as `decode_properties` reads them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from dissectors.remoting.bodies.message_texts import PlainProperties
from dissectors.remoting.ids.parts import PROPERTIES
from dissectors.remoting.messages.properties import decode_properties

PLAIN = PlainProperties()


def written(raw: bytes, before: bytes = b"", behind: bytes = b"") -> dict[str, object] | None:
    """Return what is written of properties between other bytes; None: they are not plain."""
    data = before + raw + behind
    if not PLAIN.find(data, len(before), len(before) + len(raw)):
        return None
    out = BytesWriter()
    out.write(b'{"topic":""')
    PLAIN.write(out)
    out.write(b"}")
    shown: dict[str, object] = msgspec.json.decode(out.getvalue())
    key = shown["msgId"]
    if key is not None:
        assert data[PLAIN.key_at : PLAIN.key_end].decode() == key
    return shown


def expected(raw: bytes) -> dict[str, object]:
    properties = decode_properties(raw.decode())
    return {
        "topic": "",
        "msgId": properties.get("UNIQ_KEY"),
        "tags": properties.get("TAGS"),
        "keys": properties.get("KEYS", "").split(),
        "properties": properties,
    }


NAMES = st.sampled_from(["UNIQ_KEY", "TAGS", "KEYS", "WAIT", "a", "b", "UNIQ_KEYS", "", "x" * 30])
VALUES = st.sampled_from(["", "a", " a  bb ", "true", "0123456789" * 4, "~\x7f", "{}"])


@given(
    st.lists(st.tuples(NAMES, VALUES, st.sampled_from(["\x01", ""])), max_size=8),
    st.booleans(),
    st.binary(max_size=9),
)
@example([("UNIQ_KEY", "a", "\x01")], True, b"\xff" * 8)
def test_any_properties(entries: list[tuple[str, str, str]], is_ended: bool, behind: bytes) -> None:
    text = "\x02".join(name + parted + value for name, value, parted in entries)
    raw = (text + "\x02" * is_ended).encode()
    names = [name for name, value, parted in entries if name and value and parted]
    shown = written(raw, b"before ", behind)
    is_twice = len(set(names)) < len(names)
    if shown is not None or not is_twice:
        # What looks for names reads eight bytes; a short name at the very end is left.
        assert shown == expected(raw) or (shown is None and len(behind) < 8)
    assert not (is_twice and shown is not None)


@given(st.binary(max_size=60))
@example(b"a\x01b\x02a\x01c\x02padding\x01x")
@example("name\x01ü\x02".encode())
def test_any_bytes(raw: bytes) -> None:
    shown = written(raw, behind=bytes(8))
    assert shown is None or shown == expected(raw)


@pytest.mark.parametrize("name", sorted(set(PROPERTIES) - {"UNIQ_KEY"}))
def test_what_has_parts_of_its_own_is_left(name: str) -> None:
    assert written(f"{name}\x01value\x02".encode(), behind=bytes(8)) is None
    assert written(f"{name}x\x01value\x02".encode(), behind=bytes(8)) is not None


@pytest.mark.parametrize("value", ['"', "\\", "\n", "\x00", "a\x01b", "ü", "\x1f"])
def test_what_json_would_escape_is_left(value: str) -> None:
    assert written(f"name\x01{value}\x02".encode(), behind=bytes(8)) is None

"""The type texts of the tables."""

from __future__ import annotations

import pytest

from dissectors.remoting.bodies.java_types import JavaType, Kind, java_type_of


def test_nested_types() -> None:
    found = java_type_of("List<Map<String, List<ConsumeStats>>>")
    stats = JavaType(Kind.CLASS, "ConsumeStats")
    string = JavaType(Kind.STRING, "String")
    stats_list = JavaType(Kind.LIST, "List<ConsumeStats>", item=stats)
    inner = JavaType(Kind.MAP, "Map<String, List<ConsumeStats>>", string, stats_list)
    assert found == JavaType(Kind.LIST, found.name, item=inner)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("int", Kind.INTEGER),
        ("Long", Kind.INTEGER),
        ("double", Kind.DOUBLE),
        ("BitSet", Kind.BITS),
        ("LanguageCode", Kind.ENUM),
        ("HARuntimeInfo.HAClientRuntimeInfo", Kind.CLASS),
        ("Set<String>", Kind.LIST),
        ("Object", Kind.ANY),
    ],
)
def test_kinds(text: str, kind: Kind) -> None:
    assert java_type_of(text).kind is kind


@pytest.mark.parametrize("text", ["", "Strin", "List<", "Queue<String>", "List<Nothing>"])
def test_what_is_no_type(text: str) -> None:
    with pytest.raises(ValueError, match="no type"):
        java_type_of(text)

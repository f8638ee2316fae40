"""The type texts of the tables."""

from __future__ import annotations

import pytest

from dissectors.remoting.bodies.classes import JavaType, TypeKind, java_type_of


def test_nested_types() -> None:
    found = java_type_of("List<Map<String, List<ConsumeStats>>>")
    stats = JavaType(TypeKind.CLASS, "ConsumeStats")
    string = JavaType(TypeKind.STRING, "String")
    stats_list = JavaType(TypeKind.LIST, "List<ConsumeStats>", item=stats)
    inner = JavaType(TypeKind.MAP, "Map<String, List<ConsumeStats>>", string, stats_list)
    assert found == JavaType(TypeKind.LIST, found.name, item=inner)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("int", TypeKind.INTEGER),
        ("Long", TypeKind.INTEGER),
        ("double", TypeKind.DOUBLE),
        ("BitSet", TypeKind.BITS),
        ("LanguageCode", TypeKind.ENUM),
        ("HARuntimeInfo.HAClientRuntimeInfo", TypeKind.CLASS),
        ("Set<String>", TypeKind.LIST),
        ("Object", TypeKind.ANY),
    ],
)
def test_java_type_is_read_as_kind(text: str, kind: TypeKind) -> None:
    assert java_type_of(text).kind is kind


@pytest.mark.parametrize("text", ["", "Strin", "List<", "Queue<String>", "List<Nothing>"])
def test_what_is_no_type(text: str) -> None:
    with pytest.raises(ValueError, match="not a type"):
        java_type_of(text)

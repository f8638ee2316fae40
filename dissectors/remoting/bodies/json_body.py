"""JSON bodies: an object of a known class, a list of them, or any object, by the class tables.

Reading keeps everything: what the tables do not know stays unchanged and becomes a note. Short
member names become long ones. Maps become dicts with str keys, or lists of {"key": .., "value": ..}
if a key is an object. RocketMQ: RemotingSerializable; fastjson's JavaBeanDeserializer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, final

from ...foreign import integer_of
from ..fastjson.codec import decode_json, encode_json, to_json_value
from ..fastjson.reader import JsonResult, PairMap, canonical_name, ignored_by_fastjson2
from ..ids.pop_receipts import decode_bit_set, encode_bit_set
from .body import JSON, RAW, Body, BodyInput
from .classes import CLASSES, ENUMS, JavaType, ShortMember, TypeKind, java_type_of, spellings_of

NOTES_LIMIT: Final = 16
"""Maximum notes of a body; an odd body would repeat itself."""

_SCALAR_TYPES: Final[dict[TypeKind, tuple[type, ...]]] = {
    TypeKind.STRING: (str,),
    TypeKind.INTEGER: (int,),
    TypeKind.DOUBLE: (int, float),
    TypeKind.BOOLEAN: (bool,),
}
_USUAL: Final[dict[TypeKind, type]] = {
    TypeKind.STRING: str,
    TypeKind.INTEGER: int,
    TypeKind.DOUBLE: int,
    TypeKind.BOOLEAN: bool,
}
"""Scalar types whose values stay unchanged."""


@final
class _Member:
    """A class member, prepared for the reading loop."""

    def __init__(self, name: str, expected: JavaType, place: str) -> None:
        self.name = name
        self.expected = expected
        self.place = place
        self.usual: object = _USUAL.get(expected.kind)


@lru_cache(maxsize=512)
def _members_of(class_name: str) -> dict[str, _Member]:
    """Return the members of a class by their wire names."""
    members: dict[str, _Member] = {}
    for name, cell in CLASSES[class_name].items():
        place = f"{class_name}.{name[:40]}"
        if isinstance(cell, ShortMember):
            members[name] = _Member(cell.long_name, java_type_of(cell.java_type), place)
        else:
            members[name] = _Member(name, java_type_of(cell), place)
    return members


class TypedReader:
    """Reads the value of one body; `notes` lists oddities, each once."""

    __slots__ = ("_noted", "_other_names")

    def __init__(self) -> None:
        self._noted: dict[str, None] = {}
        self._other_names: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Oddities, in order."""
        if not self._other_names:
            return tuple(self._noted)
        return (*self._noted, ignored_by_fastjson2(list(self._other_names)))

    def read(self, value: object, expected: JavaType, place: str) -> object:
        """Convert a value to JSON types; `place` names it in notes."""
        # An unresolved reference may stand for a value of any type.
        if value is None or expected.kind is TypeKind.ANY or _is_reference(value):
            return to_json_value(value)
        types = _SCALAR_TYPES.get(expected.kind)
        if types is not None:
            # To Python, a bool is an int.
            if not isinstance(value, types) or (bool not in types and isinstance(value, bool)):
                return self._odd(value, expected, place)
            return value if isinstance(value, (str, int)) else to_json_value(value)
        return _READERS[expected.kind](self, value, expected, place)

    def _odd(self, value: object, expected: JavaType, place: str) -> object:
        self._note(f"{place}: {_shape_of(value)} where {expected.kind.value} is expected")
        return to_json_value(value)

    def _note(self, text: str) -> None:
        if len(self._noted) < NOTES_LIMIT:
            self._noted[text] = None

    def _read_enum(self, value: object, expected: JavaType, place: str) -> object:
        if not isinstance(value, str):
            return self._odd(value, expected, place)
        if value in ENUMS[expected.name]:
            return value
        java = value.upper()
        if java in ENUMS[expected.name] and value.isascii():  # Java's readers ignore case
            return java
        self._note(f"{place}: {value[:40]!r} is not a value of {expected.name}")
        return value

    def _read_bits(self, value: object, expected: JavaType, place: str) -> object:
        places = decode_bit_set(value) if isinstance(value, str) else None
        return self._odd(value, expected, place) if places is None else list(places)

    def _read_list(self, value: object, expected: JavaType, place: str) -> object:
        if not isinstance(value, list) or isinstance(value, PairMap) or expected.item is None:
            return self._odd(value, expected, place)
        item_type = expected.item
        usual = _USUAL.get(item_type.kind)
        return [
            item if type(item) is usual else self.read(item, item_type, place) for item in value
        ]

    def _read_map(self, value: object, expected: JavaType, place: str) -> object:
        key_type, item_type = expected.key, expected.item
        pairs = _pairs_of(value)
        if pairs is None or key_type is None or item_type is None:
            return self._odd(value, expected, place)
        usual = _USUAL.get(item_type.kind)
        read = [
            (key, item if type(item) is usual else self.read(item, item_type, place))
            for key, item in pairs
        ]
        if key_type.kind is TypeKind.CLASS or isinstance(value, PairMap):
            typed = key_type.kind is TypeKind.CLASS
            return [
                {
                    "key": self.read(key, key_type, place) if typed else to_json_value(key),
                    "value": item,
                }
                for key, item in read
            ]
        if key_type.kind is TypeKind.INTEGER:
            for key, _ in read:
                if integer_of(str(key)) is None:
                    self._note(f"{place}: the key {str(key)[:40]!r} is not an integer")
        return {str(key): item for key, item in read}

    def _read_object(self, value: object, expected: JavaType, place: str) -> object:
        if not isinstance(value, dict):
            return self._odd(value, expected, place)
        members = _members_of(expected.name)
        read: dict[str, object] = {}
        for name, item in value.items():
            member = members.get(name)
            if member is None:
                java = spellings_of(expected.name).get(canonical_name(name))
                # A member with Java's own spelling wins.
                if java is not None and java not in value:
                    self._other_names[name] = None
                    member = members[java]
            if member is None:
                if not _is_long_name(name, expected.name):
                    self._note(f"{expected.name}.{name[:40]} is not known")
                read[name] = to_json_value(item)
            elif type(item) is member.usual:
                read[member.name] = item
            else:
                read[member.name] = self.read(item, member.expected, member.place)
        return read


_READERS: Final[dict[TypeKind, Callable[[TypedReader, object, JavaType, str], object]]] = {
    TypeKind.ENUM: TypedReader._read_enum,
    TypeKind.BITS: TypedReader._read_bits,
    TypeKind.LIST: TypedReader._read_list,
    TypeKind.MAP: TypedReader._read_map,
    TypeKind.CLASS: TypedReader._read_object,
}


def _is_reference(value: object) -> bool:
    return isinstance(value, dict) and len(value) == 1 and "$ref" in value


def _is_long_name(name: str, class_name: str) -> bool:
    cells = CLASSES[class_name].values()
    return any(isinstance(cell, ShortMember) and cell.long_name == name for cell in cells)


def _pairs_of(value: object) -> list[tuple[object, object]] | None:
    if isinstance(value, PairMap):
        return value
    return list(value.items()) if isinstance(value, dict) else None


def _shape_of(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) and not isinstance(value, PairMap) else "an object"


def wire_value(value: object, expected: JavaType, *, standard: bool = False) -> object:
    """Return the value that `encode_json` writes for a value of `TypedReader`.

    `standard`: quote integer keys and sort maps, like a NameServer for new clients.
    """
    if value is None or expected.kind is TypeKind.ANY or _is_reference(value):
        return value
    if expected.kind is TypeKind.CLASS and isinstance(value, dict):
        return _wire_object(value, expected, standard)
    if expected.kind is TypeKind.MAP and expected.key is not None and expected.item is not None:
        return _wire_map(value, expected.key, expected.item, standard)
    if expected.kind is TypeKind.LIST and isinstance(value, (list, tuple)) and expected.item:
        return [wire_value(item, expected.item, standard=standard) for item in value]
    if expected.kind is TypeKind.BITS and isinstance(value, (list, tuple)):
        return encode_bit_set(tuple(place for place in value if isinstance(place, int)))
    if expected.kind is TypeKind.DOUBLE and type(value) is int:
        return float(value)
    return value


def _wire_object(value: dict[str, object], expected: JavaType, standard: bool) -> dict[str, object]:
    cells = CLASSES[expected.name]
    shorts = {cell.long_name: name for name, cell in cells.items() if isinstance(cell, ShortMember)}
    written: dict[str, object] = {}
    for name, item in value.items():
        name = shorts.get(name, name)
        cell = cells.get(name, "Object")
        text = cell.java_type if isinstance(cell, ShortMember) else cell
        if item is not None:
            written[name] = wire_value(item, java_type_of(text), standard=standard)
    return dict(sorted(written.items()))  # as fastjson writes the members of a class


def _wire_map(value: object, key_type: JavaType, item_type: JavaType, standard: bool) -> object:
    pairs = _written_pairs(value)
    if pairs is None:
        return value
    items = [(key, wire_value(item, item_type, standard=standard)) for key, item in pairs]
    if key_type.kind is TypeKind.CLASS:
        return PairMap((wire_value(key, key_type, standard=standard), item) for key, item in items)
    if key_type.kind is not TypeKind.INTEGER:
        items = sorted(items, key=lambda pair: str(pair[0])) if standard else items
        return {str(key): item for key, item in items}
    numbers = [(integer_of(str(key)), key, item) for key, item in items]
    if standard:
        numbers.sort(key=lambda entry: entry[0] or 0)
        return {str(key): item for _, key, item in numbers}
    return {key if number is None else number: item for number, key, item in numbers}


def _written_pairs(value: object) -> Iterable[tuple[object, object]] | None:
    """Return the pairs of a map in any form that reading gives, or that a caller writes."""
    if isinstance(value, list) and not isinstance(value, PairMap):
        if all(isinstance(pair, dict) and pair.keys() == {"key", "value"} for pair in value):
            return [(pair["key"], pair["value"]) for pair in value]
        return None
    return _pairs_of(value)


JSON_MAP: Final = "json-map"
"""Form of an object without a class."""
_LIST_PREFIX: Final = "json-list:"
_ANY_OBJECT: Final = java_type_of("Map<String, Object>")


def json_type_of(form: str) -> JavaType:
    """Return the type of a form: a class name, `json-map`, or `json-list:` and the item type."""
    if form.startswith(_LIST_PREFIX):
        item = json_type_of(form.removeprefix(_LIST_PREFIX))
        return JavaType(TypeKind.LIST, form, item=item)
    if form == JSON_MAP:
        return _ANY_OBJECT
    return java_type_of("String" if form == "string" else form)


def decode_json_body(source: BodyInput) -> Body:
    """Decode a JSON body by its form."""
    return typed_body(source.form, decode_json(source.body))


def typed_body(form: str, result: JsonResult) -> Body:
    """Return the body for a JSON value of a form."""
    reader = TypedReader()
    value = reader.read(result.value, json_type_of(form), form)
    problem = result.problem
    # What was read before a problem is shown, with the problem.
    if problem is not None and not result.value:
        return Body(RAW, problem=f"no {form}: {problem}")
    if problem is None and not isinstance(result.value, (dict, list)):
        problem = f"no {form} but a single value"
    return Body(form, value, problem=problem, notes=reader.notes)


def decode_reset_offset(source: BodyInput) -> Body:
    """Decode 220: a list of queues if requested by the admin tool in C++, else a map."""
    result = decode_json(source.body)
    table = result.value.get("offsetTable") if isinstance(result.value, dict) else None
    for_c = type(table) is list  # a PairMap is a list, too, but stands for a map
    return typed_body("ResetOffsetBodyForC" if for_c else "ResetOffsetBody", result)


def decode_unknown(body: bytes, reason: str) -> Body:
    """Return a body without a table: JSON if valid, otherwise raw."""
    if body[:1] in (b"{", b"["):
        result = decode_json(body)
        if result.problem is None:
            return Body(JSON, to_json_value(result.value), notes=(reason,))
    return Body(RAW, problem=reason)


def encode_json_body(form: str, value: object, *, standard: bool = False) -> bytes:
    """Encode a value of a form; `standard`: like NameServers since V4_9_4."""
    if form == "ResetOffsetBody" and isinstance(value, dict):
        table = value.get("offsetTable")
        if isinstance(table, list) and table and "key" not in table[0]:
            form = "ResetOffsetBodyForC"
    wire = wire_value(value, json_type_of(form), standard=standard)
    return encode_json(wire, ascii_only=standard)

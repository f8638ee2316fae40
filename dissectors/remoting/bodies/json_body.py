"""JSON bodies: an object of a known class, a list of them, or any object.

RocketMQ: RemotingSerializable and its subclasses.
"""

from __future__ import annotations

from typing import Final

from ..fastjson.codec import JsonResult, decode_json, encode_json, to_json_value
from .body import JSON, RAW, Body, BodyInput
from .java_types import JavaType, TypeKind, java_type_of
from .typed import TypedReader, wire_value

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

"""Entries of the catalog as JSON values, with all facts of the tables."""

from __future__ import annotations

from collections.abc import Callable

from dissectors.remoting.bodies.classes import CLASSES, ENUMS
from dissectors.remoting.headers import HEADERS
from dissectors.remoting.messages.properties import property_of

from .catalog import (
    Entry,
    Use,
    about_form,
    class_of_form,
    containers,
    cut_code,
    members_of,
    operation_of_entry,
    uses_of_bodies,
    uses_of_headers,
)
from .options import EntryKind

Json = dict[str, object]
_Describer = Callable[[Entry], Json]


def value_of(entry: Entry) -> Json:
    """Return the entry as an object; every kind has `kind`, `name` and its own members."""
    value: Json = {"kind": str(entry.kind), "name": entry.name}
    if entry.number is not None:
        value["number"] = entry.number
    return value | _OF_KIND[entry.kind](entry)


def _request(entry: Entry) -> Json:
    known = operation_of_entry(entry)
    value: Json = {
        "cut_number": None if entry.number is None else cut_code(entry.number),
        "since": entry.since or None,
        "until": entry.until or None,
    }
    if known is None:
        return value | {"note": entry.about or None}
    client, _, server = known.who.partition("->")
    return value | {
        "client": client if server else None,
        "server": server or None,
        "mode": known.mode or None,
        "note": known.note or (None if server else known.who),
        "request_header": _header_value(known.request_header),
        "request_body": _body_value(known.request_body),
        "response_header": _header_value(known.response_header),
        "response_body": _body_value(known.response_body),
    }


def _response(entry: Entry) -> Json:
    return {
        "since": entry.since or None,
        "until": entry.until or None,
        "meaning": entry.about or None,
    }


def _header_value(name: str | None) -> Json | None:
    return None if name is None else {"name": name, "fields": _fields(name)}


def _fields(header: str) -> list[Json]:
    return [
        {
            "name": field.name,
            "wire": field.wire,
            "type": str(field.type),
            "required": field.required,
            "since": field.since or None,
            "until": field.until or None,
        }
        for field in HEADERS[header]
    ]


def _body_value(form: str | None) -> Json | None:
    if form is None:
        return None
    name = class_of_form(form)
    return {"form": form, "about": about_form(form), "members": _members(name) if name else None}


def _members(name: str) -> list[Json]:
    return [
        {"name": member.name, "wire": member.wire, "type": member.type}
        for member in members_of(name)
    ]


def _uses(uses: list[Use]) -> list[Json]:
    return [use._asdict() for use in uses]


def _header(entry: Entry) -> Json:
    if entry.name not in HEADERS:
        return {"note": entry.about}
    return {
        "used_by": _uses(uses_of_headers().get(entry.name, [])),
        "fields": _fields(entry.name),
    }


def _body(entry: Entry) -> Json:
    if entry.name in ENUMS:
        return {"contained_in": containers().get(entry.name, []), "values": ENUMS[entry.name]}
    value: Json = {"used_by": _uses(uses_of_bodies().get(entry.name, []))}
    if entry.name in CLASSES:
        contained = containers().get(entry.name, [])
        return value | {"contained_in": contained, "members": _members(entry.name)}
    return value | {"about": entry.about}


def _property(entry: Entry) -> Json:
    known = property_of(entry.name)
    if known is None:
        return {}
    return {
        "constant": known.constant,
        "type": str(known.type),
        "reserved": known.reserved,
        "meaning": known.meaning,
    }


def _language(_entry: Entry) -> Json:
    return {}


def _version(entry: Entry) -> Json:
    return {"release": entry.about}


_OF_KIND: dict[EntryKind, _Describer] = {
    EntryKind.request: _request,
    EntryKind.response: _response,
    EntryKind.header: _header,
    EntryKind.body: _body,
    EntryKind.property: _property,
    EntryKind.language: _language,
    EntryKind.version: _version,
}

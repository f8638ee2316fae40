"""Entries of the catalog as lines: one in full, or many as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from dissectors.remoting.bodies.classes import CLASSES, ENUMS
from dissectors.remoting.header_tables import HeaderField
from dissectors.remoting.headers import HEADERS, HOOK_FIELDS
from dissectors.remoting.messages.properties import property_of
from dissectors.remoting.operation_tables import Operation

from ..ui.columns import LineColumn
from ..ui.console import UNLIMITED, Style, Terminal
from ..ui.screen.panels import FactLines, Labelled
from ..ui.screen.shapes import table_lines
from .catalog import (
    BODY_FORMS,
    NOT_RELEASED,
    BodyMember,
    Entry,
    Use,
    about_form,
    class_of_form,
    containers,
    cut_code,
    members_of,
    operation_of_entry,
    text_of_use,
    uses_of_bodies,
    uses_of_headers,
)
from .options import EntryKind

Row = TypeVar("Row")
TITLES = {
    EntryKind.request: "Requests",
    EntryKind.response: "Responses",
    EntryKind.header: "Headers",
    EntryKind.body: "Bodies",
    EntryKind.property: "Message properties",
    EntryKind.language: "Languages",
    EntryKind.version: "Versions",
}
MOST_ALIKE = 8
"""Most similar names that are listed."""
_MODES = {
    "sync": "awaited by the sender",
    "async": "delivered to a callback of the sender",
    "any": "awaited, delivered to a callback, or none (oneway)",
    "oneway": "never",
    "internal": "never on the wire",
}
_LABEL = 17  # cells of the labels in front of facts
_INDENT = "  "


def releases_of(since: str, until: str) -> str:
    """Return ``since 5.0.0``, ``up to 5.1.0``, ``4.5.2 to 5.3.2``; empty if unknown."""
    if since.startswith(NOT_RELEASED):
        return f"in no release up to {since[1:]}"
    if since and until:
        return f"{since} only" if since == until else f"{since} to {until}"
    return f"since {since}" if since else f"up to {until}" if until else ""


class Writer(FactLines):
    """Lines for a terminal, as they come."""

    def fact(self, label: str, text: str) -> None:
        """Add a line of a label and a text; nothing without text."""
        if text:
            label = f"{_INDENT}{label}"
            indent = len(_INDENT) + _LABEL
            self.text(Labelled(text, label=label, label_style=Style.DIM, indent=indent))

    def table(
        self, rows: Sequence[Row], columns: Sequence[LineColumn[Row]], depth: int = 1
    ) -> None:
        """Add a table, indented by `depth` steps."""
        indent = _INDENT * depth
        width = self.terminal.width
        narrower = width if width >= UNLIMITED else width - len(indent)
        table = table_lines(rows, columns, self.terminal._replace(width=narrower))
        self.lines += [indent + line for line in table.lines]

    def alike(self, entries: Sequence[Entry]) -> None:
        """Add the names of similar entries."""
        names = list(dict.fromkeys(entry.name for entry in entries))
        if names:
            more = f" and {len(names) - MOST_ALIKE} more" if len(names) > MOST_ALIKE else ""
            text = f"also: {', '.join(names[:MOST_ALIKE])}{more}"
            self.lines.append("")
            self.text(Labelled(text, Style.DIM, hang=len(_INDENT)))


# -- many entries -----------------------------------------------------------------------------


def list_lines(entries: Sequence[Entry], terminal: Terminal) -> list[str]:
    """Return one table per kind."""
    writer = Writer(terminal)
    for kind in EntryKind:
        rows = [entry for entry in entries if entry.kind is kind]
        if rows:
            writer.heading(TITLES[kind])
            writer.table(rows, _LIST_COLUMNS)
    return writer.lines


_LIST_COLUMNS: list[LineColumn[Entry]] = [
    LineColumn("NUMBER", lambda e: "" if e.number is None else str(e.number), 1, 5, 7, True),
    LineColumn("NAME", lambda e: e.name, 1, 30, 44),
    LineColumn("RELEASES", lambda e: releases_of(e.since, e.until), 3, 11, 29),
    LineColumn("ABOUT", lambda e: e.about, 2, 20, 200),
]


# -- one entry --------------------------------------------------------------------------------


def detail_lines(entries: Sequence[Entry], alike: Sequence[Entry], terminal: Terminal) -> list[str]:
    """Return all facts of each entry; `alike` are named at the end."""
    writer = Writer(terminal)
    for entry in entries:
        number = "" if entry.number is None else f" {entry.number}"
        writer.heading(f"{_kind_of(entry)}{number} {entry.name}")
        _DETAILS[entry.kind](writer, entry)
    writer.alike(alike)
    return writer.lines


def _kind_of(entry: Entry) -> str:
    if entry.kind is EntryKind.header and entry.name not in HEADERS:
        return "ext field"
    if entry.kind is EntryKind.body and entry.name in ENUMS:
        return "enum"
    return "form of body" if entry.name in BODY_FORMS else str(entry.kind)


def _request(writer: Writer, entry: Entry) -> None:
    writer.fact("releases", releases_of(entry.since, entry.until))
    cut_to = None if entry.number is None else cut_code(entry.number)
    if cut_to is not None:
        writer.fact("in 16 bits", f"{cut_to} (0x{cut_to & 0xFFFF:04X}), in a ROCKETMQ header")
    writer.fact("also called", ", ".join(entry.other_names))
    known = operation_of_entry(entry)
    if known is None:
        writer.fact("note", entry.about)
        return
    _roles(writer, known)
    writer.fact("note", known.note)
    if not known.mode:
        return
    _header_fact(writer, "request header", known.request_header)
    _body_fact(writer, "request body", known.request_body)
    if known.mode == "oneway" and known.response_header is None and known.response_body is None:
        return
    _header_fact(writer, "response header", known.response_header)
    _body_fact(writer, "response body", known.response_body)


def _roles(writer: Writer, known: Operation) -> None:
    client, _, server = known.who.partition("->")
    if not server:
        writer.fact("used", "nowhere" if known.who == "unused" else known.who)
        return
    writer.fact("sent by", client)
    writer.fact("sent to", server)
    writer.fact("response", _MODES.get(known.mode, ""))


def _header_fact(writer: Writer, label: str, header: str | None) -> None:
    writer.fact(label, header or "none")
    if header is not None:
        _field_table(writer, HEADERS[header], 2)


def _field_table(writer: Writer, fields: Sequence[HeaderField], depth: int) -> None:
    columns: list[LineColumn[HeaderField]] = [
        LineColumn("FIELD", lambda f: f.name, 1, 12, 40),
        LineColumn("WIRE", lambda f: f.wire, 1, 4, 40),
        LineColumn("TYPE", lambda f: str(f.type), 2, 7, 14),
        LineColumn("REQUIRED", lambda f: "required" if f.required else "", 2, 8, 8),
        LineColumn("RELEASES", lambda f: releases_of(f.since, f.until), 3, 11, 29),
    ]
    if all(field.name == field.wire for field in fields):
        del columns[1]
    writer.table(fields, columns, depth)


def _body_fact(writer: Writer, label: str, form: str | None) -> None:
    if form is None:
        writer.fact(label, "none")
        return
    name = class_of_form(form)
    writer.fact(label, name if name == form else f"{form}: {about_form(form)}")
    if name is not None:
        _member_table(writer, name, 2)


def _member_table(writer: Writer, name: str, depth: int) -> None:
    rows = members_of(name)
    columns: list[LineColumn[BodyMember]] = [
        LineColumn("MEMBER", lambda m: m.name, 1, 12, 40),
        LineColumn("WIRE", lambda m: m.wire, 1, 4, 40),
        LineColumn("TYPE", lambda m: m.type, 1, 8, 60),
    ]
    if all(row.name == row.wire for row in rows):
        del columns[1]
    writer.table(rows, columns, depth)


def _response(writer: Writer, entry: Entry) -> None:
    writer.fact("releases", releases_of(entry.since, entry.until))
    writer.fact("meaning", entry.about)
    for index, remark in enumerate(entry.remarks):
        writer.fact("" if index else "remarks", remark)


def _uses(writer: Writer, uses: Sequence[Use]) -> None:
    for index, use in enumerate(uses):
        writer.fact("" if index else "used by", f"{text_of_use(use)} ({use.code})")


def _header(writer: Writer, entry: Entry) -> None:
    if entry.name not in HEADERS:
        writer.fact("is", HOOK_FIELDS.get(entry.name, ""))
        writer.fact("of", "no header class: it stands beside the fields of one")
        return
    _uses(writer, uses_of_headers().get(entry.name, []))
    if entry.name not in uses_of_headers():
        writer.fact("used by", "no operation")
    if not HEADERS[entry.name]:
        writer.fact("fields", "none")
    _field_table(writer, HEADERS[entry.name], 1)


def _body(writer: Writer, entry: Entry) -> None:
    _uses(writer, uses_of_bodies().get(entry.name, []))
    writer.fact("part of", ", ".join(containers().get(entry.name, [])))
    if entry.name in ENUMS:
        writer.fact("one of", ", ".join(ENUMS[entry.name]))
    elif entry.name in CLASSES:
        _member_table(writer, entry.name, 1)
    else:
        writer.fact("is", entry.about)


def _property(writer: Writer, entry: Entry) -> None:
    known = property_of(entry.name)
    if known is not None:
        writer.fact("meaning", known.meaning)
        writer.fact("type", str(known.type))
        writer.fact("set by", "RocketMQ only" if known.reserved else "RocketMQ or the application")
        writer.fact("constant", known.constant)


def _version(writer: Writer, entry: Entry) -> None:
    writer.fact("release", entry.about)


def _language(writer: Writer, entry: Entry) -> None:
    writer.fact("written as", f"{entry.name} in a JSON header, {entry.number} in a ROCKETMQ header")


_DETAILS: dict[EntryKind, Callable[[Writer, Entry], None]] = {
    EntryKind.request: _request,
    EntryKind.response: _response,
    EntryKind.header: _header,
    EntryKind.body: _body,
    EntryKind.property: _property,
    EntryKind.language: _language,
    EntryKind.version: _version,
}

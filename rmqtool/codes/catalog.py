"""The names and numbers of the protocol, as searchable entries.

Rules: an entry has its name and its place in the tables; other facts are read from the tables when
it is shown, and never repeated here.
RocketMQ: RequestCode, ResponseCode, LanguageCode, MQVersion, MessageConst, CommandCustomHeader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from dissectors.remoting.bodies.classes import CLASSES, ENUMS, ShortMember
from dissectors.remoting.code_names import OPERATIONS, RESPONSES, request_name
from dissectors.remoting.codes import (
    FORMER_REQUESTS,
    FORMER_RESPONSES,
    RENAMED_REQUESTS,
    FormerCode,
    LanguageCode,
    RequestCode,
    ResponseCode,
)
from dissectors.remoting.headers import HEADERS, HOOK_FIELDS
from dissectors.remoting.messages.properties import PROPERTIES
from dissectors.remoting.operation_tables import FORMER_MEANINGS, Operation
from dissectors.remoting.versions import VERSIONS, release_of

from .options import EntryKind


class Entry(NamedTuple):
    """A named entry."""

    kind: EntryKind
    name: str
    """constant, class, property, or form of a body"""
    number: int | None = None
    """number on the wire, or None if the name is sent"""
    since: str = ""
    """first release; empty: unknown, or that of its operation"""
    until: str = ""
    """last release; empty: current"""
    about: str = ""
    """one-line description"""
    other_names: tuple[str, ...] = ()
    """further search terms"""
    parts: tuple[str, ...] = ()
    """names of its fields or members"""
    remarks: tuple[str, ...] = ()
    """constant parts of the remarks of its responses"""


class Use(NamedTuple):
    """A use of a header or body."""

    code: int
    name: str
    response: bool
    """in the response to it"""


class BodyMember(NamedTuple):
    """A member of a body class."""

    wire: str
    """name in the JSON"""
    name: str
    """long name"""
    type: str
    """Java type"""


BODY_FORMS: dict[str, str] = {
    "raw-message": "the body of one message, as the application gave it",
    "batch-messages": "several messages behind each other, in the short form of a batch",
    "stored-messages": "messages behind each other, as the broker stores them",
    "stored-message": "one message, as the broker stores it",
    "properties-text": "lines of name=value, as in a properties file",
    "text": "plain text",
    "timer-checkpoint": "seven longs: the broker's timer check point",
    "json-map": "a JSON object of no known class",
}
"""Form of a body that is not a class of the tables → what it is."""

NOT_RELEASED = ">"
"""Prefix of a `since` that names the newest release without the entry."""
_LIST_FORM = "json-list:"
_CLASS_NAME = re.compile(r"[A-Z]\w*(?:\.[A-Z]\w*)*")


@cache
def catalog() -> tuple[Entry, ...]:
    """Return all entries, by kind, then in the order of the tables."""
    return (
        *sorted(_requests(), key=lambda entry: entry.number or 0),
        *sorted(_responses(), key=lambda entry: entry.number or 0),
        *sorted(_headers(), key=lambda entry: entry.name),
        *sorted(_bodies(), key=lambda entry: entry.name),
        *(
            Entry(EntryKind.property, prop.name, about=prop.meaning, other_names=(prop.constant,))
            for prop in PROPERTIES
        ),
        *(Entry(EntryKind.language, code.name, int(code)) for code in LanguageCode),
        *(
            Entry(EntryKind.version, name, ordinal, about=release, other_names=(release,))
            for ordinal, name in enumerate(VERSIONS)
            if (release := release_of(ordinal))
        ),
    )


# -- requests and responses -------------------------------------------------------------------


def operation_of_entry(entry: Entry) -> Operation | None:
    """Return header and body of a request, or None for an unreleased branch."""
    if entry.number is None or request_name(entry.number) != entry.name:
        return None
    return OPERATIONS.get(entry.number)


def cut_code(code: int) -> int | None:
    """Return a request code cut to a ROCKETMQ header, or None if it fits.

    The header has 16 bits for it, which Java reads as a signed number.
    """
    if -0x8000 <= code <= 0x7FFF:
        return None
    return (code & 0x7FFF) - (code & 0x8000)  # the upper bit is the sign


def _requests() -> Iterator[Entry]:
    spellings: dict[int, list[str]] = {}
    for name, code in RENAMED_REQUESTS.items():
        spellings.setdefault(int(code), []).append(name)
    for code in RequestCode:
        operation = OPERATIONS[code]
        others = tuple(spellings.get(int(code), ()))
        yield Entry(
            EntryKind.request, code.name, int(code), operation.since, "", _about(operation), others
        )
    for former in FORMER_REQUESTS:
        entry = _former(EntryKind.request, former)
        known = operation_of_entry(entry)
        yield entry._replace(about=_about(known)) if known else entry


def _about(operation: Operation) -> str:
    return ": ".join(filter(None, (operation.who, operation.note)))


def _responses() -> Iterator[Entry]:
    for code in ResponseCode:
        known = RESPONSES[code]
        yield Entry(
            EntryKind.response,
            code.name,
            int(code),
            known.since,
            about=known.meaning,
            remarks=known.remarks,
        )
    for former in FORMER_RESPONSES:
        yield _former(EntryKind.response, former)


def _former(kind: EntryKind, former: FormerCode) -> Entry:
    about = f"in no release, on the branches {former.branches}" if not former.first else ""
    if kind is EntryKind.response and not about:
        about = FORMER_MEANINGS[former.name]
    return Entry(kind, former.name, former.code, former.first, former.last, about)


# -- headers and bodies -----------------------------------------------------------------------


def class_of_form(form: str) -> str | None:
    """Return the body class that a form names; None for a form without one."""
    name = form.removeprefix(_LIST_FORM)
    return name if name in CLASSES else None


def members_of(name: str) -> list[BodyMember]:
    """Return the members of a body class."""
    return [
        BodyMember(wire, cell.long_name, cell.java_type)
        if isinstance(cell, ShortMember)
        else BodyMember(wire, wire, cell)
        for wire, cell in CLASSES[name].items()
    ]


def about_form(form: str) -> str:
    """Return the description of a body form."""
    if form.startswith(_LIST_FORM):
        item = form.removeprefix(_LIST_FORM)
        return f"a JSON array of {'strings' if item == 'string' else 'JSON objects'}"
    return BODY_FORMS.get(form, "a JSON object")


@cache
def uses_of_headers() -> dict[str, list[Use]]:
    """Return header class → the requests and responses that carry it."""
    uses: dict[str, list[Use]] = {}
    for code, operation in sorted(OPERATIONS.items()):
        for header, response in (
            (operation.request_header, False),
            (operation.response_header, True),
        ):
            if header is not None:
                uses.setdefault(header, []).append(Use(code, request_name(code), response))
    return uses


@cache
def uses_of_bodies() -> dict[str, list[Use]]:
    """Return class or form → the requests and responses whose body it is."""
    uses: dict[str, list[Use]] = {}
    for code, operation in sorted(OPERATIONS.items()):
        for form, response in ((operation.request_body, False), (operation.response_body, True)):
            if form is not None:
                name = class_of_form(form) or form
                uses.setdefault(name, []).append(Use(code, request_name(code), response))
    return uses


@cache
def containers() -> dict[str, list[str]]:
    """Return body class or enum → the classes that have a member of it."""
    result: dict[str, list[str]] = {}
    for owner, members in CLASSES.items():
        for cell in members.values():
            text = cell.java_type if isinstance(cell, ShortMember) else cell
            for name in _CLASS_NAME.findall(text):
                if (name in CLASSES or name in ENUMS) and owner not in result.setdefault(name, []):
                    result[name].append(owner)
    return result


def text_of_use(use: Use) -> str:
    """Return ``SEND_MESSAGE_V2`` or ``response to SEND_MESSAGE_V2``."""
    return f"response to {use.name}" if use.response else use.name


def _headers() -> Iterator[Entry]:
    for name, fields in HEADERS.items():
        uses = [text_of_use(use) for use in uses_of_headers().get(name, [])]
        about = ", ".join(uses) or "of no operation"
        parts = dict.fromkeys(part for field in fields for part in (field.name, field.wire))
        yield Entry(EntryKind.header, name, about=about, parts=tuple(parts))
    for name, about in HOOK_FIELDS.items():
        yield Entry(EntryKind.header, name, about=f"ext field of no class: {about}")


def _bodies() -> Iterator[Entry]:
    for name, members in CLASSES.items():
        uses = [text_of_use(use) for use in uses_of_bodies().get(name, [])]
        inside = [f"in {owner}" for owner in containers().get(name, [])]
        shorts = [cell.long_name for cell in members.values() if isinstance(cell, ShortMember)]
        about = ", ".join(uses or inside) or "of no operation by itself"
        yield Entry(EntryKind.body, name, about=about, parts=(*members, *shorts))
    for name, constants in ENUMS.items():
        yield Entry(EntryKind.body, name, about=f"one of {', '.join(constants)}", parts=constants)
    for name, about in BODY_FORMS.items():
        yield Entry(EntryKind.body, name, about=about)

"""Published definitions as `.proto` files, for programs that read nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .published import Published

TIMES = ("Timestamp", "Duration")
"""messages of Protocol Buffers itself that the definitions import; their fields are the same"""
HEAD = 'syntax = "proto3";'


def write_proto_files(found: Published, folder: Path) -> None:
    """Write the definitions, and what they import, into a folder."""
    own = folder / "google" / "protobuf"
    own.mkdir(parents=True)
    lines = [HEAD, "package apache.rocketmq.v2;"]
    for name in TIMES:
        path = own / f"{name.lower()}.proto"
        fields = "int64 seconds = 1; int32 nanos = 2;"
        path.write_text(f"{HEAD} package google.protobuf; message {name} {{ {fields} }}")
        lines.append(f'import "{path.relative_to(folder)}";')
    lines += _types_in("", found)
    lines += _services(found)
    (folder / "rocketmq.proto").write_text("\n".join(lines))


def _types_in(outer: str, found: Published) -> Iterator[str]:
    for name, values in found.enums.items():
        if name.rpartition(".")[0] == outer:
            yield f"enum {name.rpartition('.')[2]} {{ option allow_alias = true;"
            yield from (f"{value} = {number};" for number, value in sorted(values.items()))
            yield "}"
    for name, fields in found.messages.items():
        if name.rpartition(".")[0] == outer:
            yield f"message {name.rpartition('.')[2]} {{"
            yield from _types_in(name, found)
            for number, (field, kind, of, many) in fields.items():
                yield f"{'repeated ' if many else ''}{of or kind} {field} = {number};"
            yield "}"


def _services(found: Published) -> Iterator[str]:
    for service in sorted({path.partition("/")[0] for path in found.methods}):
        yield f"service {service} {{"
        for path, (asks, asks_many, gives, gives_many) in found.methods.items():
            owner, _, method = path.partition("/")
            if owner == service:
                asked = f"{'stream ' if asks_many else ''}{asks}"
                given = f"{'stream ' if gives_many else ''}{gives}"
                yield f"rpc {method} ({asked}) returns ({given}) {{}}"
        yield "}"

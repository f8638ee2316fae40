"""Columns of a command's row, in output order."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from .column import Description, columns_of


class CommandRow(msgspec.Struct, gc=False):
    """A command with everything known of it."""

    capture: Annotated[str, Description("name of the capture file", "the file")]
    packet: Annotated[int, Description("packet that completed the command", "capture")]
    time: Annotated[str, Description("time of that packet", "capture", type="time")]
    conversation: Annotated[int, Description("number of the TCP connection", "TCP")]
    client_address: Annotated[
        str, Description("`address:port` that sends the request", "IP and TCP header")
    ]
    server_address: Annotated[
        str, Description("`address:port` that sends the response", "IP and TCP header")
    ]
    kind: Annotated[str, Description("`request`, `response` or `oneway`", "flag")]
    code: Annotated[
        int,
        Description(
            "request or response code, restored if the header cut it to 16 bits", "frame header"
        ),
    ]
    name: Annotated[str, Description("name of that code", "RequestCode, ResponseCode")]
    opaque: Annotated[int, Description("number that pairs request and response", "frame header")]
    flag: Annotated[int, Description("bit 0 response, bit 1 oneway", "frame header")]
    language: Annotated[str | None, Description("language of the sender", "frame header")]
    version: Annotated[int, Description("MQVersion ordinal of the sender", "frame header")]
    version_name: Annotated[str, Description("name of that version", "MQVersion")]
    serialize_type: Annotated[str, Description("`JSON` or `ROCKETMQ`", "frame prefix")]
    remark: Annotated[
        str | None, Description("remark, usually the error text of a response", "frame header")
    ]
    ext_fields: Annotated[
        dict[str, str], Description("ext fields as on the wire; credentials masked", "header")
    ]
    header_name: Annotated[str | None, Description("Java class of the ext fields", "operation")]
    header: Annotated[
        dict[str, object], Description("ext fields by long name and typed", "ext fields")
    ]
    header_parts: Annotated[
        dict[str, object] | None,
        Description("decoded ids, receipts, … of `header`", "ext fields"),
    ]
    body: Annotated[
        dict[str, object] | None,
        Description("decoded body: `kind` and `value`, see below", "body"),
    ]
    messages: Annotated[
        list[dict[str, object]] | None, Description("messages in the body, see below", "body")
    ]
    header_bytes: Annotated[
        int,
        Description("length of the header", "frame prefix", unit="bytes"),
    ]
    body_bytes: Annotated[
        int,
        Description("body on the wire", "frame prefix", unit="bytes"),
    ]
    missing_bytes: Annotated[
        int,
        Description("bytes of the body that the capture does not have", "TCP", unit="bytes"),
    ]
    request_packet: Annotated[
        int | None, Description("of a response: packet of its request", "pairing")
    ]
    request_code: Annotated[
        int | None, Description("of a response: code of its request", "pairing")
    ]
    request_name: Annotated[
        str | None, Description("of a response: name of its request", "pairing")
    ]
    latency_us: Annotated[
        int | None, Description("of a response: time since its request", "pairing", unit="µs")
    ]
    findings: Annotated[
        list[dict[str, object]],
        Description(
            "findings about the command: `kind`, `severity`, `detail`, `offset`", "FindingKind"
        ),
    ]


COMMAND_COLUMNS: Final = columns_of(CommandRow)

"""Row of a TCP connection: what its exchanges do not show.

Client, network round trips, how the connection ended, losses, and retransmissions. These rows come
beside those of the exchanges (`record.py`) and share the conversation number.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from .column import Description, columns_of

HANDSHAKE = "handshake"
SYN_ONLY = "syn"
MIDSTREAM = "midstream"

FIN = "fin"
RESET = "reset"
REFUSED = "refused"
NO_RESPONSE = "no_response"
NEVER_OPENED = (REFUSED, NO_RESPONSE)
"""Values of `end` of connects that failed."""
OPEN = "open"
RENAMED_ENDS: Final = {"no_answer": NO_RESPONSE}
"""Value of `end` in old logs → current value. Filters accept both."""

CLIENT = "client"
SERVER = "server"
BOTH = "both"


class ConversationRecord(msgspec.Struct, gc=False):
    """A TCP connection with payload, SYN, FIN or RST as one row.

    Times are nanoseconds since the epoch here; written they have the forms of `ExchangeRecord`.
    """

    capture: Annotated[str, Description("name of the capture file of its first packet", "the file")]
    conversation: Annotated[
        int, Description("number of the connection, as in the exchanges", "TCP")
    ]
    client_address: Annotated[
        str,
        Description(
            "`address:port` that connected; without SYN: that sent the first request, or was"
            " seen first",
            "IP and TCP header",
        ),
    ]
    server_address: Annotated[
        str,
        Description("`address:port` of the other end", "IP and TCP header"),
    ]
    protocol: Annotated[
        str,
        Description(
            "`ROCKETMQ`, `REPLICATION`, the other protocol's name, `unknown`, or `no payload`",
            "first bytes",
        ),
    ]
    start_time: Annotated[int, Description("time of its first packet", "capture", type="time")]
    end_time: Annotated[
        int, Description("time of its last packet that is not a pure ACK", "capture", type="time")
    ]
    start: Annotated[
        str,
        Description(
            "`handshake` (SYN and SYN/ACK seen), `syn` (one of them), `midstream` (none)", "TCP"
        ),
    ]
    end: Annotated[
        str,
        Description(
            "`fin`, `reset`, `refused` (RST in response to the SYN), `no_response` (no response to"
            " the SYN) or `open`",
            "TCP",
        ),
    ]
    ended_by: Annotated[
        str | None, Description("`client` or `server`: who sent the first FIN or RST", "TCP")
    ]
    rtt_us: Annotated[
        int | None,
        Description("from SYN to the acknowledgement of SYN/ACK", "TCP handshake", unit="µs"),
    ]
    syn_rtt_us: Annotated[
        int | None,
        Description(
            "part of `rtt_us` from SYN to SYN/ACK: between the capture point and the server",
            "TCP handshake",
            unit="µs",
        ),
    ]
    ack_rtt_us: Annotated[
        int | None,
        Description(
            "part of `rtt_us` from SYN/ACK to its acknowledgement: between the capture point and"
            " the client",
            "TCP handshake",
            unit="µs",
        ),
    ]
    syns: Annotated[int, Description("SYNs of the client: more than one were repeated", "TCP")]
    directions: Annotated[
        str, Description("who was seen sending: `both`, `client`, `server`", "TCP")
    ]
    client_packets: Annotated[
        int, Description("packets of the client with payload, SYN, FIN or RST", "TCP")
    ]
    server_packets: Annotated[
        int, Description("packets of the server with payload, SYN, FIN or RST", "TCP")
    ]
    client_bytes: Annotated[
        int,
        Description(
            "payload that the client sent, repeated bytes counted again", "TCP", unit="bytes"
        ),
    ]
    server_bytes: Annotated[
        int,
        Description(
            "payload that the server sent, repeated bytes counted again", "TCP", unit="bytes"
        ),
    ]
    client_retransmissions: Annotated[
        int, Description("segments of the client with only bytes that were seen before", "TCP")
    ]
    server_retransmissions: Annotated[
        int, Description("segments of the server with only bytes that were seen before", "TCP")
    ]
    client_zero_windows: Annotated[
        int, Description("packets in which the client said that it has no room left", "TCP")
    ]
    server_zero_windows: Annotated[
        int, Description("packets in which the server said that it has no room left", "TCP")
    ]
    gaps: Annotated[int, Description("holes in both directions", "TCP")]
    gap_bytes: Annotated[
        int, Description("bytes that the capture does not have", "TCP", unit="bytes")
    ]
    commands: Annotated[int, Description("commands decoded", "frames")]
    facts: Annotated[
        list[str],
        Description(
            "additional data for diagnosis, as `name=value`; the names are listed below",
            "first bytes, frames, TCP",
        ),
    ] = []


CONVERSATION_COLUMNS: Final = columns_of(ConversationRecord)

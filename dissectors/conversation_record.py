"""A TCP connection as one flat row: what no exchange can say, because it was none.

Who connected, how long the network took, how the connection ended, what was lost and repeated. The
row comes beside the exchanges' rows (`record.py`) and has the same number of the conversation.
"""

from __future__ import annotations

import msgspec

from .record import Column

HANDSHAKE = "handshake"
SYN_ONLY = "syn"
MIDSTREAM = "midstream"

FIN = "fin"
RESET = "reset"
REFUSED = "refused"
NO_ANSWER = "no_answer"
OPEN = "open"

CLIENT = "client"
SERVER = "server"
BOTH = "both"


class ConversationRecord(msgspec.Struct, gc=False):
    """A TCP connection with payload, SYN, FIN or RST as one row.

    Times are nanoseconds since the epoch here; written they have the forms of `ExchangeRecord`.
    """

    capture: str
    conversation: int
    client: str
    server: str
    protocol: str
    start_time: int
    end_time: int
    start: str
    end: str
    ended_by: str | None
    rtt_us: int | None
    syn_rtt_us: int | None
    ack_rtt_us: int | None
    syns: int
    directions: str
    client_packets: int
    server_packets: int
    client_bytes: int
    server_bytes: int
    client_retransmissions: int
    server_retransmissions: int
    client_zero_windows: int
    server_zero_windows: int
    gaps: int
    gap_bytes: int
    commands: int


def _side(noun: str, kind: str, unit: str, meaning: str) -> tuple[Column, Column]:
    """The column of the client and that of the server."""
    return (
        Column(f"{CLIENT}_{noun}", kind, unit, meaning.format(CLIENT), "TCP"),
        Column(f"{SERVER}_{noun}", kind, unit, meaning.format(SERVER), "TCP"),
    )


CONVERSATION_COLUMNS: tuple[Column, ...] = (
    Column("capture", "string", "", "name of the capture file of its first packet", "the file"),
    Column("conversation", "int", "", "number of the connection, as in the exchanges", "TCP"),
    Column(
        "client",
        "string",
        "",
        "`address:port` that connected; without SYN: that asked first, or was seen first",
        "IP and TCP header",
    ),
    Column("server", "string", "", "`address:port` of the other end", "IP and TCP header"),
    Column(
        "protocol",
        "string",
        "",
        "`ROCKETMQ`, `REPLICATION`, the other protocol's name, `unknown`, or `no payload`",
        "first bytes",
    ),
    Column("start_time", "time", "", "time of its first packet", "capture"),
    Column("end_time", "time", "", "time of its last packet that is no pure ACK", "capture"),
    Column(
        "start",
        "string",
        "",
        "`handshake` (SYN and SYN/ACK seen), `syn` (one of them), `midstream` (none)",
        "TCP",
    ),
    Column(
        "end",
        "string",
        "",
        "`fin`, `reset`, `refused` (SYN answered by RST), `no_answer` (SYN not answered) or `open`",
        "TCP",
    ),
    Column("ended_by", "string", "", "`client` or `server`: who sent the first FIN or RST", "TCP"),
    Column("rtt_us", "int", "µs", "from SYN to the acknowledgement of SYN/ACK", "TCP handshake"),
    Column(
        "syn_rtt_us",
        "int",
        "µs",
        "its part from SYN to SYN/ACK: between the place of the capture and the server",
        "TCP handshake",
    ),
    Column(
        "ack_rtt_us",
        "int",
        "µs",
        "its part from SYN/ACK to the acknowledgement: between that place and the client",
        "TCP handshake",
    ),
    Column("syns", "int", "", "SYNs of the client: more than one were repeated", "TCP"),
    Column("directions", "string", "", "who was seen sending: `both`, `client`, `server`", "TCP"),
    *_side("packets", "int", "", "packets of the {} with payload, SYN, FIN or RST"),
    *_side("bytes", "int", "bytes", "payload that the {} sent, repeated bytes counted again"),
    *_side("retransmissions", "int", "", "segments of the {} of which all was seen before"),
    *_side("zero_windows", "int", "", "packets in which the {} said that it has no room left"),
    Column("gaps", "int", "", "holes in both directions", "TCP"),
    Column("gap_bytes", "int", "bytes", "bytes that the capture does not have", "TCP"),
    Column("commands", "int", "", "commands decoded", "frames"),
)

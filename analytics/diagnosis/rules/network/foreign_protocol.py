"""Something that does not speak RocketMQ connects to a RocketMQ port."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from dissectors.endpoint import host_of
from dissectors.foreign import hexadecimal_of
from dissectors.quantities import counted
from dissectors.remoting.framing.frame import MAX_FRAME
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import FIRST_BYTES, conversation_fact_in
from dissectors.rows.conversation_record import ConversationRecord

from ...context import Context, Need
from ...names import MAX_NAMED, Names, counted_names
from ...outages import named, subject_at
from ...problem import Case, ProblemSeverity, connected
from ...rule import COVERED, DiagnosisRule, TallyFold

ROCKETMQ: Final = "ROCKETMQ"
OTHERS: Final = frozenset(("HTTP", "SSH", "AMQP", "Redis", "Kafka", "HAProxy", "unknown"))
"""gRPC belongs on a proxy, HTTP/2 and TLS have rules of their own, REPLICATION is RocketMQ's"""
LENGTH_ADDED: Final = 4
"""Netty logs the declared length plus that of the length field"""
RDP: Final = "0300"
"""TPKT, version 3: sent by remote desktop scanners"""

_WORD: Final = re.compile(r"[0-9a-f]{8}")
"""the first four bytes, as hex"""
FRAME_HEAD: Final = 8
"""bytes before the header of a frame: its length, and that of the header"""
_SERIALIZATIONS: Final = (0, 1)
"""first byte of the header's length: JSON, ROCKETMQ"""


class _Fold(TallyFold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.protocols: Counter[str] = Counter()
        self.hosts = Names()
        self.lengths: Counter[str] = Counter()
        self.remoting = 0

    def add_connection(self, row: ConversationRecord) -> None:
        protocol = row.protocol
        if protocol == ROCKETMQ:
            self.remoting += 1
            return
        first = conversation_fact_in(row.facts, FIRST_BYTES)
        if protocol == "unknown":
            if first is None:
                return  # its start was not captured
            is_rdp = first.startswith(RDP)
            if row.gaps and not is_rdp:
                return  # possibly RocketMQ with cut frames
            if _begins_frame(first, row.client_bytes):
                return  # the capture or the connection ended within its first frame
            protocol = "RDP" if is_rdp else "an unknown protocol"
        self.tally.add(
            connected(row, f"{row.client_address} speaks {protocol} to {row.server_address}")
        )
        self.protocols[protocol] += 1
        if first is not None and _WORD.match(first):
            declared = hexadecimal_of(first[:8]) or 0
            if declared > MAX_FRAME and len(self.lengths) < MAX_NAMED:
                self.lengths[str(declared + LENGTH_ADDED)] += 1
        self.hosts.note(host_of(row.client_address))

    def case(self, context: Context) -> Case | None:
        # At a server that is none of RocketMQ, other protocols are normal.
        if not (self.remoting or _is_known(self.key, context)):
            return None
        case = self.tally.case(
            f"{counted(self.tally.count, 'connection')} to {named(context, self.key)} did not speak"
            f" RocketMQ: {counted_names(self.protocols)}, from {counted_names(self.hosts)}",
            subject_at(context, self.key),
        )
        if self.lengths:
            case.details.append(
                "lengths in the server's log (TooLongFrameException):"
                f" {counted_names(self.lengths)}"
            )
        return case


def _begins_frame(first: str, sent: int) -> bool:
    """Return whether a client's first bytes, of `sent`, are those of a frame without its rest."""
    length, header = hexadecimal_of(first[:8]), hexadecimal_of(first[8:16])
    if length is None or header is None or len(first) < 16:
        return False
    serialization, header = header >> 24, header & 0xFFFFFF
    return (
        serialization in _SERIALIZATIONS
        and header + 4 <= length <= MAX_FRAME
        and (sent < FRAME_HEAD + header)
    )


def _is_known(address: str, context: Context) -> bool:
    return address in context.servers or context.broker(address) != address


def _key(row: ConversationRecord) -> str | None:
    if row.start == tcp.MIDSTREAM and row.protocol != ROCKETMQ:
        return None
    return row.server_address if row.protocol == ROCKETMQ or row.protocol in OTHERS else None


RULE = DiagnosisRule(
    id="foreign-protocol",
    severity=ProblemSeverity.WARNING,
    title="Something that does not speak RocketMQ connects to a RocketMQ port",
    searched=(
        "TooLongFrameException",
        "Adjusted frame length exceeds 16777216: 1195725860",
        "50331699",
    ),
    proof=(
        "A connection to a port with RocketMQ traffic starts with the first bytes of another"
        " protocol."
    ),
    explanation=(
        "The server reads the first four bytes as the length of a frame: `GET ` reads as"
        " 1195725856, and the start of a scanner for remote desktops as 50331667. The log shows"
        " these numbers plus 4. It logs TooLongFrameException and closes the connection. This does"
        " no harm, but a program uses the wrong port, or scans it."
    ),
    advice=(
        "Find out who connects: health checks should use plain TCP, and the dashboard and"
        " Prometheus have their own ports. A scanner from outside means that the port is reachable"
        " from the internet: close it."
    ),
    grpc=COVERED,
    fold=_Fold,
    connections=_key,
    references=("apache/rocketmq#8086", "apache/rocketmq#2015"),
    needs={Need.CONNECTIONS},
    lasts=None,
)

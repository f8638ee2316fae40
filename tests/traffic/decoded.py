"""Runs what is tested over capture files, and says what came out in words that can be compared."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dissectors.conversations.conversation import Pdu
from dissectors.decode.exchange import Exchange
from dissectors.decode.pipeline import Decode, DecodeOptions, DecodeStats
from dissectors.findings import Finding, FindingKind
from dissectors.rows.record import ExchangeRecord

from .captures import pcap_of
from .commands import Command
from .talk import Tcp


@dataclass
class Outcome:
    """All that a run gave."""

    exchanges: list[Exchange] = field(default_factory=list)
    records: list[ExchangeRecord] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    stats: DecodeStats = field(default_factory=DecodeStats)

    @property
    def kinds(self) -> Counter[FindingKind]:
        return Counter(info.kind for info in self.findings)

    @property
    def pdus(self) -> list[Pdu]:
        """All PDUs, each once, in order of the packets that completed them."""
        found = [one for each in self.exchanges for one in (each.request, each.response) if one]
        return sorted(found, key=lambda pdu: (pdu.packet, pdu.offset))

    @property
    def statuses(self) -> Counter[str]:
        return Counter(one.status for one in self.exchanges)


def decode(sources: Iterable[Path | str], options: DecodeOptions | None = None) -> Outcome:
    """The exchanges of capture files."""
    run = Decode([str(source) for source in sources], options)
    outcome = Outcome(stats=run.stats)
    for batch in run.exchanges():
        outcome.exchanges += batch
        outcome.findings += run.take_findings()
    outcome.findings += run.take_findings()
    return outcome


def records(sources: Iterable[Path | str], options: DecodeOptions | None = None) -> Outcome:
    """The records of capture files."""
    run = Decode([str(source) for source in sources], options)
    outcome = Outcome(stats=run.stats)
    for batch in run.records():
        outcome.records += batch
        outcome.findings += run.take_findings()
    outcome.findings += run.take_findings()
    return outcome


def decode_bytes(data: bytes, options: DecodeOptions | None = None) -> Outcome:
    """The exchanges of one capture given as bytes."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(data)
        file.flush()
        return decode([file.name], options)


def decode_segments(segments: Iterable[Tcp], options: DecodeOptions | None = None) -> Outcome:
    """The exchanges of segments, captured in this order on Ethernet."""
    return decode_bytes(pcap_of(segments), options)


def command_of(pdu: Pdu) -> Command:
    """A PDU in the words of `commands`; the body as far as it is there."""
    command = pdu.command
    return Command(
        code=command.code,
        opaque=command.opaque,
        flag=command.flag,
        ext=dict(command.ext_fields),
        remark=command.remark,
        body=pdu.body,
        language=command.language,
        version=command.version,
        binary=command.serialize_type == "ROCKETMQ",
    )


def said(exchange: Exchange) -> tuple[object, ...]:
    """An exchange as what was said by whom, without packets and times."""
    request, response = exchange.request, exchange.response
    return (
        exchange.client_address,
        exchange.server_address,
        exchange.status,
        repr(command_of(request)) if request else None,
        repr(command_of(response)) if response else None,
    )


def multiset(exchanges: Iterable[Exchange]) -> Counter[tuple[object, ...]]:
    """What was said, however often."""
    return Counter(said(one) for one in exchanges)

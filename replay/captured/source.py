"""Read captures and logs into send requests with outcomes, and count everything else.

Rules: memory does not depend on the size of the sources. What is read is a capture in any form that
`dissectors` reads, or the JSON lines of ``rmqtool decode pcap --commands``, which hold bodies.
Server addresses are recorded, and those of brokers named in a NameServer's response or a
registration, because nothing may be sent to them.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from dissectors.budget import Budget
from dissectors.conversations.conversation import Pdu
from dissectors.decode.decoded_log import MANIFEST
from dissectors.decode.pipeline import CommandSeen, Decode, DecodeOptions
from dissectors.endpoint import endpoint_text
from dissectors.findings import Finding, FindingKind
from dissectors.remoting.broker_addresses import address_of
from dissectors.remoting.code_names import request_name
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import RequestCode
from dissectors.rows.broker_names import BrokerNames
from dissectors.rows.relays import Relay, Relays
from dissectors.tcp.capture import capture_index, packet_number
from dissectors.tcp.decompression import MOST_TIMES
from dissectors.tcp.formats import JSON_ARRAY, TO_JSON_LINES
from dissectors.tcp.source import StoredSource, expand_sources, source_of

from ..safety import ANY_PORT, host_and_port
from .captured_send import END_TRANSACTION, CapturedSend, Origin, Refused, Seen, SkipReason
from .command_log import LogReader, LogRow
from .inputs import CopiedSource, Input, is_read_once, names_of
from .look_ahead import LookAhead

MOST_OWN: Final = 65_536
"""connections that are remembered, the newest ones: more than a host can have to one address"""


class OwnConnections:
    """Address pairs, `ip:port`; shared by the sending and the reading thread."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str], None] = {}

    def add(self, local: str, peer: str) -> None:
        """Remember a connection that was just opened."""
        ends = self._ends
        # a packet of either direction may be looked up
        for pair in ((local, peer), (peer, local)):
            ends.pop(pair, None)
            ends[pair] = None
        while len(ends) > 2 * MOST_OWN:
            del ends[next(iter(ends))]

    def __contains__(self, ends: object) -> bool:
        return ends in self._ends


MAX_ADDRESSES: Final = 65_536
"""addresses that are remembered; of further ones the hosts are, with all their ports"""
MAX_HOSTS: Final = 1_000_000
"""hosts that are remembered besides; more are an error of the source"""
LONGEST_ADDRESS: Final = 300
"""characters of an address that is remembered; a host name has 253 at most"""
REGISTER_BROKER: Final = int(RequestCode.REGISTER_BROKER)
MAX_REASONS: Final = 500
"""kinds of skipped commands that are counted separately"""

COLLECTED_AT_ONCE: Final = 2048
"""connections, each some 6 KiB, after which the memory of those that ended is freed"""
COLLECTED_AT_END: Final = 256
"""connections after which the memory of all is freed in the end"""
MAX_CUT: Final = 8
"""recorded reasons of incompletely read sources"""
_CUT: Final = (FindingKind.CAPTURE_TRUNCATED, FindingKind.CAPTURE_DAMAGED)


class SourceError(Exception):
    """A source cannot be replayed; the text says why and what to do."""


class CapturedSource:
    """One reading of the sources; iterate `batches` once."""

    def __init__(
        self,
        sources: Sequence[Input],
        decode_as: frozenset[int] = frozenset(),
        raw_codes: frozenset[int] | None = None,
        relays: Iterable[Relay] = (),
        budget: Budget | None = None,
        own: Container[object] = (),
        max_ratio: int = MOST_TIMES,
    ) -> None:
        """`raw_codes`: yield only requests of these codes, unchanged.

        `relays`: those already known. `budget`: records what was bounded, and where.
        `own`: address pairs of connections to skip. `max_ratio`: limit of the compression ratio of
        a source.
        """
        self.inputs = _expanded(sources)
        self.sources = names_of(self.inputs)
        """its names"""
        self.responders: set[str] = set()
        """addresses that nothing may be sent to, of what was read so far: requests went there, or
        routes name them"""
        self.skipped: Counter[tuple[SkipReason, str]] = Counter()
        """commands that are not sends, by reason and name"""
        self.first_time: int | None = None
        """time of the first command, ns since the epoch"""
        self.commands = 0
        """commands read so far"""
        self.decode: Decode | None = None
        """the capture decoder; None for logs"""
        self.cut: list[str] = []
        """why sources ended early or have damaged parts: the first few reasons"""
        self._options = DecodeOptions(decode_as=decode_as, max_ratio=max_ratio)
        self._raw_codes = raw_codes
        self._own = own
        self._stopped = False
        self._names = BrokerNames()
        self._ahead = LookAhead(raw_codes is not None, self._names, relays, budget)

    @property
    def bytes_read(self) -> int:
        """Bytes read so far of captures as they are stored; 0 for logs."""
        return self.decode.bytes_read if self.decode is not None else 0

    @property
    def relays(self) -> set[Relay]:
        """Relays known so far."""
        return self._ahead.relays

    def stop(self) -> None:
        """Stop reading; may be called from another thread."""
        self._stopped = True
        if self.decode is not None:
            self.decode.stop()

    def batches(self) -> Iterator[list[CapturedSend | Refused]]:
        """Yield send requests in sending order, or `Refused` if one cannot be replayed."""
        if _are_logs(self.inputs):
            for one in self.inputs:
                yield from self._log(one)
        else:
            yield from self._captures()
        yield self._ahead.take(everything=True)

    def _captures(self) -> Iterator[list[CapturedSend | Refused]]:
        decode = self.decode = Decode(self.inputs, self._options)
        if self._stopped:  # before the line above
            decode.stop()
        collector = _Collector()
        for batch in decode.commands():
            for seen in batch:
                self._receive(seen)
            if batch:
                collector.at(batch[-1].pdu.conversation)
            self._note_findings(decode.take_findings())
            yield self._ahead.take()
        self._note_findings(decode.take_findings())

    def _note_findings(self, findings: Iterable[Finding]) -> None:
        """Keep the findings that say that a capture was not read completely."""
        for finding in findings:
            if finding.kind in _CUT:
                self._note_cut(self.sources[capture_index(finding.packet)], finding.detail)

    def _note_cut(self, name: str, reason: str) -> None:
        if len(self.cut) < MAX_CUT:
            self.cut.append(f"{name}: {reason}")

    def _receive(self, command: CommandSeen) -> None:
        """Receive one command of a capture."""
        pdu = command.pdu
        if (pdu.src, pdu.dst) in self._own:
            return
        self._note(pdu.ts)
        if pdu.flag & 1:
            self._response(command)
            return
        code = pdu.command.code
        # also if it is not replayed: nothing may be sent to any server of the capture
        self._note_request(pdu.dst, code, pdu.command.ext_fields)
        if self._raw_codes is not None:
            if code not in self._raw_codes:
                self.skip(SkipReason.NOT_ALLOWED, request_name(code))
                return
        elif code not in SENDS and code != END_TRANSACTION:
            self.skip(SkipReason.NOT_A_SEND, request_name(code))
            return
        self._ahead.request(self._seen_of(pdu))

    def _seen_of(self, pdu: Pdu) -> Seen:
        origin = self._origin_of(pdu)
        return Seen(origin, pdu.command, pdu.body, pdu.missing, None, pdu, pdu.header_length)

    def _origin_of(self, pdu: Pdu) -> Origin:
        return Origin(
            self.sources[capture_index(pdu.packet)],
            packet_number(pdu.packet),
            pdu.conversation,
            pdu.src,
            pdu.dst,
            pdu.ts,
            pdu.opaque,
        )

    def _response(self, command: CommandSeen) -> None:
        request, pdu = command.request, command.pdu
        if request is None:
            self.skip(SkipReason.ORPHAN)
            return
        if pdu.brokers:
            self._note_brokers(pdu.brokers)
        response = pdu.command
        key = self._origin_of(request).key
        self._ahead.response(key, pdu.ts, response.code, response.remark, response.ext_fields, pdu)

    def _log(self, one: Input) -> Iterator[list[CapturedSend | Refused]]:
        source = source_of(one) if isinstance(one, str) else one
        if isinstance(source, StoredSource):
            source.max_ratio = self._options.max_ratio
        reader = LogReader(source.name, SourceError)
        try:
            # a take after each chunk: what is settled does not pile up
            for chunk in source.chunks():
                for row in reader.receive(chunk):
                    self._receive_row(reader, row)
                yield self._ahead.take()
                if self._stopped:
                    return
            if problem := source.problem:
                self._note_cut(source.name, problem)
            for row in reader.finish():
                self._receive_row(reader, row)
        finally:
            source.close()

    def _receive_row(self, reader: LogReader, row: LogRow) -> None:
        """Receive one command of a log."""
        command = reader.command_of(row)
        self._note(command.time)
        if command.is_response:
            self._note_brokers(command.brokers)
            if command.request_key is None:
                self.skip(SkipReason.ORPHAN)
            else:
                self._ahead.response(
                    command.request_key,
                    command.time,
                    command.code,
                    command.remark,
                    command.ext_fields,
                )
            return
        self._note_request(command.server_address, command.code, command.ext_fields)
        if self._raw_codes is not None:
            raise SourceError(f"{reader.name}: a log has no complete requests; use the capture")
        if command.code not in SENDS and command.code != END_TRANSACTION:
            self.skip(SkipReason.NOT_A_SEND, request_name(command.code))
            return
        self._ahead.request(reader.seen_of(row, command))

    def skip(self, why: SkipReason, detail: str = "") -> None:
        """Count a command that is not replayed."""
        key = why, detail
        if key not in self.skipped and len(self.skipped) >= MAX_REASONS:
            key = why, "others"
        self.skipped[key] += 1

    def _note(self, time: int) -> None:
        self.commands += 1
        if self.first_time is None:
            self.first_time = time
        self._ahead.at(time)

    def _note_request(self, server_address: str, code: int, fields: Mapping[str, str]) -> None:
        note_server(self.responders, server_address)
        # a broker names its own address, even if no request to it was captured
        registered = fields.get("brokerAddr") if code == REGISTER_BROKER else None
        if registered:
            note_server(self.responders, registered)

    def _note_brokers(self, brokers: Sequence[str]) -> None:
        self._names.add_routed(brokers)
        for address in brokers:
            note_server(self.responders, address_of(address))


class _Collector:
    """Frees the memory of closed connections, which are reference cycles."""

    def __init__(self) -> None:
        self._last = 0
        self._next = COLLECTED_AT_ONCE

    def at(self, conversation: int) -> None:
        """Note the number of a connection; one that began after `COLLECTED_AT_ONCE` others."""
        self._last = conversation
        if conversation >= self._next:
            self._next = conversation + COLLECTED_AT_ONCE
            gc.collect()

    def at_end(self) -> None:
        """Free all of them, unless the few that there were take less than a collection costs."""
        if self._last >= COLLECTED_AT_END:
            gc.collect()


class Survey(NamedTuple):
    """What a first pass over the sources found."""

    responders: set[str]
    """all addresses that nothing may be sent to: requests of the sources were sent there, or
    routes and registrations name them as brokers'"""
    relays: set[Relay]
    """relays that any two responses prove"""


def survey_of(
    sources: Sequence[Input],
    decode_as: frozenset[int] = frozenset(),
    max_ratio: int = MOST_TIMES,
) -> Survey:
    """Read the sources once, before they are replayed; SourceError as `CapturedSource`.

    The sources must be repeatable: see `inputs.repeatable`.
    """
    inputs = _expanded(sources)
    if _are_logs(inputs):
        source = CapturedSource(inputs, decode_as, max_ratio=max_ratio)
        for _ in source.batches():
            pass
        return Survey(source.responders, source.relays)
    relays = Relays()
    addresses: set[str] = set()
    options = DecodeOptions(decode_as=decode_as, max_ratio=max_ratio)
    collector = _Collector()
    for batch in Decode(inputs, options).records():
        if batch:
            collector.at(batch[-1].conversation)
        for record in batch:
            note_server(addresses, record.server_address)
            for address in record.brokers:
                note_server(addresses, address_of(address))
            relays.add(record)
    collector.at_end()  # before the second pass
    return Survey(addresses, set(relays.proven()))


def note_server(responders: set[str], address: str) -> None:
    """Add an address that nothing may be sent to; SourceError if there are too many."""
    if len(address) > LONGEST_ADDRESS:
        # An IP address may have a zone or dots of any length; what is longer without is no host.
        host = host_and_port(address)[0].partition("%")[0].rstrip(".")
        if len(host) > LONGEST_ADDRESS:
            return
        address = endpoint_text(host, ANY_PORT)
    if address in responders:
        return
    if len(responders) >= MAX_ADDRESSES:
        address = f"{address.rpartition(':')[0]}:{ANY_PORT}"
        if len(responders) >= MAX_ADDRESSES + MAX_HOSTS and address not in responders:
            raise SourceError(
                f"more than {MAX_HOSTS} hosts: not all of them are protected from being sent to"
            )
    responders.add(address)


def _expanded(sources: Sequence[Input]) -> list[Input]:
    """Return the sources, with folders replaced by their captures."""
    expanded: list[Input] = []
    for source in sources:
        expanded += expand_sources([source]) if isinstance(source, str) else [source]
    return expanded


def _are_logs(inputs: Sequence[Input]) -> bool:
    """Return whether the sources are logs; raise SourceError if only some are, or lack bodies."""
    kinds = {_kind_of(source) for source in inputs}
    if len(kinds) > 1:
        raise SourceError(
            "captures and logs cannot be combined: their times cannot be put in one order"
        )
    return kinds == {"log"}


def _kind_of(item: Input) -> str:
    if isinstance(item, str):
        if is_read_once(item):  # live: what is read here would be missing later
            return "capture"
        path = Path(item)
        if path.is_dir() or path.name == MANIFEST or path.suffix == ".parquet":
            raise SourceError(
                f"{item}: a decoded log of exchanges holds no bodies; replay the capture, or "
                "`rmqtool decode pcap CAPTURE --commands -o LOG.jsonl`"
            )
    elif not isinstance(item, CopiedSource):
        return "capture"
    source = source_of(item) if isinstance(item, str) else item
    try:
        head = next((chunk for chunk in source.chunks() if chunk.strip()), b"")
    finally:
        source.close()
    head = head.lstrip()
    if head.startswith(b"["):
        raise SourceError(f"{source.name} is {JSON_ARRAY}; {TO_JSON_LINES}")
    return "log" if head.startswith(b"{") else "capture"

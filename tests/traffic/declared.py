"""The promise that decoding makes for any bytes: the run ends and gives only declared types."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable

import msgspec

from dissectors.decode.exchange import Exchange
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.findings import Finding, FindingKind
from dissectors.remoting.command import RemotingCommand
from dissectors.rows.record import STATUSES, ExchangeRecord
from dissectors.tcp.source import CaptureError

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(ExchangeRecord)


def assert_declared(values: Iterable[object], findings: Iterable[Finding]) -> None:
    """Only declared types, with values within what they declare."""
    for one in values:
        if isinstance(one, ExchangeRecord):
            assert one.status in STATUSES
            _decoder.decode(_encoder.encode(one))
        else:
            assert isinstance(one, Exchange)
            assert one.status in STATUSES
            for pdu in (one.request, one.response):
                if pdu is not None:
                    assert isinstance(pdu.command, RemotingCommand)
                    assert isinstance(pdu.body, bytes)
                    assert len(pdu.body) <= pdu.body_length
                    assert 0 <= pdu.missing <= pdu.body_length
    for info in findings:
        assert isinstance(info.kind, FindingKind)
        assert isinstance(info.detail, str)
        assert 0 <= info.ts < 1 << 63


def run(
    capture: bytes, decode_as: frozenset[int] = frozenset(), *, take: bool = True
) -> list[ExchangeRecord]:
    """The rows of a capture that may be anything; its exchanges are looked at as well."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(capture)
        file.flush()
        options = DecodeOptions(decode_as=decode_as)
        rows: list[ExchangeRecord] = []
        try:
            decode = Decode([file.name], options)
            for batch in decode.records():
                rows += batch
                assert_declared(batch, decode.take_findings() if take else [])
            seen = 0
            decode = Decode([file.name], options)
            for exchanges in decode.exchanges():
                seen += len(exchanges)
                assert_declared(exchanges, decode.take_findings() if take else [])
        except CaptureError:
            return []
        assert seen == len(rows)
        stats = decode.stats
        counted = stats.rocketmq_conversations + sum(stats.not_decoded.values())
        assert counted + stats.replication_conversations == stats.conversations
        return rows

"""Captured sends for the tests of replay: requests and responses without a capture around them."""

from __future__ import annotations

from pathlib import Path

from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.messages.batch import BatchItem, encode_batch
from replay.captured.captured_send import (
    CapturedHeader,
    CapturedSend,
    Origin,
    Refused,
    Seen,
    send_header_of,
)
from replay.captured.source import CapturedSource
from replay.plan.planned_run import PlannedRun
from replay.plan.planner import PlannedSend, PlanOptions, Skipped

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
MS = 1_000_000
SECOND = 1_000_000_000
START = 1_795_168_800 * SECOND


def seen(
    at: int = 0,
    *,
    key: str = "K1",
    topic: str = "Orders",
    queue: int | str = 0,
    body: bytes = b"hello",
    opaque: int | None = None,
    conversation: int = 1,
    oneway: bool = False,
    properties: dict[str, str] | None = None,
    broker: str = "broker-a",
    code: int = 310,
    sys_flag: int = 0,
    missing: int = 0,
    client_address: str = "10.0.0.5:4",
    server_address: str = "10.0.0.1:10911",
) -> Seen:
    """A V2 send at `at` ns after the start; `properties` besides its UNIQ_KEY."""
    values = {"UNIQ_KEY": key, "WAIT": "true"} | (properties or {})
    text = "".join(f"{name}\x01{value}\x02" for name, value in values.items() if value)
    fields = {"a": "producers", "b": topic, "e": str(queue), "f": str(sys_flag), "g": "1", "h": "7"}
    fields |= {"i": text, "m": "true" if code == 320 else "false", "n": broker}
    number = at // MS if opaque is None else opaque
    origin = Origin(
        "a.pcap", number + 1, conversation, client_address, server_address, START + at, number
    )
    command = RemotingCommand(code, number, 2 if oneway else 0, ext_fields=fields)
    return Seen(origin, command, body, missing)


def captured(request: Seen) -> CapturedSend:
    """The send as the look-ahead makes it."""
    header = send_header_of(request)
    assert isinstance(header, CapturedHeader)
    return CapturedSend(request, header, header.broker_name or request.origin.server_address)


def batch(*items: tuple[str, bytes]) -> bytes:
    """The body of a batch of messages with UNIQ_KEY and body."""
    return encode_batch(BatchItem(body, {"UNIQ_KEY": key}) for key, body in items)


def sample(name: str) -> str:
    """The path of a sample."""
    return str(SAMPLES / name)


def read(*names: str) -> list[CapturedSend | Refused]:
    """All that the sources give."""
    source = CapturedSource([sample(name) for name in names])
    return [one for group in source.batches() for one in group]


def plan_of(
    *sources: str, options: PlanOptions | None = None
) -> tuple[list[PlannedSend], list[Skipped]]:
    """The steps and the skipped sends of sources."""
    planned = PlannedRun(sources, lambda _: options or PlanOptions())
    rows = [row for group in planned.batches() for row in group]
    return [r for r in rows if isinstance(r, PlannedSend)], [
        r for r in rows if isinstance(r, Skipped)
    ]

"""What Java producers with the fault strategy logged, from `samples/*.faults.json`, as updates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from dissectors.decode.command_row import command_row_of
from dissectors.decode.pipeline import Decode
from replay.fault import AttemptEvent, FaultItem, FaultSettings
from tests.replay.queues import SomeQueue

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
TOPIC = "FaultTopic"
VERSIONS = {"5x": 513, "4x": 409}
ALL_RUNS = tuple(sorted(path.name.split(".")[0] for path in SAMPLES.glob("*.faults.json")))


@dataclass(frozen=True)
class Update:
    """One attempt as its broker's item shows it."""

    broker: str
    event: AttemptEvent
    latency: int
    now: int


@dataclass(frozen=True)
class Step:
    """A call of `send`, or a look at the items between two calls."""

    kind: str
    begin: int
    at: int
    broker: str | None
    queue_id: int | None
    unique_key: str | None
    error: str | None
    updates: tuple[Update, ...]
    items: tuple[FaultItem, ...] = field(repr=False)


@dataclass(frozen=True)
class Run:
    """A recorded run of a producer."""

    name: str
    settings: FaultSettings
    steps: tuple[Step, ...]


def item_of(row: dict[str, object]) -> FaultItem:
    """Return the item as the Java class had it; the older one has fewer fields."""
    item = FaultItem(str(row["name"]))
    item.current_latency = int(str(row["currentLatency"]))
    item.start_timestamp = int(str(row["startTimestamp"]))
    item.check_stamp = int(str(row.get("checkStamp", 0)))
    item.reachable = bool(row.get("reachableFlag", True))
    return item


@cache
def run_of(name: str) -> Run:
    """Return a recorded run."""
    rows = json.loads((SAMPLES / f"{name}.faults.json").read_text())
    said = rows[0]
    settings = FaultSettings(
        FaultSettings.of_version(VERSIONS[name[-2:]]).generation,
        enabled=said["sendLatencyFaultEnable"],
        detector="detector" in name,
    )
    assert settings.latency_max == tuple(said["latencyMax"])
    assert settings.not_available == tuple(said["notAvailableDuration"])
    return Run(name, settings, tuple(_steps(name, settings, rows[1:])))


def _steps(name: str, settings: FaultSettings, rows: list[dict[str, object]]) -> Iterator[Step]:
    before: dict[str, FaultItem] = {}
    for row in rows:
        items = [item_of(item) for item in row["items"]]  # type: ignore[attr-defined]
        told = [
            item
            for item in items
            if item.name == row.get("broker") or _told(before.get(item.name), item)
        ]
        updates = [_update_of(name, settings, item, row) for item in told]
        updates.sort(key=lambda update: (update.event is AttemptEvent.ANSWERED, update.now))
        yield Step(
            kind=str(row["kind"]),
            begin=int(str(row.get("begin", row["at"]))),
            at=int(str(row["at"])),
            broker=row.get("broker"),  # type: ignore[arg-type]
            queue_id=row.get("queueId"),  # type: ignore[arg-type]
            unique_key=row.get("msgId"),  # type: ignore[arg-type]
            error=row.get("error"),  # type: ignore[arg-type]
            updates=tuple(updates),
            items=tuple(items),
        )
        before = {item.name: item for item in items}


def _told(before: FaultItem | None, item: FaultItem) -> bool:
    """Return whether an attempt changed an item; the detector changes other fields of it."""
    if before is None:
        return True
    latency = before.current_latency != item.current_latency
    moved = before.start_timestamp != item.start_timestamp
    return latency or moved or (before.reachable and not item.reachable)


def _update_of(
    name: str, settings: FaultSettings, item: FaultItem, row: dict[str, object]
) -> Update:
    """Return what must have been reported for an item to become this one."""
    refused = ("disk-full", "no-permission", "read-only")
    if item.name == row.get("broker"):
        event, isolation = AttemptEvent.ANSWERED, False
    elif any(cause in name for cause in refused):
        event, isolation = AttemptEvent.BROKER_ERROR, True
    else:
        event, isolation = AttemptEvent.TRANSPORT_ERROR, True
    duration = settings.duration_of(item.current_latency, isolation)
    at = int(str(row["at"]))
    now = item.start_timestamp - duration
    if settings.generation == "5.1" and duration == 0:
        now = at  # the time left no trace
    return Update(item.name, event, item.current_latency, now)


@cache
def routes_of(name: str) -> tuple[tuple[int, tuple[SomeQueue, ...]], ...]:
    """Return when, in milliseconds, which queues came with a route that differs from the last."""
    found: list[tuple[int, tuple[SomeQueue, ...]]] = []
    decode = Decode([str(SAMPLES / f"{name}.pcap")])
    for batch in decode.commands():
        for seen in batch:
            row = command_row_of(seen, decode.sources)
            asked = seen.request and seen.request.command.ext_fields
            if row.request_code != 105 or not row.body or not asked or asked["topic"] != TOPIC:
                continue
            queues = _queues_of(row.body["value"])
            if queues and (not found or found[-1][1] != queues):
                found.append((seen.pdu.ts // 1_000_000, queues))
    return tuple(found)


def _queues_of(route: object) -> tuple[SomeQueue, ...]:
    """Return the queues that may be written to, in the client's order."""
    assert isinstance(route, dict)
    masters = {data["brokerName"] for data in route["brokerDatas"] if "0" in data["brokerAddrs"]}
    return tuple(
        SomeQueue(TOPIC, data["brokerName"], number)
        for data in sorted(route["queueDatas"], key=lambda data: str(data["brokerName"]))
        if data["perm"] & 2 and data["brokerName"] in masters
        for number in range(data["writeQueueNums"])
    )


@cache
def wire_attempts_of(name: str) -> dict[str, tuple[SomeQueue, ...]]:
    """Return the sends of each message that reached the wire, in their order, by UNIQ_KEY."""
    found: dict[str, list[tuple[int, SomeQueue]]] = {}
    for batch in Decode([str(SAMPLES / f"{name}.pcap")]).records():
        for row in batch:
            if row.request_code == 310 and row.topic == TOPIC and row.unique_key:
                queue = SomeQueue(TOPIC, row.broker_name or "", row.queue_id or 0)
                found.setdefault(row.unique_key, []).append((row.request_time or 0, queue))
    return {key: tuple(queue for _, queue in sorted(rows)) for key, rows in found.items()}

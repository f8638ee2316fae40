"""Feeds what is decoded to the rules, as far as it is in the time that was asked for."""

from __future__ import annotations

from collections.abc import Iterator

from analytics.diagnosis.engine import Engine
from dissectors.decode.pipeline import Decode
from dissectors.rows.record import ExchangeRecord
from dissectors.times import Moment

from .request import DiagnoseRequest


def fed(decode: Decode, engine: Engine, request: DiagnoseRequest) -> Iterator[int]:
    """Feed what is decoded to the engine, batch by batch; yield how many exchanges were read."""
    limited = request.since is not None or request.until is not None
    for batch in decode.records():
        engine.add_exchanges(
            [row for row in batch if in_window(request, row)] if limited else batch
        )
        engine.add_connections(decode.take_conversations())
        engine.add_findings(decode.take_experts())
        yield len(batch)
    engine.add_connections(decode.take_conversations())
    engine.add_findings(decode.take_experts())


def in_window(request: DiagnoseRequest, row: ExchangeRecord) -> bool:
    """Return whether an exchange began, or else ended, in the time that was asked for."""
    if request.since is None and request.until is None:
        return True
    time = row.request_time if row.request_time is not None else row.response_time
    if time is None:
        return False
    since, until = _on_day(request.since, time), _on_day(request.until, time)
    return (since is None or time >= since) and (until is None or time < until)


def _on_day(moment: Moment | None, time: int) -> int | None:
    if moment is None:
        return None
    return moment.ns if moment.has_date else moment.on_day_of(time)

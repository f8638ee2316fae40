"""The options of `replay` as they were given on the command line, not checked yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..ui.console import When


@dataclass(slots=True)
class ReplayArguments:
    """The command line as it is; the fields are its options."""

    sources: Sequence[str] = ()
    namesrv: str | None = None
    target: str | None = None
    faults: str | None = None
    acl: str | None = None
    tls: str | None = None
    tls_name: str | None = None
    tls_any_name: bool = False
    speed: str | None = None
    rate: str | None = None
    top_speed: bool = False
    max_gap: str | None = None
    loop: int = 1
    duration: str | None = None
    limit: int | None = None
    where: str = ""
    since: str | None = None
    until: str | None = None
    sample: str | None = None
    sample_by: str = "key"
    include: Sequence[str] = ()
    rewrite: Sequence[str] = ()
    decode_as: Sequence[str] = ()
    mode: str = "as-captured"
    codes: str | None = None
    in_flight: int = 256
    queues: str = "keep"
    ids: str = "keep"
    batches: str = "keep"
    requests: str = "send"
    group: str | None = None
    mark: bool = True
    timeout: str = "3s"
    retries: int = 2
    dry_run: bool = False
    yes: bool = False
    journal: str | None = None
    resume: str | None = None
    fsync: str = "second"
    fail_on: Sequence[str] = ()
    format: str = "table"
    colour: When = When.auto
    quiet: bool = False


PLAN_FIELDS: Final = (
    *("loop", "limit", "duration", "where", "since", "until", "sample", "sample_by", "include"),
    *("rewrite", "decode_as", "mode", "codes", "ids", "batches", "requests", "group", "mark"),
)
"""options that say which steps there are: a run that is resumed must have the same"""
PACE_FIELDS: Final = ("speed", "rate", "top_speed", "max_gap", "queues")
"""options that a run that is resumed takes over where they are not given anew"""

"""The rows and files of a replay's journal, and the errors about it; see `journal`."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

RUN: Final = "run.json"
STEPS: Final = "steps.jsonl"
ATTEMPTS: Final = "attempts.jsonl"
SKIPPED: Final = "skipped.jsonl"
INTERFACE: Final = "interface "
"""begins the name of a source that is a network interface"""
FORMAT: Final = "rmqtool-replay-journal"


class JournalError(Exception):
    """A folder is not a valid journal; the text says why and what to do."""


class JournalRefused(JournalError):
    """The folder of a new journal is not empty, or a file."""


class Sync(StrEnum):
    """When rows are forced to the disk."""

    never = "never"
    second = "second"
    always = "always"


class Result(StrEnum):
    """Outcome of a step."""

    stored = "stored"
    sent = "sent"
    failed = "failed"
    unknown = "unknown"
    not_captured = "not-captured"


class SourceEntry(msgspec.Struct):
    """A file that was replayed."""

    name: str
    """as the user named it"""
    bytes: int
    """its size when the run began"""
    digest: str
    """of its first MiB"""


class Run(msgspec.Struct, kw_only=True):
    """The settings of a run; the content of ``run.json``."""

    format: str = FORMAT
    """always `rmqtool-replay-journal`"""
    version: int = 1
    """version of the rows"""
    run: str
    """name of the run, the value of the property that marks its messages"""
    created: str
    """when it began"""
    rmqtool: str
    """version of rmqtool"""
    sources: list[SourceEntry]
    """what is replayed"""
    options: dict[str, object]
    """options that the plan depends on, as on the command line"""
    target: str
    """where it was sent"""


class Begin(msgspec.Struct, tag_field="kind", tag="begin", gc=False):
    """A step is about to be sent."""

    step: int
    """its number in the plan"""
    unique_keys: list[str]
    """UNIQ_KEY of its messages, as they are sent"""
    again: bool = False
    """whether it was begun before without a known outcome: from here on it may be twice"""


class OutcomeEntry(msgspec.Struct, tag_field="kind", tag="outcome", gc=False, kw_only=True):
    """Outcome of a step, beside the captured one."""

    step: int
    """its number in the plan"""
    capture: str
    """where it was captured"""
    packet: int
    """packet of the request there"""
    conversation: int
    """TCP connection there"""
    time: int
    """when it was captured, ns since the epoch"""
    topic: str
    """topic that it was sent to"""
    unique_keys: list[str]
    """UNIQ_KEY of its messages, as they were sent"""
    captured_key: str | None
    """UNIQ_KEY in the capture, of the first message"""
    messages: int
    """how many messages the step has"""
    mode: str
    """sync, async or oneway"""
    result: Result
    """stored; sent (oneway); failed (a broker or the client refused it); unknown (no response)"""
    status: str | None = None
    """SendStatus where it is stored"""
    code: int | None = None
    """response code of the last attempt"""
    reason: str | None = None
    """remark or error where it is not stored"""
    broker: str | None = None
    """broker of the last attempt"""
    address: str | None = None
    """its address"""
    queue_id: int | None = None
    """queue of the last attempt"""
    queue_offset: int | None = None
    """offset in it"""
    latency_us: int | None = None
    """of the last attempt, µs"""
    late_us: int = 0
    """how long after it was due it was sent, µs"""
    attempts: int = 1
    """attempts of this run"""
    maybe_twice: bool = False
    """whether an earlier attempt may have been stored too"""
    state: str | None = None
    """outcome of the transaction"""
    captured_result: Result = Result.unknown
    """its captured outcome; not-captured: responses may be missing there alone"""
    captured_code: int | None = None
    """response code there, of the last attempt"""
    captured_latency_us: int | None = None
    """latency there"""
    captured_attempts: int = 1
    """attempts there"""
    captured_broker: str = ""
    """broker there, by name or address"""
    differences: list[str] = []
    """differences from the capture: result, code, queue, attempts"""


class SkippedRow(msgspec.Struct, tag_field="kind", tag="skipped", gc=False):
    """A captured send that was not replayed."""

    capture: str
    packet: int
    why: str
    """name of the reason"""
    detail: str
    topic: str
    unique_key: str | None

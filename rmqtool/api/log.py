"""Write a decoded log: exchanges, messages, connections, findings, and their manifest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import time_ns

from dissectors.decode.decoded_log import (
    DecodedLogError,
    finding_of,
    manifest_of,
)
from dissectors.decode.log_writer import DecodedLogWriter
from dissectors.decode.pipeline import Decode

from ..errors import WriteError
from ..version import VERSION
from .choice import Choice, chosen
from .tables.messages import messages_of


def write_log(
    decode: Decode,
    folder: Path,
    choice: Choice,
    tests: Sequence[Callable[[object], bool]],
    replace: bool,
) -> None:
    """Write a whole run to a folder; `replace`: an existing decoded log may be replaced.

    Raise WriteError if the folder may not or cannot be written; no partial log is left.
    """
    try:
        log = DecodedLogWriter(
            folder, replace, inputs=decode.sources, messages=decode.options.messages
        )
    except DecodedLogError as error:
        reason = str(error).partition(";")[0]  # the rest is about an option of the command
        raise WriteError(reason, hint="use replace=True to replace a decoded log") from error
    except OSError as error:
        raise WriteError(error.strerror or str(error), str(folder)) from error
    try:
        _write(decode, log, choice, tests)
    except BaseException as error:
        log.discard()
        if isinstance(error, OSError):
            raise WriteError(error.strerror or str(error), str(folder)) from error
        raise


def _write(
    decode: Decode,
    log: DecodedLogWriter,
    choice: Choice,
    tests: Sequence[Callable[[object], bool]],
) -> None:
    room = choice.limit
    for batch in decode.records():
        rows = chosen(batch, tests, room)
        log.write(rows)
        log.write_messages(messages_of(decode, rows, len(rows) < len(batch)))
        log.write_conversations(decode.take_conversations())
        log.write_findings([finding_of(info, decode.sources) for info in decode.take_findings()])
        if room is not None:
            room -= len(rows)
            if not room:
                break
    log.write_conversations(decode.take_conversations())
    log.finish(manifest_of(decode.stats, VERSION, time_ns(), choice.restrictions()))

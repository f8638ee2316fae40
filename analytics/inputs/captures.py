"""Decode captures into a temporary log: the local path, in parallel to the start of Spark.

The rows are those of `capture_frame`, in one pass for all tables and without a Python worker; on a
cluster, tasks decode where they run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import time_ns

from dissectors.decode.decoded_log import finding_of, manifest_of
from dissectors.decode.exchange_forms import log_of
from dissectors.decode.log_writer import DecodedLogWriter
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.message_rows.message_table import MessageTable
from dissectors.tcp.decompression import MOST_TIMES
from dissectors.temporary import remove, temporary_in

from .inputs import Input, inputs_of

OnProgress = Callable[[int, int, int], None]
"""Progress: bytes read, packets so far if known, exchanges decoded."""


class TemporaryLog:
    """A decoded log in a temporary folder; `close` removes it."""

    def __init__(self) -> None:
        self._folder = temporary_in(Path(tempfile.gettempdir()), "rmqtool-report-")
        self._folder.mkdir(0o700)
        self.path = self._folder / "log"
        """folder of the log"""

    def close(self) -> None:
        """Remove it."""
        with suppress(OSError):
            remove(self._folder)

    def write(
        self,
        captures: Input,
        decode_as: Sequence[int],
        version: str,
        seen: OnProgress,
        messages: bool = False,
        tls_keylog: str = "",
        max_ratio: int = MOST_TIMES,
    ) -> Input:
        """Decode captures into the log; return it as an input under the captures' name.

        `messages`: include the table of messages; `tls_keylog`: TLS key log file; `max_ratio`:
        maximum decompressed bytes per compressed byte. Raise CaptureError if a capture or that file
        cannot be read.
        """
        options = DecodeOptions(
            decode_as=frozenset(decode_as),
            tls_keylog=tls_keylog,
            max_ratio=max_ratio,
            conversations=True,
            messages=messages,
        )
        decode = Decode(captures.exchanges, options)
        log = DecodedLogWriter(self.path, messages=messages)
        chunks, table = decode.counted_exchanges(), MessageTable() if messages else None
        exchanges = 0
        try:
            for batch in log_of(decode.sources, chunks, decode.add_findings, table):
                exchanges += batch.seen
                if batch.rows is not None:
                    log.write_encoded(batch.rows, batch.messages)
                log.write_conversations(decode.take_conversations())
                log.write_findings(
                    [finding_of(info, decode.sources) for info in decode.take_findings()]
                )
                seen(decode.bytes_read, decode.stats.packets, exchanges)
            log.finish(manifest_of(decode.stats, version, time_ns(), {}))
        except BaseException:
            log.discard()
            raise
        (written,) = inputs_of([str(self.path)])
        return replace(written, name=captures.name)

"""One run of `send`: messages through a producer, results, and a summary.

Rules: results go to standard output, everything else to standard error. The first Ctrl-C reads no
further message and waits for those in flight; the summary is still shown.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, TextIO

from dissectors.budget import Budget
from dissectors.printable import printable
from dissectors.quantities import counted
from dissectors.rows.record import ExchangeRecord
from dissectors.rows.tables import jsonl_of
from replay.async_producer import AsyncProducer
from replay.consent import Consent
from replay.errors import ClientError, NameServerError, RouteError
from replay.message import Attempt, Message, MessageQueue, SendResult
from replay.safety import Guard, TargetRefused
from replay.send_many import BatchFeed, Feed, IteratorFeed, LineFeed, send_many
from replay.sending.attempt import record_of_attempt
from replay.sending.send import KeySelector
from replay.wire_capture import WireCapture

from ..decode.sinks import EncodedSink, LinesSink
from ..ui.common_options import ObjectFormat
from ..ui.console import terminal_of
from ..ui.errors import print_note, said
from ..ui.figures import count, duration, size
from ..ui.interrupt import first_ends
from ..ui.json_array import rows_output
from ..ui.option_names import in_options
from ..ui.option_values import about, usage_error
from ..ui.output import Output, naming, refuse_existing, refuse_inputs
from ..ui.screen.progress import Far, Progress
from ..ui.status import CommandError, ExitStatus
from .input_lines import BadLine, LineReader, Outgoing
from .options import SendCommand, config_of, message_of
from .results import Ended, SendSummary, attempt_lines, is_good, json_of, rows_of, summary_lines
from .targets import Question, agreement_of

_AT_ONCE: Final = 512
"""rows that are written together"""


class AttemptLog:
    """A file of attempts as rows of a decoded log: reports read them as they read captures.

    JSON lines are written at once, so a killed run leaves all sends so far; a Parquet file is
    complete or absent.
    """

    def __init__(self, path: str, force: bool = False) -> None:
        """Raise CommandError if the file cannot be written or its suffix is unknown.

        `force`: one that exists is replaced.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in (".jsonl", ".parquet"):
            raise usage_error("--log", f"{path!r}: the file name must end in .jsonl or .parquet")
        self._rows: list[ExchangeRecord] = []
        self._count = 0
        self._parquet = None
        if suffix == ".parquet":
            from dissectors.decode.log_parts import FOOTER
            from dissectors.rows.parquet import ParquetRows, exchange_table, load_pyarrow

            load_pyarrow()
            self._output = Output(path, private=True, force=force)
            self._parquet = ParquetRows(self._output.stream, exchange_table(), FOOTER)
        else:
            self._output = Output(path, direct=True, private=True, force=force)

    def add(self, message: Message, attempt: Attempt) -> None:
        """Add an attempt."""
        self._rows.append(record_of_attempt(message, attempt))
        if len(self._rows) >= _AT_ONCE:
            self._write()

    def _write(self) -> None:
        rows, self._rows = self._rows, []
        self._count += len(rows)
        if self._parquet is None:
            self._output.write(jsonl_of(rows))
            self._output.flush()
        else:
            with naming(self._output.name):
                self._parquet.write(rows)

    def finish(self) -> str:
        """Finish the log and return a note on it."""
        self._write()
        if self._parquet is not None:
            with naming(self._output.name):
                self._parquet.finish()
        self._output.finish()
        path = self._output.path
        written = size(path.stat().st_size) if path is not None else ""
        return f"{counted(self._count, 'attempt')} → {path} ({written})"

    def discard(self) -> None:
        """Clean up after a failed run: JSON lines stay as far as they go, a Parquet file
        does not.
        """
        if self._parquet is not None:
            with suppress(OSError):  # of a full disk; before the output, whose end it writes
                self._parquet.close()
        self._output.discard()


MOST_SHOWN: Final = 20
"""messages shown in full; after that only those with a failed attempt"""
MOST_FAILED_SHOWN: Final = 100
"""further messages with a failed attempt that are shown; the summary counts all"""
_LONGEST_LINE: Final = 8 << 20
"""bytes of a line: more than the largest message, 4 MiB by default, has as base64"""

_Item = Sequence[Outgoing]


def run_send(request: SendCommand) -> ExitStatus:
    """Send the messages; raise CommandError if nothing can be sent."""
    config = config_of(request)
    message = message_of(request, config)
    agreement = agreement_of(request.yes, request.allow)
    agreement.add(config.namesrv_addresses())  # the user has named them
    files = [os.path.realpath(name) for name in (request.log, request.capture) if name is not None]
    if len(files) > len(set(files)):
        raise usage_error("--log and --capture", "are one file; give two names")
    for option, target in (("--log", request.log), ("--capture", request.capture)):
        if target is not None:
            refuse_inputs(target, request.inputs, option)
            refuse_existing(target, request.force)
    with about("--log"):
        log = AttemptLog(request.log, request.force) if request.log is not None else None
    try:
        capture = _capture_of(request)
    except BaseException:
        if log is not None:
            log.discard()
        raise
    guard = Guard(agreement)
    on_attempt = log.add if log is not None else None
    config = replace(config, on_attempt=on_attempt, wire=capture, guard=guard.why_not)
    run = _Run(request, message, log, capture, guard, config.budget)
    try:
        seconds = send_many(config, run, run.stoppable)
    except BaseException:
        run.discard()
        if log is not None:
            log.discard()
        raise
    finally:
        if capture is not None:
            capture.close()
    run.finish(seconds)
    return run.status()


def _capture_of(request: SendCommand) -> WireCapture | None:
    """Create the file of `--capture`; raise CommandError if that fails."""
    if request.capture is None:
        return None
    with about("--capture"):
        # `WireCapture` creates its file, and never replaces one.
        if request.force and os.path.isfile(request.capture):
            os.unlink(request.capture)
        return WireCapture(request.capture)


class _SendProgress(Progress):
    """The number of completed messages."""

    def far(self, read: int, total: int | None, found: int, seconds: float) -> Far:
        rate = count(round(read / seconds)) if seconds > 0 else "0"
        text = f"{count(read)} sent, {rate}/s, {count(found)} failed"
        if not total:
            return Far(text)
        left = duration(int((total - read) * seconds / read * 1_000_000)) if read else "-"
        whole = f"{100 * read // total:3d}% of {count(total)}: {text}, {left} left"
        return Far(whole, min(1.0, read / total))


class _Run:
    """A run of the command."""

    def __init__(
        self,
        request: SendCommand,
        message: Message,
        log: AttemptLog | None,
        capture: WireCapture | None,
        guard: Guard,
        budget: Budget,
    ) -> None:
        self.in_flight = request.most_in_flight
        self.rate = request.rate
        self._request = request
        self._message = message
        self._budget = budget
        self._log = log
        self._capture = capture
        self._summary = SendSummary()
        self._stopped = False
        output = rows_output("-", request.format is ObjectFormat.json)
        self._terminal = terminal_of(sys.stdout, request.colour)
        self._output = output
        self._lines = LinesSink(output, attempt_lines(self._terminal))
        to_screen = self._terminal.is_terminal
        self._objects = EncodedSink(output, _encode, to_screen=to_screen)
        self._shown = 0
        self._failed_shown = 0
        self._hidden = 0
        self._hopeless = False
        self._question = Question(self.clear)
        self._consent = Consent(guard, self._question)
        self._refused = False
        self._stop: Callable[[], None] | None = None
        self._error: ClientError | None = None
        self._progress = _SendProgress(sys.stderr, self._may_show_progress(), "messages")
        self._total = None if request.source is not None else request.count

    # -- sending --------------------------------------------------------------------------------

    @contextmanager
    def stoppable(self, stop: Callable[[], None]) -> Iterator[None]:
        """Stop reading messages on Ctrl-C."""

        def end() -> None:
            self._stopped = True
            self._question.end()
            stop()

        self._stop = stop
        with first_ends(end):
            yield

    def feed(self) -> Feed[_Item]:
        """Return the source of messages."""
        request = self._request
        pattern = Outgoing(0, self._message, request.broker, request.queue, request.order_key)
        if request.source is None:
            feed: Feed[Outgoing] = IteratorFeed(_copies(pattern, request.count))
        else:
            half = request.transaction is not None
            reader = LineReader(request.input_form, pattern, half)
            number = _open(request.source)
            feed = LineFeed(number, lambda line: self._decoded(reader.read(line)), _LONGEST_LINE)
        # A batch is one request, and so it has one topic and one queue.
        return BatchFeed(feed, request.batch, lambda one, two: _target(one) == _target(two))

    def weight(self, item: _Item) -> int:
        """Return the number of messages in an item."""
        return len(item)

    async def send(self, producer: AsyncProducer, item: _Item) -> SendResult:
        """Send one message, or a batch."""
        first, mode, state = item[0], self._request.mode, self._request.transaction_state
        await self._ask_consent(producer, first.message.topic)
        if state is not None:
            return await producer.send_in_transaction(first.message, lambda _: state)
        queue, selector = None, None
        if first.broker is not None and first.queue_id is not None:
            queue = MessageQueue(first.message.topic, first.broker, first.queue_id)
        elif first.broker is not None:
            selector = _of_broker(first.broker, first.number)
        elif first.order_key is not None:
            selector = KeySelector(first.order_key)
        if len(item) > 1:
            messages = [each.message for each in item]
            return await producer.send_batch(messages, mode=mode, queue=queue, selector=selector)
        return await producer.send(first.message, mode=mode, queue=queue, selector=selector)

    async def _ask_consent(self, producer: AsyncProducer, topic: str) -> None:
        """Raise RouteError if the user rejects a broker, and stop reading messages."""
        try:
            await self._consent(producer, topic)
        except TargetRefused as refusal:
            self._refused = True
            if self._stop is not None:
                self._stop()
            raise RouteError(str(refusal)) from None

    def _decoded(self, line: Outgoing | BadLine | None) -> Outgoing | None:
        if not isinstance(line, BadLine):
            return line
        self.clear()
        print_note(f"line {line.number} {line.reason}")
        self._summary.add_bad_line(line.number, line.reason)
        return None

    # -- results --------------------------------------------------------------------------------

    def ended(self, item: _Item, result: SendResult | None, error: ClientError | None) -> None:
        """Handle the result of a message or a batch."""
        ended = Ended(item, result, error)
        summary = self._summary
        summary.add(ended)
        self._error = error
        if isinstance(error, NameServerError) and summary.failed == summary.messages:
            self._hopeless = True
            if self._stop is not None:
                self._stop()  # nobody to ask: the same for the next message
        if self._request.format.is_json:
            self._objects.write([ended])
        elif self._is_shown(ended):
            self.clear()
            self._lines.write(rows_of(ended))
        self._progress.update(summary.messages, self._total, summary.failed)

    def _is_shown(self, ended: Ended) -> bool:
        if self._request.verbose:
            return True
        if self._shown < MOST_SHOWN:
            self._shown += 1
            return True
        failed = ended.result is None or not all(map(is_good, ended.attempts))
        if failed and self._failed_shown < MOST_FAILED_SHOWN:
            self._failed_shown += 1
            return True
        self._hidden += len(ended.outgoing)
        return False

    def clear(self) -> None:
        """Clear the progress line."""
        self._progress.clear()

    def discard(self) -> None:
        """Close the output."""
        self.clear()
        self._output.discard()

    def finish(self, seconds: float) -> None:
        """Show the summary."""
        self.clear()
        request, table = self._request, not self._request.format.is_json
        notes = [self._log.finish()] if self._log is not None else []
        if table:
            self._lines.idle()
        else:
            self._output.finish()
        if self._summary.messages > 1 and (table or not request.quiet):
            self._show_summary(seconds, sys.stdout if table else sys.stderr)
        elif self._error is not None:
            said(*in_options(self._error))
        if self._capture is not None:
            notes.append(_written(self._capture))
        if self._hidden:
            hidden = counted(self._hidden, "message")
            notes.append(f"{hidden} not shown; -V shows all")
        if self._hopeless and self._total != self._summary.messages:
            notes.append("no NameServer can be reached; the remaining messages were not sent")
        if self._refused and self._total != self._summary.messages:
            notes.append("a broker is not an allowed target; the remaining messages were not sent")
        notes += map(printable, self._budget.said())
        if self._stopped:
            notes.append("stopped; sends in flight have ended")
        if not request.quiet:
            for note in notes:
                print_note(note)

    def _show_summary(self, seconds: float, where: TextIO) -> None:
        lines = summary_lines(self._summary, seconds, terminal_of(where, self._request.colour))
        if where is sys.stdout:
            lines.insert(0, "")
        print("\n".join(lines), file=where, flush=True)

    def status(self) -> ExitStatus:
        """Return the exit status."""
        if self._stopped:  # even if sends failed before
            return ExitStatus.INTERRUPTED
        return ExitStatus.FAILURE if self._summary.failed else ExitStatus.OK

    def _may_show_progress(self) -> bool:
        return not self._request.quiet and not (
            self._request.verbose and self._terminal.is_terminal
        )


def _target(outgoing: Outgoing) -> tuple[str, str | None, int | None, str | None]:
    return outgoing.message.topic, outgoing.broker, outgoing.queue_id, outgoing.order_key


def _copies(pattern: Outgoing, wanted: int) -> Iterator[Outgoing]:
    message = pattern.message
    for number in range(1, wanted + 1):
        # Sending sets properties, such as UNIQ_KEY, so that each message needs its own.
        copy = Message(
            message.topic,
            message.body,
            message.tags,
            message.keys,
            dict(message.properties),
            message.flag,
        )
        yield pattern._replace(number=number, message=copy)


def _of_broker(broker: str, turn: int) -> Callable[[Sequence[MessageQueue], Message], MessageQueue]:
    """Select the queues of a broker in rotation."""

    def select(queues: Sequence[MessageQueue], message: Message) -> MessageQueue:
        own = [queue for queue in queues if queue.broker_name == broker]
        if not own:
            names = ", ".join(sorted({queue.broker_name for queue in queues}))
            reason = f"{message.topic} has no queue on broker {broker}"
            raise RouteError(reason, f"it has queues on {names}")
        return own[turn % len(own)]

    return select


def _open(source: str) -> int:
    if source == "-":
        return sys.stdin.fileno()
    if os.path.isdir(source):  # it can be opened, but not read
        raise CommandError(f"{source}: {os.strerror(errno.EISDIR)}")
    try:
        return os.open(source, os.O_RDONLY)
    except OSError as error:
        raise CommandError(f"{source}: {error.strerror}") from error


def _encode(ended: Sequence[Ended]) -> bytes:
    return b"".join(map(json_of, ended))


def _written(capture: WireCapture) -> str:
    if capture.error is not None:
        return f"{capture.path} is incomplete: {capture.error.strerror}"
    return f"{counted(capture.packets, 'packet')} → {capture.path}"

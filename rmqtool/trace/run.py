"""One run of `trace`: read the inputs in one pass, search, write the traces."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from analytics.life.life import MessageTrace, lives_as_json, lives_found
from analytics.life.otlp import otlp_of
from analytics.life.search import MOST_MESSAGES, MessageSearch
from dissectors.decode.decoded_log import Manifest, is_decoded_log
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.decode.totals import DecodeStats
from dissectors.processes.choice import decode_of
from dissectors.quantities import counted
from dissectors.remoting.bodies.custom import decoding_with
from dissectors.remoting.bodies.messages import PREVIEW_LIMIT
from dissectors.rows.tables import encodable_value
from dissectors.times import Moment
from dissectors.where.fields import message_fields

from ..api.lives import add_stores, searched
from ..decode.undecoded import nothing_decoded, refuse_terminal
from ..ui.common_options import refuse_capture_options
from ..ui.console import Terminal, terminal_of_output
from ..ui.errors import print_note, said
from ..ui.json_array import rows_output
from ..ui.json_text import visible_json
from ..ui.option_values import where_option
from ..ui.output import refuse_existing, refuse_inputs
from ..ui.screen.progress import Progress
from ..ui.status import CommandError, ExitStatus
from ..version import VERSION
from .ladder_lines import ladder_lines
from .options import TraceFormat, TraceRequest

_ENCODER: Final = msgspec.json.Encoder()


def run_trace(request: TraceRequest) -> ExitStatus:
    """Read, search, write; return the status."""
    inputs, key = _inputs_and_key(request)
    test = where_option("--where", request.where, message_fields, request.zone)
    refuse_inputs(request.output, [*inputs, request.tls_keylog])
    refuse_existing(request.output, request.force)
    search = MessageSearch(key, test)
    with decoding_with(request.plugins):
        read = _read(request, inputs, search)
    stores = request.store.stores if request.store is not None else ()
    add_stores(stores, search)
    lives = lives_found(search, read, stores)
    if not lives:
        named = f"the key {key}" if key is not None else "the filter"
        return said(f"no message matches {named}", _hint(search, key))
    _write(request, lives, key or request.where)
    if not request.quiet:
        for line in _limits(search):
            print_note(line)
        for line in request.store.notes if request.store is not None else ():
            print_note(line)
    return ExitStatus.OK


def _inputs_and_key(request: TraceRequest) -> tuple[list[str], str | None]:
    """Return the inputs and the key, which is the last argument unless there is a filter."""
    arguments = list(request.arguments)
    if request.where.strip():
        return arguments, None
    if len(arguments) < 2:
        raise CommandError(
            "no message given; add a key after the inputs, or use --where",
            "rmqtool trace incident.pcap order-4711",
            ExitStatus.USAGE,
        )
    key = arguments.pop()
    if not key.strip():
        raise CommandError("the key is empty", status=ExitStatus.USAGE)
    return arguments, key


def _hint(search: MessageSearch, key: str | None) -> str:
    if not search.senders_seen and not search.fetches:
        return "the input has no sends and no message fetches"
    if key is None:
        return "decode pcap --list-messages shows the rows that the filter tests"
    return "keys match exactly; to match part of a key, use --where 'keys ~ …'"


def _read(
    request: TraceRequest, inputs: Sequence[str], search: MessageSearch
) -> list[DecodeStats | Manifest]:
    """Read all inputs once; return their statistics."""
    logs = [name for name in inputs if name != "-" and is_decoded_log(Path(name))]
    captures = [name for name in inputs if name not in logs]
    if not captures:
        more = ("jobs",) if request.store is not None else ("jobs", "plugins")
        refuse_capture_options(request.named_options, *more)
    read: list[DecodeStats | Manifest] = [
        _read_log(name, search, request.since, request.until) for name in logs
    ]
    if captures:
        read.append(_read_captures(request, captures, search).stats)
    return read


def _read_log(
    name: str, search: MessageSearch, since: Moment | None, until: Moment | None
) -> Manifest:
    """Read a decoded log, part by part and batch by batch."""
    from analytics.inputs.inputs import inputs_of
    from analytics.inputs.window import time_of

    from ..api.decoded import search_log

    (log,) = inputs_of([name], time_of(since, until))
    assert log.manifest is not None
    if log.messages is None:
        raise CommandError(
            f"{name} has no messages table",
            "decode the captures again without --no-message-rows, or trace the captures",
        )
    search_log(log, search, since, until)
    return log.manifest


def _read_captures(request: TraceRequest, names: Sequence[str], search: MessageSearch) -> Decode:
    refuse_terminal(names, "trace - KEY")
    since, until = request.since, request.until
    options = DecodeOptions(
        decode_as=request.decode_as,
        tls_keylog=request.tls_keylog,
        max_ratio=request.max_ratio,
        messages=True,
        conversations=True,
        body_limit=PREVIEW_LIMIT if request.plugins else 0,
    )
    decode = decode_of(names, options, 1 if request.plugins else request.jobs or 1)
    refuse_inputs(request.output, decode.sources)  # also captures in a folder
    progress = Progress(sys.stderr, not request.quiet, "messages")
    rows = 0
    try:
        for number in searched(decode, search, since, until):
            rows += number
            progress.update(decode.bytes_read, decode.bytes_total, rows)
    finally:
        progress.clear()
    nothing = nothing_decoded(decode.stats)
    if nothing is not None and not rows:  # a better reason than that no message matches
        raise nothing
    return decode


def _limits(search: MessageSearch) -> Iterator[str]:
    """Yield notes on what the limits left out."""
    if search.messages_left_out:
        yield (
            f"more than {MOST_MESSAGES} messages match;"
            f" {counted(search.messages_left_out, 'row')} of other messages not shown"
        )
    if search.forgotten:
        yield (
            f"{counted(search.forgotten, 'row')} came before their message was recognized and may"
            " be missing from its trace; to find all, use its unique key as KEY"
        )


def _write(request: TraceRequest, lives: list[MessageTrace], asked: str) -> None:
    as_array = request.format is TraceFormat.json
    with rows_output(request.output, as_array, private=True, force=request.force) as output:
        terminal = terminal_of_output(request.output, request.colour)
        data = _bytes_of(request.format, lives, terminal, asked)
        is_json = request.format in (TraceFormat.json, TraceFormat.jsonl, TraceFormat.otlp)
        output.write(visible_json(data) if is_json and terminal.is_terminal else data)


def _bytes_of(
    form: TraceFormat, lives: list[MessageTrace], terminal: Terminal, asked: str
) -> bytes:
    if form in (TraceFormat.json, TraceFormat.jsonl):
        return _ENCODER.encode_lines(list(lives_as_json(lives)))
    if form is TraceFormat.otlp:
        return _ENCODER.encode(encodable_value(otlp_of(lives, VERSION))) + b"\n"
    if form is TraceFormat.html:
        from analytics.page.ladder import ladder_page

        return ladder_page(lives, asked, VERSION).encode("utf-8", "replace")
    return ("\n".join(ladder_lines(lives, terminal)) + "\n").encode("utf-8", "replace")

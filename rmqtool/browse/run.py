"""Carry out `rmqtool browse`: what is read, by which thread, on which screen."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from analytics.inputs.inputs import InputError, InputKind, inputs_of
from dissectors.decode.decoded_log import is_decoded_log
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.live.interface import LiveSource
from dissectors.where.filter import WhereError

from ..api.tables.named import EXCHANGES, table_named
from ..api.tables.table import UnknownColumnError
from ..live.keeping import opened_capture
from ..live.options import LiveRequest
from ..ui.extras import require
from ..ui.figures import counted
from ..ui.option_values import usage_error
from ..ui.status import CommandError, ExitStatus
from .model.expressions import test_of_text
from .model.reading import BackgroundReading, Filling, decoding, reading_logs
from .model.session import BrowseSession
from .model.settings import read_settings, settings_file
from .options import BrowseRequest


def run_browse(request: BrowseRequest) -> ExitStatus:
    """Open, show, and close everything in the end."""
    require("the browser", "browse", "textual")
    try:
        table_named(EXCHANGES).chosen_columns(request.columns)
    except UnknownColumnError as error:
        raise usage_error("--columns", str(error)) from None
    try:
        test_of_text(request.where, "exchanges")
    except WhereError as error:
        raise CommandError(f"--where: {error.reason}", error.pointed(), ExitStatus.USAGE) from None
    # Textual draws on standard error, and reads keys from standard input
    if not (sys.stderr.isatty() and sys.stdin.isatty()):
        raise CommandError(
            "browse needs a terminal", "for text output, use rmqtool decode pcap", ExitStatus.USAGE
        )
    session, filling, stop, end = opened(request)
    session.decode_as, session.tls_keylog = sorted(request.decode_as), request.tls_keylog
    session.max_ratio = request.max_ratio
    from .views.replaying import FullBrowser

    path = settings_file(os.environ)
    reading = BackgroundReading(session, filling, stop)
    browser = FullBrowser(session, reading, read_settings(path), path, request.plugins)
    browser.on_terminal = True
    try:
        if request.columns:
            browser.tables[EXCHANGES].columns = list(request.columns)
        browser.tables[EXCHANGES].choose(request.where)
        browser.run()
    finally:
        reading.stop()
        end()
        browser.close()
    if session.problem is not None and session.is_empty:
        raise CommandError(session.problem)
    if browser.return_code == ExitStatus.TERMINATED:
        return ExitStatus.TERMINATED
    return ExitStatus.FAILURE if browser.return_code else ExitStatus.OK


Opened = tuple[BrowseSession, Filling, Callable[[], None] | None, Callable[[], None]]
"""what is filled, by what, what ends waiting, and what closes the input"""


def opened(request: BrowseRequest) -> Opened:
    """Return what is read; raise CommandError for what cannot be."""
    if request.interface is not None:
        if request.inputs:
            raise CommandError("an interface and files", "one of both", ExitStatus.USAGE)
        return _live(request)
    if not request.inputs:
        raise CommandError("no input given", "rmqtool browse incident.pcap", ExitStatus.USAGE)
    logs = [name for name in request.inputs if name != "-" and is_decoded_log(Path(name))]
    if logs:
        return _logs(request.inputs, logs)
    decode = Decode(request.inputs, _options(request))
    session = BrowseSession(_name_of(decode.sources))
    return session, decoding(decode), decode.stop, lambda: None


def _logs(names: Sequence[str], logs: Sequence[str]) -> Opened:
    if len(logs) < len(names):
        raise CommandError("decoded logs and captures", "open either captures or decoded logs")
    try:
        inputs = [one for one in inputs_of(logs) if one.kind is not InputKind.captures]
    except InputError as error:
        raise CommandError(str(error), getattr(error, "hint", "")) from None
    session = BrowseSession(_name_of(names), has_frames=False)
    return session, reading_logs(inputs), None, lambda: None


def _live(request: BrowseRequest) -> Opened:
    assert request.interface is not None
    capture = opened_capture(
        LiveRequest(interface=request.interface, filter=request.filter), quiet=True
    )
    source = LiveSource(capture, keep=lambda _packets: None)
    decode = Decode([source], _options(request, live=True))
    session = BrowseSession(request.interface, request.keep)
    session.is_live = True
    return session, decoding(decode), decode.stop, capture.close


def _options(request: BrowseRequest, live: bool = False) -> DecodeOptions:
    return DecodeOptions(
        decode_as=request.decode_as,
        tls_keylog=request.tls_keylog,
        max_ratio=request.max_ratio,
        follow=live or request.follow,
        conversations=True,
        messages=True,
    )


def _name_of(names: Sequence[str]) -> str:
    return Path(names[0]).name or names[0] if len(names) == 1 else counted(len(names), "capture")

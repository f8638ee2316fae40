"""Carry out `rmqtool browse`: what is read, by which thread, on which screen."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from analytics.inputs.inputs import InputError, InputKind, inputs_of
from dissectors.decode.decoded_log import is_decoded_log
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.decode.secrets import key_log_named
from dissectors.live.interface import LiveSource
from dissectors.where.filter import WhereError

from ..api.tables.named import EXCHANGES
from ..decode.options import plugins_option
from ..live.opened import opened_capture
from ..live.request import LiveRequest
from ..ui.extras import require
from ..ui.figures import counted
from ..ui.option_values import ports_of, zone_option
from ..ui.status import CommandError, ExitStatus
from .arguments import BrowseArguments
from .model.expressions import test_of_text
from .model.reading import BackgroundReading, Filling, decoding, reading_logs
from .model.session import BrowseSession
from .model.settings import read_settings, settings_file


def run_browse(given: BrowseArguments) -> ExitStatus:
    """Open, show, and close everything in the end."""
    require("the browser", "browse", "textual")
    zone_option(given.tz)
    try:
        test_of_text(given.where, "exchanges")
    except WhereError as error:
        raise CommandError(f"--where: {error.reason}", error.pointed(), ExitStatus.USAGE) from None
    # Textual draws on standard error, and reads keys from standard input
    if not (sys.stderr.isatty() and sys.stdin.isatty()):
        raise CommandError(
            "browse needs a terminal", "for text output, use rmqtool decode pcap", ExitStatus.USAGE
        )
    plugins = plugins_option(given.plugin)
    session, filling, stop, end = opened(given)
    session.decode_as, session.tls_keylog = given.decode_as or [], given.tls_keylog
    session.max_ratio = given.max_ratio
    from .views.replaying import FullBrowser

    path = settings_file(os.environ)
    reading = BackgroundReading(session, filling, stop)
    browser = FullBrowser(session, reading, read_settings(path), path, plugins)
    browser.on_terminal = True
    try:
        browser.tables[EXCHANGES].choose(given.where)
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


def opened(given: BrowseArguments) -> Opened:
    """Return what is read; raise CommandError for what cannot be."""
    if given.interface is not None:
        if given.inputs:
            raise CommandError("an interface and files", "one of both", ExitStatus.USAGE)
        return _live(given)
    if not given.inputs:
        raise CommandError("no input given", "rmqtool browse incident.pcap", ExitStatus.USAGE)
    logs = [name for name in given.inputs if name != "-" and is_decoded_log(Path(name))]
    if logs:
        return _logs(given.inputs, logs)
    decode = Decode(given.inputs, _options(given))
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


def _live(given: BrowseArguments) -> Opened:
    assert given.interface is not None
    capture = opened_capture(LiveRequest(given.interface, given.filter), quiet=True)
    source = LiveSource(capture, keep=lambda _packets: None)
    decode = Decode([source], _options(given, live=True))
    session = BrowseSession(given.interface, given.keep)
    session.is_live = True
    return session, decoding(decode), decode.stop, capture.close


def _options(given: BrowseArguments, live: bool = False) -> DecodeOptions:
    return DecodeOptions(
        decode_as=ports_of(given.decode_as or []),
        tls_keylog=key_log_named(given.tls_keylog),
        max_ratio=given.max_ratio,
        follow=live or given.follow,
        conversations=True,
        messages=True,
    )


def _name_of(names: Sequence[str]) -> str:
    return Path(names[0]).name or names[0] if len(names) == 1 else counted(len(names), "capture")

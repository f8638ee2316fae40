"""Run `rmqtool browse`: input, reader thread, and screen."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from analytics.inputs.inputs import inputs_of
from analytics.inputs.window import time_of
from dissectors.decode.decoded_log import is_decoded_log, read_manifest
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.live.interface import LiveSource
from dissectors.quantities import counted
from dissectors.times import Moment

from ..api.decoded import stats_of
from ..api.judged import RequestedTime
from ..api.tables.named import EXCHANGES, MESSAGES, table_named
from ..api.tables.table import UnknownColumnError
from ..live.keeping import opened_capture
from ..live.options import LiveRequest
from ..ui.common_options import refuse_capture_options
from ..ui.extras import require
from ..ui.option_values import refuse_named, usage_error, where_option
from ..ui.status import CommandError, ExitStatus
from .model.expressions import fields_of
from .model.session import BackgroundReading, BrowseSession, Filling, decoding, reading_logs
from .model.settings import read_settings, settings_file
from .options import BrowseRequest


def run_browse(request: BrowseRequest) -> ExitStatus:
    """Run the browser, and close everything at the end."""
    require("the browser", "browse", "textual")
    try:
        table_named(EXCHANGES).chosen_columns(request.columns)
    except UnknownColumnError as error:
        raise usage_error("--columns", str(error)) from None
    where_option("--where", request.where, lambda: fields_of(EXCHANGES))
    # Textual draws on standard error, and reads keys from standard input
    if not (sys.stderr.isatty() and sys.stdin.isatty()):
        raise CommandError(
            "browse needs a terminal", "for text output, use rmqtool decode pcap", ExitStatus.USAGE
        )
    session, filling, stop, end = opened(request)
    session.decode_as, session.tls_keylog = sorted(request.decode_as), request.tls_keylog
    session.max_ratio = request.max_ratio
    from .views.actions import FullBrowser

    path = settings_file(os.environ)
    reading = BackgroundReading(session, filling, stop)
    browser = FullBrowser(session, read_settings(path), path, request.plugins)
    browser.on_terminal = True
    try:
        if request.columns:
            browser.tables[EXCHANGES].columns = list(request.columns)
        if request.sort is not None:
            for name in (EXCHANGES, MESSAGES):
                browser.tables[name].sort_by(request.sort)
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
"""session, its reader, and the functions that end a wait and close the input"""


def opened(request: BrowseRequest) -> Opened:
    """Return the opened input; raise CommandError if it cannot be read."""
    if request.interface is not None:
        if request.inputs:
            raise CommandError(
                "an interface and files cannot be combined", "omit one of them", ExitStatus.USAGE
            )
        only_files = ("max_ratio", "follow")
        refuse_named(request.named_options, only_files, "is for files, not for -i")
        return _live(request)
    if not request.inputs:
        raise CommandError("no input given", "rmqtool browse incident.pcap", ExitStatus.USAGE)
    live_only = ("filter", "keep")
    refuse_named(request.named_options, live_only, "is for live captures; add -i NAME")
    logs = [name for name in request.inputs if name != "-" and is_decoded_log(Path(name))]
    if logs:
        return _logs(request, logs)
    decode = Decode(request.inputs, _options(request))
    session = BrowseSession(_name_of(decode.sources))
    session.is_by_time = not request.follow and "-" not in request.inputs
    return session, decoding(decode), decode.stop, lambda: None


def _logs(request: BrowseRequest, logs: Sequence[str]) -> Opened:
    names = request.inputs
    if len(logs) < len(names):
        raise CommandError(
            "decoded logs and captures cannot be combined", "open one kind at a time"
        )
    refuse_capture_options(request.named_options, "follow", "plugins")
    since, until = _dated(request)
    inputs = inputs_of(logs, time_of(since, until))
    session = BrowseSession(_name_of(names), has_frames=False)
    session.is_by_time = True
    return session, reading_logs(inputs, RequestedTime(since, until)), None, lambda: None


def _dated(request: BrowseRequest) -> tuple[Moment | None, Moment | None]:
    """Return the requested time range; times of day are on the day of the first packet."""
    asked = (request.since, request.until)
    if all(moment is None or moment.has_date for moment in asked):
        return asked
    if request.interface is not None or "-" in request.inputs:
        raise usage_error("--since and --until", "need a date with a live capture")
    first = _first_time(request.inputs)
    since, until = (
        None if moment is None else Moment(moment.on_day_of(first), has_date=True)
        for moment in asked
    )
    return since, until


def _first_time(names: Sequence[str]) -> int:
    """Return the time of the first packet of captures or decoded logs, ns since the epoch."""
    paths = list(map(Path, names))
    if is_decoded_log(paths[0]):
        return stats_of(list(map(read_manifest, paths))).first_time
    decode = Decode(names, DecodeOptions())
    for _ in decode.records():
        if decode.stats.first_time:
            break
    return decode.stats.first_time


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
    since, until = (None if moment is None else moment.ns for moment in _dated(request))
    return DecodeOptions(
        since=since,
        until=until,
        decode_as=request.decode_as,
        tls_keylog=request.tls_keylog,
        max_ratio=request.max_ratio,
        follow=live or request.follow,
        conversations=True,
        messages=True,
    )


def _name_of(names: Sequence[str]) -> str:
    return Path(names[0]).name or names[0] if len(names) == 1 else counted(len(names), "capture")

"""What a user asked `decode` for, checked: texts of the command line become values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissectors.decode.secrets import key_log_named
from dissectors.tcp.decompression import MOST_TIMES
from dissectors.times import UTC_ZONE, Moment, Zone

from ..ui.common_options import Order, RowFormat
from ..ui.console import When
from ..ui.option_values import (
    ports_of,
    size_option,
    text_of_moment,
    time_option,
    usage_error,
    zone_option,
)
from ..ui.output import refuse_text_as_page
from .arguments import DecodeArguments
from .fail_on import Condition, condition_of

if TYPE_CHECKING:
    from dissectors.remoting.bodies.custom import NamedDecoder

UNANSWERED_AFTER: Final = 5_000_000_000
"""nanoseconds; clients wait for 3 s by default (sendMsgTimeout)"""


class View(StrEnum):
    """What a row is."""

    exchanges = "exchanges"
    commands = "commands"
    tree = "tree"
    summary = "summary"
    follow = "follow"
    messages = "messages"
    list_messages = "list-messages"


_SUFFIXES = {
    ".jsonl": RowFormat.jsonl,
    ".ndjson": RowFormat.jsonl,
    ".json": RowFormat.json,
    ".csv": RowFormat.csv,
    ".parquet": RowFormat.parquet,
}


@dataclass(frozen=True, slots=True)
class DecodeRequest:
    """A `decode` command, checked."""

    sources: Sequence[str]
    """captures, folders, or ``-``"""
    view: View = View.exchanges
    """what a row is"""
    format: RowFormat = RowFormat.table
    """how rows are written"""
    output: str = "-"
    """where to"""
    force: bool = False
    """files and folders that exist may be replaced"""
    where: str = ""
    """filter expression; empty: all"""
    since: Moment | None = None
    """earliest time"""
    until: Moment | None = None
    """time that is too late"""
    zone: Zone = UTC_ZONE
    """whose clocks show times without an offset in `where`"""
    limit: int | None = None
    """how many rows at most"""
    sort: Order | None = None
    """order of the rows; None: as they are complete"""
    body_limit: int | None = None
    """bytes of a body that are shown; None: as the view thinks best"""
    max_output: int | None = None
    """bytes that may be made of compressed bodies; None: as much as the budget has by default"""
    decode_as: frozenset[int] = frozenset()
    """ports whose conversations are RocketMQ"""
    tls_keylog: str = ""
    """key log that TLS is decrypted by; empty: none"""
    max_ratio: int = MOST_TIMES
    """bytes that each byte of a compressed capture may become"""
    plugins: tuple[NamedDecoder, ...] = ()
    """what decodes bodies of messages"""
    follow: bool = False
    """the capture is still being written"""
    jobs: int | None = 1
    """processes; None: as many as pay"""
    fail_on: tuple[Condition, ...] = ()
    """conditions on what was captured that end with a status of their own"""
    check: bool = False
    """findings of severity error make the status 3"""
    conversation: int | None = None
    """the conversation that is followed"""
    wants_message_rows: bool = True
    """a decoded log has the table of messages"""
    quiet: bool = False
    """no remarks on standard error"""
    watched: bool = False
    """say on standard error what goes wrong, as it happens"""
    unanswered_after: int = UNANSWERED_AFTER
    """nanoseconds that a request may wait until it is shown as unanswered, where rows are shown as
    they happen"""
    colour: When = When.auto
    """when to use colours"""

    @property
    def overdue_after(self) -> int:
        """Nanoseconds after which a request that waits is shown; 0: it is not, as nobody watches.

        A file has each exchange once, as it was in the end.
        """
        as_they_come = self.output == "-" and (self.follow or "-" in self.sources)
        as_lines = self.view is View.exchanges and self.format is not RowFormat.parquet
        return self.unanswered_after if as_they_come and as_lines and self.sort is None else 0

    @property
    def to_folder(self) -> bool:
        """Whether the output is a decoded log.

        It is for Parquet to what is not called a Parquet file, and for JSON lines to what is
        called or is a folder.
        """
        if self.output == "-" or self.view is not View.exchanges:
            return False
        if self.format is RowFormat.jsonl:
            return self.output.endswith(("/", os.sep)) or Path(self.output).is_dir()
        return self.format is RowFormat.parquet and Path(self.output).suffix != ".parquet"

    @property
    def processes(self) -> int | None:
        """How many processes decode; None: as many as pay.

        Where this one needs the rows themselves, for a summary or as lines for people, others are
        a gain only where asked for: to hand rows over takes as long as to decode them. So with
        messages that this one has to choose from; and where all become columns, which one process
        makes as soon as two, unless bodies are shown.
        """
        whole = not self.where.strip()
        shown = self.message_rows and self.body_limit
        in_columns = self.format is RowFormat.parquet and whole and not shown
        if self.view in (View.list_messages, View.commands):
            window = self.since or self.until
            looked_at = self.sort or self.limit is not None or self.fail_on or window
            pays = whole and self.format.is_json and not looked_at
            if self.view is View.commands:  # what may be made at most is of one process
                return self.jobs if pays and self.max_output is None else 1
            pays = pays and not self.body_limit
        else:
            written = self.view is View.exchanges and self.format is not RowFormat.table
            pays = written and not in_columns
        return self.jobs if self.jobs is not None or pays else 1

    @property
    def message_rows(self) -> bool:
        """Whether rows of messages are written beside those of exchanges."""
        return self.wants_message_rows and self.to_folder

    def restrictions(self) -> dict[str, object]:
        """Return what keeps rows out of the result, for the manifest."""
        texts = {
            "where": self.where or None,
            "since": text_of_moment(self.since),
            "until": text_of_moment(self.until),
            "limit": self.limit,
            "decode_as": sorted(self.decode_as) or None,
        }
        return {name: value for name, value in texts.items() if value is not None}


_SWITCHES = {
    View.commands: "--commands",
    View.tree: "--verbose",
    View.summary: "--summary",
    View.follow: "--follow-conversation",
    View.messages: "--messages",
    View.list_messages: "--list-messages",
}


def request_of(given: DecodeArguments) -> DecodeRequest:
    """Return what was asked for; raise CommandError where it makes no sense."""
    zone = zone_option(given.tz)
    view = view_of(
        given.commands,
        given.verbose,
        given.summary,
        given.follow_conversation,
        given.messages,
        given.list_messages,
    )
    return DecodeRequest(
        sources=given.captures,
        view=view,
        format=format_of(given.format, given.output, view),
        output=given.output,
        force=given.force,
        where=given.where,
        since=time_option("--since", given.since, zone),
        until=time_option("--until", given.until, zone),
        zone=zone,
        limit=given.limit,
        sort=sort_option(given, view),
        body_limit=body_limit_option(given.body_limit, given.plugin, view),
        max_output=size_option("--max-output", given.max_output),
        decode_as=ports_of(given.decode_as or []),
        tls_keylog=key_log_named(given.tls_keylog),
        max_ratio=given.max_ratio,
        follow=given.follow,
        jobs=1 if given.plugin else given.jobs,
        plugins=plugins_option(given.plugin),
        check=given.check,
        fail_on=conditions_of(given.fail_on or [], view),
        quiet=given.quiet,
        colour=given.colour,
        conversation=given.follow_conversation,
        wants_message_rows=not given.no_message_rows,
    )


def plugins_option(names: Sequence[str] | None) -> tuple[NamedDecoder, ...]:
    """Return the plug-ins that were named, loaded; raise PluginError."""
    if not names:
        return ()
    from ..api.plugins import decoders_of

    return tuple(decoders_of(names))


def body_limit_option(text: str | None, plugins: Sequence[str] | None, view: View) -> int | None:
    """Return the bytes of bodies that are shown; rows of messages have some where plug-ins are."""
    limit = size_option("--body-limit", text)
    if limit is not None or not plugins or view not in (View.list_messages, View.exchanges):
        return limit
    from dissectors.remoting.bodies.messages import PREVIEW_LIMIT

    return PREVIEW_LIMIT


def view_of(
    commands: bool,
    verbose: bool,
    summary: bool,
    follow: int | None = None,
    messages: bool = False,
    list_messages: bool = False,
) -> View:
    """Return the view that the switches ask for; more than one is an error."""
    chosen = [
        view
        for view, wanted in (
            (View.commands, commands),
            (View.tree, verbose),
            (View.summary, summary),
            (View.follow, follow is not None),
            (View.messages, messages),
            (View.list_messages, list_messages),
        )
        if wanted
    ]
    if len(chosen) > 1:
        named = ", ".join(_SWITCHES[view] for view in chosen)
        raise usage_error(named, "cannot be combined")
    return chosen[0] if chosen else View.exchanges


def sort_option(given: DecodeArguments, view: View) -> Order | None:
    """Return the order of the rows; raise CommandError where they cannot be sorted."""
    if given.sort is not None and view not in (View.exchanges, View.list_messages):
        raise usage_error("--sort", "works only with exchanges and --list-messages")
    if given.sort is not None and given.follow:
        raise usage_error("--sort and --follow", "cannot be combined: rows keep arriving")
    return given.sort


def format_of(wanted: RowFormat | None, output: str, view: View) -> RowFormat:
    """Return the format that was named, else the one that the output's name says."""
    refuse_text_as_page(output, "`rmqtool report -o X.html` makes one, `rmqtool trace` too")
    chosen = wanted or _SUFFIXES.get(Path(output).suffix.lower(), RowFormat.table)
    if view in (View.follow, View.messages) and wanted not in (None, RowFormat.table):
        raise usage_error(_SWITCHES[view], f"does not support --format {wanted}")
    if view is View.follow and chosen is not RowFormat.table:
        raise usage_error(_SWITCHES[view], f"is text; {output} has the name of another format")
    if view in (View.follow, View.messages):
        return RowFormat.table
    if view is View.tree and chosen is not RowFormat.table:
        raise usage_error("--verbose", "is text; for JSON use --commands -T json")
    if view is View.summary and chosen in (RowFormat.csv, RowFormat.parquet):
        raise usage_error("--summary", "supports only table and json")
    if view is View.commands and chosen in (RowFormat.csv, RowFormat.parquet):
        raise usage_error(f"--commands --format {chosen}", "commands are nested; use -T json")
    return chosen


def conditions_of(texts: Sequence[str], view: View) -> tuple[Condition, ...]:
    """Return the conditions of --fail-on; a view without exchanges has nothing to count."""
    if texts and view not in (View.exchanges, View.summary):
        raise usage_error("--fail-on", "works only with exchanges and --summary")
    return tuple(map(condition_of, texts))

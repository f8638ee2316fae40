"""The options of `decode`, their values, and derived settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissectors.decode.partition import Partition
from dissectors.times import Moment, Zone

from ..ui import common_options as options
from ..ui.common_options import Order, RowFormat, column_names
from ..ui.console import When
from ..ui.declared import declared, derived, named_options, option, text_option
from ..ui.option_values import refuse_named, size_option, text_of_moment, usage_error
from ..ui.output import refuse_text_as_page
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


NESTED: Final = frozenset(("ext_fields", "header", "header_parts", "body", "messages"))
"""columns of commands with JSON values, for which bodies are decoded"""
_OF_BODIES: Final = ("body_limit", "max_output", "plugins", "plugin")
"""options of bodies; `plugin` is that of live input"""
_SUFFIXES = {
    ".jsonl": RowFormat.jsonl,
    ".ndjson": RowFormat.jsonl,
    ".json": RowFormat.json,
    ".csv": RowFormat.csv,
    ".parquet": RowFormat.parquet,
}


_SWITCHES = {
    View.commands: "--commands",
    View.tree: "--verbose",
    View.summary: "--summary",
    View.follow: "--follow-conversation",
    View.messages: "--messages",
    View.list_messages: "--list-messages",
}


def view_of(
    commands: bool,
    verbose: bool,
    summary: bool,
    follow: int | None = None,
    messages: bool = False,
    list_messages: bool = False,
) -> View:
    """Return the selected view; raise CommandError for more than one."""
    wanted = (commands, verbose, summary, follow is not None, messages, list_messages)
    chosen = [view for view, is_wanted in zip(_SWITCHES, wanted, strict=True) if is_wanted]
    if len(chosen) > 1:
        named = ", ".join(_SWITCHES[view] for view in chosen)
        raise usage_error(named, "cannot be combined")
    return chosen[0] if chosen else View.exchanges


def sort_of(_option: str, wanted: Order | None, view: View, follow: bool) -> Order | None:
    """Return the order of the rows; raise CommandError if they cannot be sorted."""
    if wanted is not None and view not in (View.exchanges, View.list_messages):
        raise usage_error("--sort", "works only with exchanges and --list-messages")
    if wanted not in (None, Order.completion) and follow:
        raise usage_error("--sort and --follow", "cannot be combined: rows keep arriving")
    return wanted


def _columns(option: str, text: str | None, view: View) -> tuple[str, ...]:
    """Return the names of columns; raise CommandError for a view without columns."""
    if text is not None and view not in (View.exchanges, View.list_messages, View.commands):
        raise usage_error("--columns", "works only with exchanges, --list-messages and --commands")
    return column_names(option, text)


def format_of(
    _option: str,
    wanted: RowFormat | None,
    output: str,
    view: View,
    partition: Partition | None = None,
) -> RowFormat:
    """Return the requested format, or that of the output's suffix."""
    refuse_text_as_page(output, "use `rmqtool report -o X.html` or `rmqtool trace -o X.html`")
    if partition is not None:
        if wanted not in (None, RowFormat.parquet, RowFormat.jsonl):
            raise usage_error("--partition", f"supports parquet and jsonl, not {wanted}")
        return wanted or RowFormat.parquet
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


def _partition(
    option: str, wanted: Partition | None, output: str, view: View, force: bool
) -> Partition | None:
    """Return the partitioning; raise CommandError if the output is not a decoded log."""
    if wanted is None:
        return None
    if output == "-" or view is not View.exchanges:
        raise usage_error(option, "adds exchanges to a decoded log; use -o FOLDER")
    if force:
        raise usage_error("--force", f"replaces output, and {option} adds to it; remove the folder")
    return wanted


def _body_limit(option: str, text: str | None, plugins: Sequence[object], view: View) -> int | None:
    """Return the bytes of bodies that are shown; message rows have some with plug-ins."""
    limit = size_option(option, text)
    if limit is not None or not plugins or view not in (View.list_messages, View.exchanges):
        return limit
    from dissectors.remoting.bodies.messages import PREVIEW_LIMIT

    return PREVIEW_LIMIT


def _conditions(_option: str, texts: list[str] | None, view: View) -> tuple[Condition, ...]:
    """Return the conditions of --fail-on; raise CommandError for a view without exchanges."""
    if texts and view not in (View.exchanges, View.summary):
        raise usage_error("--fail-on", "works only with exchanges and --summary")
    return tuple(map(condition_of, texts or ()))


def columns_of_view(columns: Any) -> Any:
    """Return an option `--columns` that checks its names against the rows of the view."""
    return replace(columns, read=_columns, needs=("view",))


BODY_LIMIT = text_option(
    "Maximum body bytes (default: 1KiB in trees, 4MiB in command JSON, 0 in message rows).",
    "Output",
    metavar="SIZE",
    read=_body_limit,
    needs=("plugins", "view"),
)


@declared
class DecodeRequest:
    """A `decode` command: input, selection, and output."""

    sources: Sequence[str] = options.CAPTURES
    commands: bool = options.COMMANDS
    verbose: bool = options.VERBOSE
    summary: bool = options.SUMMARY
    follow_conversation: int | None = options.FOLLOW_CONVERSATION
    messages: bool = options.MESSAGES
    list_messages: bool = options.LIST_MESSAGES
    view: View = derived(
        view_of,
        *("commands", "verbose", "summary", "follow_conversation", "messages", "list_messages"),
        value=View.exchanges,
    )
    where: str = options.WHERE
    since: Moment | None = options.SINCE
    until: Moment | None = options.UNTIL
    zone: Zone = options.TIME_ZONE
    """zone of times without an offset, also in `where`"""
    limit: int | None = options.LIMIT
    sort: Order | None = option(
        "Sort by request time, slowest first, or as completed "
        "(default: time for table output from files, otherwise completion).",
        "Filters",
        read=sort_of,
        needs=("view", "follow"),
    )
    columns: tuple[str, ...] = columns_of_view(options.COLUMNS)
    format: RowFormat = option(
        "Output format; json is one array, jsonl one object per line "
        "(default: from the -o extension, otherwise table).",
        "Output",
        value=RowFormat.table,
        typed=RowFormat | None,
        read=format_of,
        needs=("output", "view", "partition"),
    )
    output: str = option(
        "Output file. With -T parquet, a FOLDER becomes a decoded log.",
        "Output",
        "-",
        metavar="FILE|FOLDER|-",
    )
    force: bool = options.FORCE
    partition: Partition | None = option(
        "Add to the decoded log in -o, by date or hour (UTC).",
        "Output",
        read=_partition,
        needs=("output", "view", "force"),
    )
    body_limit: int | None = BODY_LIMIT
    """None: default of the view"""
    max_output: int | None = options.MAX_OUTPUT
    colour: When = options.COLOR
    pager: bool = options.PAGER
    quiet: bool = options.QUIET
    check: bool = option(
        "Exit 3 if the capture is damaged. For traffic problems, use --fail-on.", "Output", False
    )
    fail_on: tuple[Condition, ...] = option(
        "Exit 4 if selected rows match: failed, unanswered, 'failed>1%', "
        "'unanswered>=5'; repeatable.",
        "Output",
        metavar="CONDITION",
        value=(),
        typed=list[str] | None,
        read=_conditions,
        needs=("view",),
    )
    decode_as: frozenset[int] = options.DECODE_AS
    tls_keylog: str = options.TLS_KEYLOG
    max_ratio: int = options.MAX_RATIO
    plugins: tuple[NamedDecoder, ...] = options.PLUGINS
    no_message_rows: bool = options.NO_MESSAGE_ROWS
    follow: bool = options.FOLLOW
    jobs: int | None = options.JOBS
    watched: bool = False
    """report problems on standard error as they happen"""
    unanswered_after: int = UNANSWERED_AFTER
    """nanoseconds that a request may wait until it is shown as unanswered, where rows are shown as
    they happen"""
    named_options: Mapping[str, str] = named_options()

    def refuse_unused(self) -> None:
        """Raise CommandError for an option that has no effect on the requested rows."""
        named, view = self.named_options, self.view
        has_nested = not NESTED.isdisjoint(self.columns)
        of_commands = (self.format.is_json and not self.columns) or has_nested
        bodies = {
            View.tree: _OF_BODIES,
            View.commands: _OF_BODIES if of_commands else (),
            View.list_messages: ("body_limit", "plugins", "plugin"),
            View.exchanges: ("body_limit", "plugins", "plugin") if self.message_rows else (),
            View.follow: ("body_limit",),
            View.messages: ("max_output",),
        }.get(view, ())
        unused = (name for name in _OF_BODIES if name not in bodies)
        refuse_named(named, unused, "has no effect on these rows, which show no such bodies")
        if not self.to_folder:
            refuse_named(named, ("no_message_rows",), "is for a decoded log; use -o FOLDER")

    @property
    def overdue_after(self) -> int:
        """Nanoseconds after which a request that waits is shown; 0: it is not, as nobody watches.

        A file has each exchange once, as it was in the end.
        """
        as_they_come = self.output == "-" and (self.follow or "-" in self.sources)
        as_lines = self.view is View.exchanges and self.format is not RowFormat.parquet
        in_order = self.sort in (Order.time, Order.latency)
        return self.unanswered_after if as_they_come and as_lines and not in_order else 0

    @property
    def sorts_shown_rows(self) -> bool:
        """Whether the rows of a table in files are sorted by time at the end.

        With --sort, all rows are sorted, and --limit selects the first ones.
        """
        in_table = self.view in (View.exchanges, View.list_messages)
        in_table = in_table and self.format is RowFormat.table
        return in_table and self.sort is None and not self.follow and "-" not in self.sources

    @property
    def to_folder(self) -> bool:
        """Whether the output is a decoded log.

        True for Parquet to a name without the Parquet suffix, and for JSON lines to a folder.
        """
        if self.output == "-" or self.view is not View.exchanges:
            return False
        if self.partition is not None:
            return True
        if self.format is RowFormat.jsonl:
            return self.output.endswith(("/", os.sep)) or Path(self.output).is_dir()
        return self.format is RowFormat.parquet and Path(self.output).suffix.lower() != ".parquet"

    @property
    def processes(self) -> int | None:
        """Number of decoder processes; None: choose automatically."""
        window = [moment for moment in (self.since, self.until) if moment is not None]
        of_day = any(not moment.has_date for moment in window)
        chooses = self.sort or self.limit is not None or self.fail_on or of_day or self.columns
        whole = not self.where.strip()
        # More processes do not help if this one needs the rows, because transferring them takes as
        # long as decoding; nor for columns without bodies, which one process writes as fast as two.
        if self.plugins or chooses:
            pays = False
        elif self.view is View.exchanges:
            in_columns = self.format is RowFormat.parquet and whole
            shown = self.message_rows and self.body_limit
            pays = self.format is not RowFormat.table and bool(shown or not in_columns)
        else:  # the decompression limit of commands is per process
            of_one = self.max_output is not None if self.view is View.commands else self.body_limit
            is_shared = self.view in (View.list_messages, View.commands)
            pays = is_shared and whole and self.format.is_json and not window and not of_one
        return self.jobs if pays else 1

    @property
    def message_rows(self) -> bool:
        """Whether message rows are written next to exchanges."""
        return not self.no_message_rows and self.to_folder

    def restrictions(self) -> dict[str, object]:
        """Return the restrictions on rows, for the manifest."""
        texts = {
            "where": self.where or None,
            "since": text_of_moment(self.since),
            "until": text_of_moment(self.until),
            "limit": self.limit,
            "decode_as": sorted(self.decode_as) or None,
        }
        return {name: value for name, value in texts.items() if value is not None}

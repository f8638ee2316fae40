"""Actions on selected rows: files, command lines, saved views."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from dissectors.quantities import counted
from dissectors.tcp.source import STDIN, CaptureError

from ...api.tables.named import CONNECTIONS, MESSAGES
from ...ui.console import UNLIMITED, Style, one_line, styled, wrapped
from ...ui.figures import count
from ..model.columns import heads_of
from ..model.export import MOST_NUMBERS, command_of, where_of, wireshark_of, write_rows
from ..model.packets import write_packets
from ..model.settings import SavedView, write_settings
from .dialogs import TextDialog
from .judging import Judging

_MOST_LINES: Final = 500


class Acting(Judging):
    """A browser that can export rows."""

    # -- files and words --------------------------------------------------------------------------

    def chosen_numbers(self) -> list[int]:
        """Return the marked rows, or all listed rows if none is marked."""
        table = self.table
        if table is None:
            return []
        return sorted(table.marks) or list(table.listing.numbers())

    def chosen_where(self) -> str | None:
        """Return an expression for the marked or else the listed rows, or None without rows."""
        table = self.table
        if table is None:
            return None
        if len(table.marks) > MOST_NUMBERS:
            self.say(f"too many marked rows for an expression (maximum: {count(MOST_NUMBERS)})")
            return None
        rows = [row for number in sorted(table.marks) if (row := table.row(number)) is not None]
        return where_of(rows, table.table) if rows else table.filter

    def action_export(self) -> None:
        """Ask for the output file of rows or packets."""
        if self.table is None:
            return
        self.ask("export", "file: NAME.pcapng (packets), or .json, .jsonl, .parquet (rows)", "")

    def action_save(self) -> None:
        """Ask for the name of the view to save."""
        if self.table is not None:
            self.ask("save", "name of this view", "")

    def action_load(self) -> None:
        """Ask for the name of a saved view."""
        names = sorted(self.settings.views)
        if not names:
            self.say("no saved views; press V to save this one")
            return
        self.ask("load", "view", "", names)

    def action_columns(self) -> None:
        """Ask for the columns."""
        table = self.table
        if table is not None:
            shown = table.columns or [column.title for column in table.line_columns()]
            self.ask(
                "columns",
                "columns (empty: the default columns)",
                " ".join(shown),
                heads_of(table.table),
            )

    def purposes(self) -> dict[str, Callable[[str], None]]:
        """Return the handler of typed text, by its purpose."""
        return super().purposes() | {
            "export": self._export,
            "save": self._save,
            "load": self._load,
            "columns": self._choose_columns,
        }

    def _export(self, name: str) -> None:
        table, session = self.table, self.session
        path = Path(name).expanduser()
        if table is None:
            return
        if path.suffix not in (".pcapng", ".json", ".jsonl", ".parquet"):
            self.say("the file name must end in .pcapng, .json, .jsonl, or .parquet")
            return
        if path.exists():
            self.say(f"{one_line(name)} already exists")
            return
        numbers, packets = self.chosen_numbers(), path.suffix == ".pcapng"
        if packets and (session.frames is None or session.is_live or STDIN in session.captures):
            self.say("packets can be saved only from capture files")
            return
        if packets and self.view == CONNECTIONS:
            self.say("packets can be saved only from exchanges or messages")
            return

        def make() -> None:
            try:
                if not packets:
                    done = counted(write_rows(table.store, numbers, table.table, path), "row")
                else:
                    done = counted(self._write_packets(numbers, path), "packet")
                self.from_thread(self.say, f"{done} → {one_line(name)}")
            except (OSError, ValueError, ImportError, CaptureError) as error:
                self.from_thread(self.say, one_line(f"not written: {error}"))

        self.say("writing …")
        self.run_worker(make, thread=True)

    def _write_packets(self, numbers: list[int], path: Path) -> int:
        session = self.session
        assert session.frames is not None
        if self.view == MESSAGES:
            exchanges = {session.exchange_of_message(number) for number in numbers}
            numbers = sorted(number for number in exchanges if number is not None)
        frames = session.frames
        chosen = [kept for number in numbers if (kept := frames.exchange(number)) is not None]
        return write_packets(session.captures, chosen, path, session.max_ratio)

    def action_copy(self) -> None:
        """Show and copy the rows as a command line, and as a display filter."""
        table, session, where = self.table, self.session, self.chosen_where()
        if table is None or where is None:
            return
        numbers = self.chosen_numbers()
        first = numbers[:MOST_NUMBERS]
        rows = [row for number in first if (row := table.row(number)) is not None]
        read = session.options_of_reading()
        if session.tls_keylog:
            read += ["--tls-keylog", session.tls_keylog]
        command = command_of(session.captures, read, table.table, where)
        self.copy_to_clipboard(command)
        room = max(20, min(self.size.width * 9 // 10, 110) - 6)
        of = f" for the first {count(len(rows))} rows" if len(numbers) > len(first) else ""
        lines = [
            styled("Command (copied):", Style.BOLD),
            *wrapped(one_line(command, UNLIMITED), room, _MOST_LINES),
            "",
            styled(f"Wireshark display filter{of}:", Style.BOLD),
            *(line for text in wireshark_of(rows) for line in wrapped(text, room, _MOST_LINES)),
        ]
        self.push_screen(TextDialog("Command and display filter", lines))

    def _save(self, name: str) -> None:
        table = self.table
        if table is not None:
            view = SavedView(table.table, table.filter, table.columns, table.sort, table.descending)
            self.settings.views[name] = view
            self._remember(f"saved as {one_line(name)}")

    def _load(self, name: str) -> None:
        saved = self.settings.views.get(name.strip())
        if saved is None or saved.table not in self.tables:
            self.say("no saved view has this name")
            return
        table = self.tables[saved.table]
        table.columns, table.sort = list(saved.columns), saved.sort
        table.descending = saved.descending
        self.show_view(saved.table)
        self.filter_by(saved.filter)

    def _choose_columns(self, text: str) -> None:
        table = self.table
        if table is None:
            return
        heads = heads_of(table.table)
        wrong = [word for word in text.split() if word not in heads]
        if wrong:
            self.say(f"unknown column: {one_line(wrong[0])}")
            return
        table.columns = text.split()
        self.settings.columns[table.table] = table.columns
        self.refresh_list()
        self._remember("columns chosen")

    def _remember(self, done: str) -> None:
        try:
            write_settings(self.settings_path, self.settings)
            self.say(done)
        except OSError as error:
            self.say(one_line(f"{done}, but only for this session: {error.strerror or error}"))

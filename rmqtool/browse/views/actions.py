"""Actions on selected rows: files, command lines, saved views, replays.

Rules: messages are sent by `rmqtool replay` in a separate process, with its own guards and
questions. Nothing is sent before its plan was shown and a target was typed; a target that is not
loopback needs a typed yes. A run ends in order when it is stopped or the browser ends.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Timer
from time import monotonic
from typing import Any, Final

from dissectors.endpoint import host_of
from dissectors.printable import printable
from dissectors.processes.children import start_module
from dissectors.quantities import counted
from dissectors.remoting.code_sets import SENDS
from dissectors.tcp.source import STDIN, CaptureError
from replay.config import addresses_of
from replay.errors import ClientError
from replay.safety import Agreement

from ...api.tables.named import CONNECTIONS, EXCHANGES, MESSAGES
from ...ui.console import UNLIMITED, Style, one_line, styled, wrapped
from ...ui.figures import count
from ...ui.status import ExitStatus
from ..model.columns import heads_of
from ..model.export import (
    MOST_NUMBERS,
    command_of,
    replay_of,
    where_of,
    wireshark_of,
    write_packets,
    write_rows,
)
from ..model.settings import SavedView, write_settings
from .browser import Browser
from .dialogs import TextDialog

_MOST_LINES: Final = 500


_YES: Final = "yes"
SANDBOX: Final = "sandbox"
_PATIENCE: Final = 10.0
"""seconds for an orderly end of a run"""


class FullBrowser(Browser):
    """The whole program."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._words: list[str] = []
        """arguments of the dry run, then of the replay"""
        self._sending: subprocess.Popen[bytes] | None = None
        self._next_signal = 0.0
        """time of the next signal to a run that is ending; 0: not signalled"""

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
        rows = [
            row for number in sorted(table.marks) if (row := table.listing.row(number)) is not None
        ]
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
            "target": self._to_target,
            "consent": self._agreed,
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
        rows = [row for number in first if (row := table.listing.row(number)) is not None]
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

    # -- replay -----------------------------------------------------------------------------------

    def action_replay(self) -> None:
        """Show the replay plan of the listed sends; stop a running replay."""
        if self._sending is not None:
            self._end_in_order(self._sending)
            self.say("stopping …")
            return
        session = self.session
        has_sends = self.view in (EXCHANGES, MESSAGES)
        if not has_sends or session.is_live or session.frames is None:
            self.say("only exchanges and messages from capture files can be replayed")
            return
        if STDIN in session.captures:
            self.say("standard input cannot be read again")
            return
        where = self.chosen_where() if self.view == EXCHANGES else self._where_of_sends()
        if where is None:
            return
        read = session.options_of_reading()
        self._words = replay_of(session.captures, read, where)
        self.say("planning …")
        self._run([*self._words, "--dry-run"], self._show_plan)

    def _where_of_sends(self) -> str | None:
        """Return an expression for the sends of the selected messages, or None with a note."""
        numbers, session = self.chosen_numbers(), self.session
        if len(numbers) > MOST_NUMBERS:
            self.say(f"too many messages (maximum: {count(MOST_NUMBERS)}); mark some")
            return None
        exchanges = dict.fromkeys(map(session.exchange_of_message, numbers))
        rows = [session.exchanges.row(number) for number in exchanges if number is not None]
        sends = [row for row in rows if row is not None and row.request_code in SENDS]
        if not sends:
            self.say("these rows are not sends; press a to list a message's attempts")
            return None
        return where_of(sends, EXCHANGES)

    def _show_plan(self, status: int, lines: list[str]) -> None:
        if status != ExitStatus.OK and self._next_signal:
            self.say("nothing was sent")
            return
        self.say("")
        if status != ExitStatus.OK:
            self.push_screen(TextDialog("Replay is not possible", lines))
            return
        dialog = TextDialog("Replay plan: nothing was sent yet", lines, "choose a target")
        self.push_screen(dialog, self._ask_target)

    def _ask_target(self, accepted: str | None) -> None:
        if accepted is not None:
            self.ask("target", f"target: HOST:PORT[;...] or {SANDBOX}, then replay options", "")

    def _to_target(self, text: str) -> None:
        """Handle the typed target and options."""
        try:
            target, *options = shlex.split(text)
            if target.startswith("-"):
                raise ValueError("enter the target first, then options")
            remote = [] if target == SANDBOX else _not_loopback(target)
        except (ValueError, ClientError) as error:
            reason = error.reason if isinstance(error, ClientError) else str(error)
            self.say(one_line(f"nothing was sent: {reason}"))
            return
        named = ["--target", target] if target == SANDBOX else ["--namesrv", target]
        self._words = [*self._words, *named, *options]
        # Also with `--allow`, which may name other hosts only.
        if remote and not {"--yes", "-y"} & set(options):
            self._words += [word for host in remote for word in ("--allow", host)]
            shown = ", ".join(map(one_line, remote))
            self.ask("consent", f"{shown} is not loopback; send there? Type {_YES}", "")
        else:
            self._send()

    def _agreed(self, text: str) -> None:
        if text.strip().lower() == _YES:
            self._send()
        else:
            self.say("nothing was sent")

    def _send(self) -> None:
        self.say("sending …; press R to stop")
        self._run(self._words, self._show_result)

    def _show_result(self, status: int, lines: list[str]) -> None:
        self.say("")
        if status == ExitStatus.OK:
            title = "Replay result"
        elif self._next_signal or status == ExitStatus.INTERRUPTED:
            title = "Replay stopped early"
        else:
            title = "Replay failed" if status > 0 else "Replay was killed"
        self.push_screen(TextDialog(title, lines))

    def _run(self, words: Sequence[str], then: Callable[[int, list[str]], None]) -> None:
        """Run an rmqtool command; show its output and status."""
        process = start_module(
            *words,
            stdin=subprocess.DEVNULL,  # its questions would be asked behind the screen
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._sending = process
        self._next_signal = 0.0

        def wait() -> None:
            printed = process.communicate()[0].decode("utf-8", "replace")
            lines = [shlex.join(words), "", *printed.splitlines()]
            self.from_thread(ended, [printable(line) for line in lines])

        def ended(lines: list[str]) -> None:
            self._sending = None
            then(process.returncode, lines)

        self.run_worker(wait, thread=True)

    def _end_in_order(self, process: subprocess.Popen[bytes]) -> None:
        """Signal a run to end; repeat the signal only after a grace period."""
        now = monotonic()
        if now >= self._next_signal:  # a second signal would end it without a result
            self._next_signal = now + _PATIENCE
            process.send_signal(signal.SIGINT)

    def exit(self, *given: Any, **named: Any) -> None:
        """End a running replay and the program: Textual waits for the thread of the run."""
        process = self._sending
        if process is not None:
            self._end_in_order(process)
            last = Timer(_PATIENCE, process.kill)
            last.daemon = True
            last.start()
        super().exit(*given, **named)

    def close(self) -> None:
        """End a running replay, stop all threads, and close the session."""
        process = self._sending
        if process is not None:
            self._end_in_order(process)
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        super().close()


def _not_loopback(target: str) -> list[str]:
    """Return the non-loopback hosts of a target; raise ClientError for an invalid target."""
    agreement = Agreement()
    remote = (host_of(address) for address in addresses_of(target) if not agreement.covers(address))
    return list(dict.fromkeys(remote))

"""Replay of listed sends: first the plan, then a typed target, then the result.

Rules: messages are sent by `rmqtool replay` in a separate process, with its own guards and
questions. Nothing is sent before its plan was shown and a target was typed; a target that is not
loopback needs a typed yes. A run ends in order when it is stopped or the browser ends.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Callable, Sequence
from threading import Timer
from time import monotonic
from typing import Any, Final

from dissectors.endpoint import host_of
from dissectors.printable import printable
from dissectors.processes.modules import start_module
from dissectors.remoting.code_sets import SENDS
from dissectors.tcp.source import STDIN
from replay.config import addresses_of
from replay.errors import ClientError
from replay.safety import Agreement

from ...api.tables.named import EXCHANGES, MESSAGES
from ...ui.console import one_line
from ...ui.figures import count
from ...ui.status import ExitStatus
from ..model.export import MOST_NUMBERS, replay_of, where_of
from .actions import Acting
from .dialogs import TextDialog

SANDBOX: Final = "sandbox"
_YES: Final = "yes"
_PATIENCE: Final = 10.0
"""seconds for an orderly end of a run"""


class FullBrowser(Acting):
    """The whole program."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._words: list[str] = []
        """arguments of the dry run, then of the replay"""
        self._sending: subprocess.Popen[bytes] | None = None
        self._next_signal = 0.0
        """time of the next signal to a run that is ending; 0: not signalled"""

    def purposes(self) -> dict[str, Callable[[str], None]]:
        """Return the handler of typed text, by its purpose."""
        return super().purposes() | {"target": self._to_target, "consent": self._agreed}

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
        if remote and "--yes" not in options and "--allow" not in options:
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

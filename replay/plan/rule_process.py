"""Rules of a rewrite applied by a process of their own, so that no pattern can hold a replay.

A backtracking pattern may need hours for a text that was made for it, and lets nothing else of its
process run meanwhile: not even Ctrl-C. Rules may be somebody else's (a journal's), and texts always
are. The kernel ends this process where one message takes more than `MAX_SECONDS` of CPU, however
busy the machine is.

`python -m replay.plan.rule_process` is such a process; it is started by `RuleProcess`, gets the
files with rules and then messages on standard input, and ends with it.
"""

from __future__ import annotations

import marshal
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Final

from ..message import Message
from .rewrite import RewriteError, Rewritten, apply_rules, rules_of

MAX_SECONDS: Final = 5.0
"""CPU time that the rules may take for one message; the usual is some microseconds"""


class RuleProcess:
    """The rules of files, applied to one message after the other."""

    def __init__(self, files: Mapping[str, bytes], seconds: float = MAX_SECONDS) -> None:
        """`files`: name → content, in order; the process is started with the first message."""
        self._files = dict(files)
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def apply(self, message: Message, group: str) -> Rewritten | None:
        """Return the message and its group after the rules; None where it is left out.

        RewriteError where that takes too long.
        """
        if self._process is None:
            self._process = _start()
            weakref.finalize(self, _end, self._process)
            self._write((self._seconds, list(self._files.items())))
        self._write(_plain(message, group))
        answer = self._read()
        if answer is None:
            status = self._process.wait()
            raise RewriteError(self._problem(message, status))
        found = marshal.loads(answer)
        return None if found is None else _rewritten(found)

    def _problem(self, message: Message, status: int) -> str:
        names, subject = ", ".join(self._files), message.unique_key or message.topic
        if status == -signal.SIGVTALRM:
            return (
                f"{names}: the rules took more than {self._seconds:g} s of CPU for message "
                f"{subject}; one of the patterns tries too many ways (a repetition of a "
                "repetition, or several in a row that can match the same)"
            )
        return f"{names}: the process of the rules ended at message {subject}, status {status}"

    def _write(self, value: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            _send(self._process.stdin, value)
        except BrokenPipeError:
            return  # the answer is missing, too, and says why

    def _read(self) -> bytes | None:
        assert self._process is not None
        assert self._process.stdout is not None
        return _receive(self._process.stdout)


def _start() -> subprocess.Popen[bytes]:
    root = str(Path(__file__).resolve().parents[2])
    path = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        # -P: no module comes from the folder that somebody works in
        [sys.executable, "-P", "-m", "replay.plan.rule_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if os.environ.get("RMQTOOL_DEBUG") else subprocess.DEVNULL,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path)),
        start_new_session=True,  # Ctrl-C is answered by the one that started us
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue  # it was killed with a message on its way


def _plain(message: Message, group: str) -> tuple[object, ...]:
    return (
        message.topic,
        message.body,
        message.tags,
        message.keys,
        message.properties,
        message.flag,
        message.wait_store_ok,
        group,
    )


def _rewritten(values: tuple[object, ...]) -> Rewritten:
    *fields, group = values
    return Rewritten(Message(*fields), str(group))  # type: ignore[arg-type]


def _send(out: IO[bytes], value: object) -> None:
    data = marshal.dumps(value)  # type: ignore[arg-type]
    out.write(len(data).to_bytes(4, "big") + data)
    out.flush()


def _receive(source: IO[bytes]) -> bytes | None:
    head = source.read(4)
    size = int.from_bytes(head, "big")
    data = source.read(size) if len(head) == 4 else b""
    return data if len(head) == 4 and len(data) == size else None


def serve(source: IO[bytes], out: IO[bytes], alarm: Callable[[float], object]) -> None:
    """Read rules, then messages, and write what becomes of each, until the input ends.

    `alarm` sets after how many seconds of CPU the process ends; 0: never.
    """
    first = _receive(source)
    if first is None:
        return
    seconds, files = marshal.loads(first)
    rules = [rule for name, data in files for rule in rules_of(data, name)]
    while (data := _receive(source)) is not None:
        message, group = _rewritten(marshal.loads(data))
        alarm(seconds)
        found = apply_rules(rules, message, group)
        alarm(0)
        _send(out, None if found is None else _plain(*found))


def main() -> None:
    """Entry of the process; a signal that nobody takes ends it, whatever Python is busy with."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    serve(
        sys.stdin.buffer,
        sys.stdout.buffer,
        lambda seconds: signal.setitimer(signal.ITIMER_VIRTUAL, seconds),
    )


if __name__ == "__main__":
    main()

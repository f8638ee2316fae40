"""Other runs of rmqtool that read the proxy's recording: a decoded log, a replay elsewhere.

Rules: each is a separate process, so traffic never waits for it; packets that it cannot read in
time are dropped and counted. Ctrl-C ends the proxy; its readers then finish their input.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import IO, Final

from dissectors.processes.modules import start_module
from replay.proxy.recording import Tap

from .options import ProxyRequest

_END_SECONDS: Final = 60.0
"""seconds for a reader to finish"""


class RecordingReader:
    """A reader process."""

    def __init__(self, name: str, arguments: Sequence[str], out: IO[str] | None = None) -> None:
        """`name`: name in messages; its output goes to `out`, or is discarded."""
        self.name = name
        """name in messages"""
        self._process = start_module(
            "rmqtool",
            *arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL if out is None else out,
            start_new_session=True,  # terminal signals go to the proxy
        )

    def tap(self) -> Tap:
        """Return the function that writes packets to it."""
        assert self._process.stdin is not None
        # The tap closes its own descriptor; another one would keep the pipe open.
        with self._process.stdin as pipe:
            return Tap(self.name, os.dup(pipe.fileno()))

    def finish(self) -> int:
        """Wait for the process and return its exit status."""
        try:
            return self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def readers_of(request: ProxyRequest, out: IO[str]) -> list[RecordingReader]:
    """Start the requested readers; the mirror reports to `out`."""
    started: list[RecordingReader] = []
    log, mirror = request.output, request.mirror
    if log is not None:
        decode = ["decode", "pcap", "-", "-o", log, "--quiet"]
        decode += ["--force"] if request.force else []
        started.append(RecordingReader(log, decode))
    if mirror is not None:
        replay = ["replay", "-", "--live", "-n", mirror, "--quiet"]
        replay += ["--yes"] if request.yes else []
        for network in request.allow or ():
            replay += ["--allow", network]
        replay += ["-Y", request.mirror_where] if request.mirror_where else []
        replay += ["-o", request.mirror_output] if request.mirror_output else []
        started.append(RecordingReader(f"mirror to {mirror}", replay, out))
    return started

"""A live capture: opened, read without the rights that this takes, its packets kept in a file.

Rules: what the kernel had to drop is reported when it begins and in the end, also with `--quiet`,
because then exchanges are missing that were there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from dissectors.live.interface import LiveCapture, LiveSource
from dissectors.live.packet_ring import RingPacket
from dissectors.live.privileges import Account, account_of, give_up, is_root
from dissectors.tcp.pcapng_writer import PcapngWriter

from ..api.opened import open_interface
from ..ui.errors import say_remark
from ..ui.figures import count, counted, size
from ..ui.option_values import usage_error
from ..ui.output import Output, naming
from .options import LiveRequest

LOOK = 2.0
"""Seconds between two looks at what was dropped."""


def opened_capture(live: LiveRequest, quiet: bool) -> LiveCapture:
    """Return the open capture; from here on the process has no right that its user lacks."""
    account = account_of(live.user, os.environ)
    capture = open_interface(
        live.interface,
        live.filter,
        promiscuous=live.promiscuous,
        buffer_bytes=live.buffer,
    )
    was_root = is_root()
    try:
        give_up(account)
    except BaseException:
        capture.close()
        raise
    if was_root and not quiet:
        say_remark(said_of(live.interface, account))
    return capture


def said_of(interface: str, account: Account | None) -> str:
    """Return what is said where root opened the interface."""
    if account is not None and account.uid:
        return f"root opened {interface}; from here on it runs as {account.name}"
    return (
        f"root opened {interface}, then gave up its capabilities; files are root's "
        "(--user NAME: another user; without root: rmqtool help live)"
    )


class Keeping:
    """Reads an open capture; closes it, and completes the file of `-w`, where the block ends."""

    def __init__(self, live: LiveRequest, capture: LiveCapture, force: bool = False) -> None:
        """Read `capture`; `force`: the file that packets are kept in is replaced if it exists."""
        self._capture = capture
        self._losses = _Losses(capture)
        self._kept = None
        if live.keep is not None:
            self._kept = _KeptPackets(live, capture.linktype, force)
        self.source = LiveSource(capture, duration=live.duration, keep=self._keep)
        """what `Decode` reads"""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._kept is not None and kind is None:
                self._kept.write(())  # a capture without packets is one, as tcpdump's
        finally:
            self._capture.close()
            if self._kept is not None:
                self._kept.finish(self._capture)

    def say_end(self, quiet: bool) -> None:
        """Say on standard error why the capture ended by itself, what was kept, what was lost."""
        if self.source.problem is not None:
            say_remark(f"{self.source.name}: {self.source.problem}; it ends here")
        if self._kept is not None and not quiet:
            packets = counted(self._kept.packets, "packet")
            say_remark(f"{packets} → {self._kept.name} ({size(self._kept.size)})")
        self._losses.say_dropped()

    def _keep(self, packets: Sequence[RingPacket]) -> None:
        self._losses.look()
        if self._kept is not None:
            self._kept.write(packets)


def refuse_same_file(keep: str | None, output: str, what: str) -> None:
    """Raise CommandError where the output would go into the file of packets."""
    if keep is not None and os.path.realpath(keep) == os.path.realpath(output):
        raise usage_error("-o and -w", f"{keep} cannot hold both {what} and packets")


class _Losses:
    """Looks now and then whether packets were lost."""

    def __init__(self, capture: LiveCapture, now: Callable[[], float] = time.monotonic) -> None:
        self._capture = capture
        self._now = now
        self._next = now() + LOOK
        self._said = False

    def look(self) -> None:
        """Say once while it runs that packets were lost."""
        now = self._now()
        if now < self._next:
            return
        self._next = now + LOOK
        self._capture.count()
        if self._capture.dropped and not self._said:
            self._said = True
            self.say_dropped(" so far")

    def say_dropped(self, since: str = "") -> None:
        """Say how many packets were lost, if any; also where no remarks are wanted."""
        dropped, received = self._capture.dropped, self._capture.received
        if not dropped:
            return
        say_remark(
            f"{count(dropped)} of {counted(received, 'packet')} dropped{since}: "
            "exchanges are missing; capture less (-f), show less, or use a larger --buffer"
        )


class _KeptPackets:
    """The file that packets are written to; it is opened when reading begins."""

    def __init__(self, live: LiveRequest, linktype: int, force: bool) -> None:
        assert live.keep is not None
        self.name = live.keep
        self.packets = 0
        """packets written"""
        self.size = 0
        """bytes of the file, once it is finished"""
        self._secrets_read = 0
        self._secrets_begun = False
        self._live = live
        self._linktype = linktype
        self._force = force
        self._output: Output | None = None
        self._writer: PcapngWriter | None = None

    def write(self, packets: Sequence[RingPacket]) -> None:
        """Write packets; none: whoever reads the file meanwhile can see all so far."""
        output, writer = self._opened()
        with naming(self.name):
            self._write_secrets(writer)
            for ts, data, length in packets:
                writer.write(ts, data, length)
            if not packets:
                output.flush()
        self.packets = writer.packets

    def _write_secrets(self, writer: PcapngWriter) -> None:
        """Write what was added to the key log; at first also nothing: readers wait for more."""
        if not self._live.secrets:
            return
        text = b""
        with suppress(OSError), open(self._live.secrets, "rb") as file:
            file.seek(self._secrets_read)
            text = file.read()
        text = text[: text.rfind(b"\n") + 1]
        if text or not self._secrets_begun:
            writer.write_secrets(text)
        self._secrets_begun = True
        self._secrets_read += len(text)

    def finish(self, capture: LiveCapture) -> None:
        """Write how many packets there were and were lost."""
        if self._output is None or self._writer is None:
            return
        with naming(self.name):
            self._write_secrets(self._writer)
            ts = self._writer.last_ts or time.time_ns()
            self._writer.write_statistics(ts, capture.received, capture.dropped)
        self._output.finish()
        assert self._output.path is not None
        self.size = self._output.path.stat().st_size

    def _opened(self) -> tuple[Output, PcapngWriter]:
        if self._output is None or self._writer is None:
            self._output = Output(self.name, direct=True, private=True, force=self._force)
            with naming(self.name):
                self._writer = PcapngWriter(
                    self._output.stream,
                    self._linktype,
                    interface=self._live.interface,
                    filter_text=self._live.filter,
                )
        return self._output, self._writer

"""A live capture: opened, read without capture privileges, its packets written to a file.

Rules: dropped packets are reported at the first drop and at the end, even with `--quiet`, because
exchanges are then missing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from dissectors.live.interface import LiveCapture, LiveSource
from dissectors.live.packet_ring import RingPacket
from dissectors.live.privileges import Account, account_of, give_up, is_root
from dissectors.quantities import counted
from dissectors.tcp.pcapng_writer import PcapngWriter

from ..api.opened import open_interface
from ..ui.errors import print_note
from ..ui.figures import count, size
from ..ui.output import Output, naming
from .options import LiveRequest

LOOK = 2.0
"""Seconds between checks for dropped packets."""


def opened_capture(live: LiveRequest, quiet: bool, keep_rights: bool = False) -> LiveCapture:
    """Return the open capture after dropping privileges.

    `keep_rights`: it keeps them, because further captures are opened.
    """
    account = account_of(live.user, os.environ)  # refuses an unknown user before anything is open
    capture = open_interface(
        live.interface,
        live.filter,
        promiscuous=live.promiscuous,
        buffer_bytes=live.buffer,
    )
    if keep_rights:
        return capture
    was_root = is_root()
    try:
        give_up(account)
    except BaseException:
        capture.close()
        raise
    if was_root and not quiet:
        print_note(said_of(live.interface, account))
    return capture


def said_of(interface: str, account: Account | None) -> str:
    """Return the note for an interface opened by root."""
    if account is not None and account.uid:
        return f"opened {interface} as root; now running as {account.name}"
    return (
        f"opened {interface} as root, then dropped capabilities; output files belong to root "
        "(--user NAME: another user; without root: rmqtool help live)"
    )


class Keeping:
    """Reads an open capture; at the end of the block closes it and completes the file of `-w`."""

    def __init__(self, live: LiveRequest, capture: LiveCapture, force: bool = False) -> None:
        """Read `capture`; `force`: the file that packets are kept in is replaced if it exists."""
        self._capture = capture
        self._losses = _Losses(capture)
        self._kept = None
        if live.keep is not None:
            self._kept = _KeptPackets(live, capture.linktype, force)
        self.source = LiveSource(capture, duration=live.duration, keep=self._keep)
        """source for `Decode`"""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self._kept is not None and kind is None:
                self._kept.write(())  # a capture without packets is valid, as with tcpdump
        finally:
            self._capture.close()
            if self._kept is not None:
                self._kept.finish(self._capture)

    def say_end(self, quiet: bool) -> None:
        """Report on standard error why the capture ended, what was kept, and what was lost."""
        if self.source.problem is not None:
            print_note(f"{self.source.name}: {self.source.problem}; the capture ends here")
        if self._kept is not None and not quiet:
            packets = counted(self._kept.packets, "packet")
            print_note(f"{packets} → {self._kept.name} ({size(self._kept.size)})")
        self._losses.note_dropped()

    def _keep(self, packets: Sequence[RingPacket]) -> None:
        self._losses.look()
        if self._kept is not None:
            self._kept.write(packets)


class _Losses:
    """Checks periodically for lost packets."""

    def __init__(self, capture: LiveCapture) -> None:
        self._capture = capture
        self._next = time.monotonic() + LOOK
        self._reported = False

    def look(self) -> None:
        """Report lost packets once during the run."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + LOOK
        self._capture.count()
        if self._capture.dropped and not self._reported:
            self._reported = True
            self.note_dropped(" so far")

    def note_dropped(self, since: str = "") -> None:
        """Report the number of lost packets, if any, even with `--quiet`."""
        dropped, received = self._capture.dropped, self._capture.received
        if not dropped:
            return
        print_note(
            f"{count(dropped)} of {counted(received, 'packet')} dropped{since}: "
            "exchanges are missing; capture less (-f), show less, or use a larger --buffer"
        )


class _KeptPackets:
    """The packet file; opened when reading starts."""

    def __init__(self, live: LiveRequest, linktype: int, force: bool) -> None:
        assert live.keep is not None
        self.name = live.keep
        self.packets = 0
        self.size = 0
        """bytes of the file, once it is finished"""
        self._secrets_read = 0
        self._secrets_begun = False
        self._secrets_inode = 0
        self._live = live
        self._linktype = linktype
        self._force = force
        self._output: Output | None = None
        self._writer: PcapngWriter | None = None

    def write(self, packets: Sequence[RingPacket]) -> None:
        """Write packets; an empty list flushes the file for concurrent readers."""
        output, writer = self._opened()
        with naming(self.name):
            # Readers need the secrets before the packets that they decrypt.
            self._write_secrets(writer)
            for ts, data, length in packets:
                writer.write(ts, data, length)
            if not packets:
                output.flush()
        self.packets = writer.packets

    def _write_secrets(self, writer: PcapngWriter) -> None:
        """Write additions of the key log; the first may be empty, because readers wait for it."""
        if not self._live.secrets:
            return
        text = b""
        with suppress(OSError), open(self._live.secrets, "rb") as file:
            now = os.fstat(file.fileno())
            if now.st_ino != self._secrets_inode or now.st_size < self._secrets_read:
                self._secrets_inode, self._secrets_read = now.st_ino, 0  # rotated or truncated
            file.seek(self._secrets_read)
            text = file.read()
        text = text[: text.rfind(b"\n") + 1]  # the last line may not be complete yet
        if text or not self._secrets_begun:
            writer.write_secrets(text)
        self._secrets_begun = True
        self._secrets_read += len(text)

    def finish(self, capture: LiveCapture) -> None:
        """Write the statistics of received and lost packets."""
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
            # Others may read the packets while they arrive, as with tcpdump.
            self._output = Output(self.name, direct=True, private=True, force=self._force)
            with naming(self.name):
                self._writer = PcapngWriter(
                    self._output.stream,
                    self._linktype,
                    interface=self._live.interface,
                    filter_text=self._live.filter,
                )
        return self._output, self._writer

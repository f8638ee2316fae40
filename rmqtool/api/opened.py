"""Inputs that need scapy: interfaces, and scapy packets of a program.

Only this module imports `dissectors.with_scapy`, which has a licence of its own, and only when an
interface or packets are read.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence

from dissectors.live.interface import Interface, LiveCapture, LiveError, LiveSource
from dissectors.live.packet_ring import RING_BYTES
from dissectors.live.privileges import account_of, give_up
from dissectors.tcp.source import Source

from ..errors import MissingExtraError, ReadError


def open_interface(
    interface: str,
    packet_filter: str = "",
    *,
    promiscuous: bool = True,
    buffer_bytes: int = RING_BYTES,
) -> LiveCapture:
    """Return an open capture; raise LiveError. The process keeps its rights."""
    from dissectors.with_scapy.sockets import open_capture

    return open_capture(
        interface, packet_filter, promiscuous=promiscuous, buffer_bytes=buffer_bytes
    )


def interfaces() -> list[Interface]:
    """Return the interfaces of this machine."""
    from dissectors.with_scapy.sockets import list_interfaces

    return list_interfaces()


class _WatchedSource(LiveSource):
    """An interface; warns at the end about lost packets."""

    def close(self) -> None:
        super().close()
        dropped = self._capture.dropped
        if dropped:
            warnings.warn(
                f"{self.name}: {dropped} of {self._capture.received} packets dropped: exchanges"
                " are missing; capture less (packet_filter)",
                RuntimeWarning,
                stacklevel=2,
            )


def interface_source(
    interface: str,
    packet_filter: str,
    duration: float | None,
    promiscuous: bool,
    drop_privileges: bool,
) -> Source:
    """Return an open interface; raise ReadError if it cannot be opened.

    `drop_privileges`: the process gives up its rights for good, as the command does.
    """
    try:
        capture = open_interface(interface, packet_filter, promiscuous=promiscuous)
        if drop_privileges:
            try:  # after the interface was opened, which needs the rights
                give_up(account_of(None, os.environ))
            except BaseException:
                capture.close()
                raise
    except LiveError as error:
        raise ReadError(error.reason, error.interface, hint=error.hint) from error
    return _WatchedSource(capture, duration=duration)


def packets_source(name: str, packets: Sequence[object]) -> Source:
    """Return scapy packets as a capture; raise ReadError for mixed link types."""
    try:
        from dissectors.with_scapy.packets import PacketsSource, UnknownLinkTypeError
    except ImportError as error:
        raise MissingExtraError(
            f"scapy cannot be imported ({error})", hint="pip install 'rmqtool[live]'"
        ) from error
    try:
        return PacketsSource(name, packets)
    except UnknownLinkTypeError as error:
        hint = "import scapy.all before packets are read: it registers the link layers"
        raise ReadError(str(error), name, hint=hint) from error

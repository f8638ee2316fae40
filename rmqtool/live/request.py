"""Where packets come from: what a user asked of an interface, checked."""

from __future__ import annotations

from dataclasses import dataclass

from dissectors.live.packet_ring import RING_BYTES


@dataclass(frozen=True, slots=True)
class LiveRequest:
    """Where packets come from, checked."""

    interface: str
    """name of the network interface"""
    filter_text: str = ""
    """capture filter as tcpdump has it; empty: all packets"""
    keep: str | None = None
    """pcapng file that packets are written to"""
    force: bool = False
    """that file is replaced if it exists"""
    secrets: str = ""
    """key log whose secrets are written there, too; empty: none"""
    duration: float | None = None
    """seconds; None: until Ctrl-C"""
    promiscuous: bool = True
    """packets for other machines too"""
    buffer: int = RING_BYTES
    """bytes of packets that may wait"""
    user: str | None = None
    """whom to run as once the interface is open; None: the user who called sudo"""
    plugins: tuple[str, ...] = ()
    """what decodes bodies of messages; loaded once the interface is open, as that user"""

# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Sockets of network interfaces, opened and filtered by scapy.

Rules: scapy finds interfaces, opens the socket and compiles the filter; packets are not dissected
by it, for that takes longer than most packets leave. Errors are raised only for what the user did:
no right, no such interface, a bad filter.
"""

from __future__ import annotations

import sys
from typing import Final

from ..live.interface import (
    SNAPLEN,
    Interface,
    ListeningSocket,
    LiveCapture,
    LiveError,
    reason_of,
)
from ..live.packet_ring import RING_BYTES, SO_ATTACH_FILTER, SOL_SOCKET

_RETURN: Final = 0x06
"""BPF_RET|BPF_K: a filter's verdict, the bytes that it accepts"""
_INSTALL_LIBPCAP: Final = (
    "Debian, Ubuntu: apt install libpcap0.8\n"
    "Fedora, RHEL: dnf install libpcap\n"
    "or capture without a filter"
)


def list_interfaces() -> list[Interface]:
    """Return the interfaces of this machine by name; no right is needed. Raises LiveError: no
    scapy.
    """
    load_scapy()
    from scapy.config import conf

    conf.ifaces.reload()
    found = []
    for one in conf.ifaces.values():
        flags = int(one.flags)
        addresses = tuple(str(ip) for version in (4, 6) for ip in one.ips.get(version, ()))
        mac = str(one.mac or "")
        mac = "" if mac == "00:00:00:00:00:00" else mac
        name = str(one.network_name)
        found.append(Interface(name, addresses, bool(flags & 1), bool(flags & 8), mac))
    return sorted(found)


def load_scapy() -> None:
    """Import the parts of scapy that are needed; raise LiveError where it is not installed."""
    try:
        import scapy.arch
        import scapy.layers.inet  # noqa: F401 (its link types are registered)
    except ImportError as error:
        raise LiveError(
            "live capture", f"scapy cannot be imported ({error})", "pip install 'rmqtool[live]'"
        ) from None


def open_capture(
    interface: str,
    filter_text: str = "",
    *,
    promiscuous: bool = True,
    buffer_bytes: int = RING_BYTES,
    ring: bool = True,
) -> LiveCapture:
    """Open a capture on an interface; `ring` False: packets are read one by one.

    Raise LiveError for a missing right, an unknown interface, a filter that is none.
    """
    load_scapy()
    opened = _opened(interface, filter_text, promiscuous)
    if filter_text:
        _widen_filter(opened, filter_text, interface)
    return LiveCapture(opened, interface, buffer_bytes=buffer_bytes, ring=ring)


def _opened(interface: str, filter_text: str, promiscuous: bool) -> ListeningSocket:
    from scapy.config import conf
    from scapy.error import Scapy_Exception

    names = [one.name for one in list_interfaces()]
    if interface not in names:
        raise LiveError(interface, "no such interface", f"available: {', '.join(names)}")
    try:
        opened: ListeningSocket = conf.L2listen(
            iface=interface, filter=filter_text or None, promisc=promiscuous
        )
    except PermissionError:
        raise LiveError(
            interface,
            ("permission denied: capturing needs root or CAP_NET_RAW"),
            _way_to_rights(interface),
        ) from None
    except Scapy_Exception as error:
        reason, hint = _filter_reason(str(error))
        raise LiveError(interface, f"the filter {filter_text!r} {reason}", hint) from None
    except OSError as error:
        raise LiveError(interface, reason_of(error)) from None
    return opened


def _widen_filter(opened: ListeningSocket, filter_text: str, interface: str) -> None:
    """Let a filter accept packets whole: scapy's cuts them to 65,535 bytes, and a loopback has
    larger ones."""
    if not sys.platform.startswith("linux"):
        return
    from scapy.arch.common import compile_filter, free_filter
    from scapy.libs.structures import sock_fprog

    program = compile_filter(filter_text, interface)
    for index in range(program.bf_len):
        step = program.bf_insns[index]
        if step.code == _RETURN and step.k:
            # A return of 0 rejects the packet and stays.
            step.k = SNAPLEN
    opened.ins.setsockopt(
        SOL_SOCKET, SO_ATTACH_FILTER, bytes(sock_fprog(program.bf_len, program.bf_insns))
    )
    free_filter(program)


def _filter_reason(text: str) -> tuple[str, str]:
    """Return why scapy rejected a filter, and what to do about it."""
    if "libpcap is not available" in text:
        return "needs libpcap, which is not installed", _INSTALL_LIBPCAP
    inner = text.rpartition(" (")[2].rstrip(")")
    return f"is not a capture filter: {inner}", "see pcap-filter(7); e.g. 'tcp port 10911'"


def _way_to_rights(interface: str) -> str:
    return (
        "run it as root, or use tcpdump:\n"
        f"sudo tcpdump -i {interface} -U -w - | rmqtool decode pcap -"
    )

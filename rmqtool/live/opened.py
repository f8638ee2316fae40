"""Open the interface for `decode live` and `diagnose -i`, then give up the right to do so."""

from __future__ import annotations

import os

from dissectors.live.interface import LiveCapture
from dissectors.live.privileges import Account, account_of, give_up, is_root

from ..api.opened import open_interface
from ..ui.errors import say_remark
from .request import LiveRequest


def opened_capture(live: LiveRequest, quiet: bool) -> LiveCapture:
    """Return the open capture; from here on the process has no right that its user lacks."""
    account = account_of(live.user, os.environ)
    capture = open_interface(
        live.interface,
        live.filter_text,
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

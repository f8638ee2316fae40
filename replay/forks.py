"""Detach a forked child from its parent's connections, files, locks, and counters.

Rules: in the child, descriptors of the parent become /dev/null: whatever closes or flushes them,
now or at the child's exit, changes neither the parent's connections nor its files. An epoll set is
shared by both processes, so that nothing may be taken out of it by the child.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet


class LeftByFork(Protocol):
    """An object that is notified in a forked child that it belongs to the parent."""

    def forked(self) -> None:
        """Give up everything that the parent still uses."""


_watched: WeakSet[LeftByFork] = WeakSet()


def watch_forks(one: LeftByFork) -> None:
    """Call `one.forked()` in each child that this process forks, as long as `one` lives."""
    _watched.add(one)


def blind(descriptors: Iterable[int]) -> None:
    """Redirect descriptors to /dev/null; the originals stay open in the parent."""
    with suppress(OSError):  # no descriptor is left: the child keeps its copies open
        null = os.open(os.devnull, os.O_RDWR)
        try:
            for descriptor in descriptors:
                if descriptor >= 0:
                    os.dup2(null, descriptor, inheritable=False)
        finally:
            os.close(null)


def _in_child() -> None:
    for holder in list(_watched):
        holder.forked()


os.register_at_fork(after_in_child=_in_child)

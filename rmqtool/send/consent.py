"""Ask on the terminal whether messages may go to brokers that only a route names.

Rules: without a terminal nobody can agree, and the way out is said. What the user types is waited
for by the loop, so that nothing else stops meanwhile and Ctrl-C is a no.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from dissectors.printable import printable
from replay.consent import TypedLine
from replay.safety import WAY_OUT, Agreement, TargetRefused

from ..ui.option_values import usage_error
from ..ui.screen.prompts import asked

TITLE: Final = "Not agreed to"
"""stands above what is asked"""


def agreement_of(yes: bool, allow: Iterable[str] | None) -> Agreement:
    """Return what --yes and --allow agree to; CommandError for what is not a network or host."""
    try:
        return Agreement(yes, allow or ())
    except ValueError as error:
        raise usage_error("--allow", str(error)) from None


def can_ask() -> bool:
    """Return whether there is somebody to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class Question:
    """What is asked while messages are sent."""

    def __init__(self, clear: Callable[[], None]) -> None:
        """`clear` removes the line of the progress."""
        self._clear = clear
        self._typed = TypedLine()

    async def __call__(self, addresses: Sequence[str], topic: str) -> bool:
        """Return whether the user agrees; raise TargetRefused where nobody can be asked."""
        shown = ", ".join(map(printable, addresses))
        what = f"the route of {printable(topic)} names {shown}: neither loopback nor named"
        if not can_ask():
            raise TargetRefused(f"{what}; {WAY_OUT}")
        self._clear()
        asked(TITLE, [f"{what[0].upper()}{what[1:]}"], "Send there? Type yes", sys.stderr)
        return (await self._typed.read(sys.stdin)).strip().lower() == "yes"

    def end(self) -> None:
        """Take no answer any more: it is a no. May be called by a signal handler."""
        self._typed.end()

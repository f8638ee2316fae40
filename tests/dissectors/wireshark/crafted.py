"""Crafted traffic for the Lua dissector."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tests.traffic.commands import Command
from tests.traffic.talk import End, Talk, Tcp

from .tshark import Layer

Capture = Callable[[Iterable[Tcp]], Path]
"""What writes segments as a capture."""
PULL = 11
SIZES = (1, 2, 3, 5, 7, 8, 9, 100, 1448)
"""of segments: frames are cut anywhere"""


def all_of(found: dict[int, list[Layer]]) -> list[Layer]:
    """The commands of all packets in order."""
    return [layer for number in sorted(found) for layer in found[number]]


def talked(*frames: tuple[int, Command], client: End | None = None, port: int = 10911) -> Talk:
    talk = Talk(client or End("10.0.0.5", 51234), End("10.0.0.1", port)).open()
    for side, command in frames:
        talk.say(side, command.frame)
    return talk

"""Find out whether a conversation is replication, and which reading of it is the right one."""

from __future__ import annotations

from .progress import Reading


class ReplicationFinder:
    """Tries the readings of a conversation that is not known yet."""

    def __init__(self, conversation: int) -> None:
        self._readings = [
            Reading(conversation, auto_switch, master_first)
            for auto_switch in (False, True)
            for master_first in (False, True)
        ]

    @property
    def possible(self) -> bool:
        """Whether a reading is left."""
        return len(self._readings) > 0

    def receive(
        self, first: bool, data: bytes, offset: int, packet: int, ts: int, started: bool
    ) -> Reading | None:
        """Return the next bytes of a direction; give the reading that is certain with them."""
        for reading in self._readings:
            reading.receive(first, data, offset, packet, ts, started)
            if reading.certain:
                return reading
        self._readings = [one for one in self._readings if not one.refuted]
        return None

    def receive_gap(self, first: bool, length: int) -> None:
        """Note bytes of a direction that the capture does not have; 0: how many is not known."""
        for reading in self._readings:
            reading.receive_gap(first, length)

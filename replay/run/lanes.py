"""Which steps of a plan may be sent: each waits for those before it in its lanes.

Rules: pure. A lane is what must stay in order, such as the messages of one sharding key; a step may
be in several, or in none. Steps are added in the order of the plan.
"""

from __future__ import annotations

from ..plan.planner import PlannedSend


class Place:
    """A step in its lanes."""

    __slots__ = ("ended", "followers", "step", "waited", "waits_for")

    def __init__(self, step: PlannedSend) -> None:
        self.step = step
        self.waits_for = 0
        """steps before it that have not ended"""
        self.waited = False
        """whether there was one when it was due"""
        self.followers: list[Place] = []
        """steps that wait for it"""
        self.ended = False


class OrderedLanes:
    """The steps that have not ended, and their order."""

    def __init__(self) -> None:
        self.waiting = 0
        """steps that wait for others"""
        self.bytes = 0
        """bytes of the bodies of all steps that have not ended"""
        self._last: dict[object, Place] = {}

    def add(self, step: PlannedSend) -> Place:
        """Return the next step of the plan; it may be sent at once where its place waits
        for none.
        """
        place = Place(step)
        for lane in dict.fromkeys(step.lanes):
            before = self._last.get(lane)
            if before is not None:
                before.followers.append(place)
                place.waits_for += 1
            self._last[lane] = place
        place.waited = place.waits_for > 0
        self.waiting += place.waited
        self.bytes += step.size
        return place

    def end(self, place: Place) -> list[Place]:
        """End a step; return those that may be sent now, in the order of the plan."""
        place.ended = True
        self.bytes -= place.step.size
        for lane in place.step.lanes:
            if self._last.get(lane) is place:
                del self._last[lane]
        ready = []
        for follower in place.followers:
            follower.waits_for -= 1
            if not follower.waits_for:
                self.waiting -= 1
                ready.append(follower)
        place.followers = []
        ready.sort(key=lambda one: one.step.number)
        return ready

"""Describe the state of messages in broker stores, as sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from dissectors.broker_store.evidence import StoredCopy, StoredHalfState, StoreEvidence
from dissectors.broker_store.half_messages import ABANDONED, ENDED
from dissectors.remoting.ids.message_ids import decode_offset_id
from dissectors.remoting.topic_names import CHECKED_OUT_TOPIC, HALF_TOPIC
from dissectors.rows.message_record import COMMITTED, ROLLED_BACK
from dissectors.times import text_of_time

from .messages import ObservedMessage

MOST_SOUGHT: Final = 10_000
"""maximum messages of one state that are looked up"""
_MOST_LISTED: Final = 5
_MOST_GROUPS: Final = 5


@dataclass(slots=True)
class SoughtMessage:
    """A message to look up in the stores of brokers."""

    known: set[str] = field(default_factory=set)
    """offset message ids in broker responses"""
    open_sends: list[tuple[str, int]] = field(default_factory=list)
    """attempts without a response: broker address, ns since the epoch"""
    failed: bool = False
    """its producer considered it failed"""


class SoughtMessages:
    """The messages of one topic to look up, at most `MOST_SOUGHT`."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.messages: dict[str, SoughtMessage] = {}
        """by UNIQ_KEY"""
        self._hosts: dict[str, str] = {}
        """broker address in the capture → the address that it writes into ids"""

    def add(self, message: ObservedMessage, undecided: Iterable[str], failed: bool) -> None:
        """Add a message; attempts with `undecided` outcomes got no response."""
        if len(self.messages) >= MOST_SOUGHT:
            return
        outcomes = frozenset(undecided)
        item = self.messages.setdefault(message.key, SoughtMessage())
        item.failed = failed
        for attempt in message.attempts:
            offset_id = attempt.send.offset_msg_id
            if offset_id is not None:
                item.known.add(offset_id)
                taken = decode_offset_id(offset_id)
                if taken is not None:
                    self._hosts[attempt.send.server_address] = taken.store_host
            # The store must cover the time of these: only there, a missing copy proves something.
            if attempt.outcome in outcomes:
                item.open_sends.append((attempt.send.server_address, attempt.begin * 1000))

    def sought(self) -> Mapping[str, str]:
        """Return topics by UNIQ_KEY."""
        return dict.fromkeys(self.messages, self.topic)

    def number_stored(self, key: str, store: StoreEvidence) -> int | None:
        """Return how often a message is stored, or None if the stores cannot tell.

        More than once is certain even if the stores are incomplete.
        """
        message = self.messages[key]
        number = store.number_stored(key, self.topic, message.known)
        if number > 1:
            return number
        covered = all(
            store.covers(self._hosts.get(broker, broker), time)
            for broker, time in message.open_sends
        )
        return number if covered else None

    def described(self, store: StoreEvidence) -> list[str]:
        """Return a sentence for each of the first messages in a store."""
        sentences = []
        for key in sorted(self.messages):
            copies = store.copies_of(key, self.topic)
            if copies:
                words = "; ".join(copy_words(copy, store) for copy in copies[:_MOST_LISTED])
                sentences.append(f"store: {key}: {words}")
            if len(sentences) == _MOST_LISTED:
                break
        return sentences


def copy_words(copy: StoredCopy, store: StoreEvidence) -> str:
    """Return the place of a copy, its store time, and the groups that consumed it."""
    if not copy.in_log:
        return f"in the index only, stored about {text_of_time(copy.time)[:19]}Z"
    words = (
        f"{copy.broker}, {copy.topic}, queue {copy.queue_id}, offset {copy.queue_offset}, stored"
        f" {text_of_time(copy.time)}"
    )
    # No consumer reads half messages: the offsets of groups say nothing about them.
    if copy.topic == HALF_TOPIC:
        return words
    if copy.visible is False:
        return f"{words}, not in its consume queue"
    passed, behind = store.passed_by(copy)
    for said, groups in (("consumed by", passed), ("not consumed by", behind)):
        if groups:
            words += f", {said} {', '.join(sorted(groups)[:_MOST_GROUPS])}"
    return words


def half_words(half: StoredHalfState) -> str:
    """Return how a half message ended, according to its broker's store."""
    when = "" if half.time is None else f" at {text_of_time(half.time)}"
    return f"{_OUTCOMES[half.outcome]}{when}"


_OUTCOMES: Final = {
    COMMITTED: "committed",
    ROLLED_BACK: "rolled back",
    ENDED: "committed or rolled back (the log is damaged)",
    ABANDONED: f"moved to {CHECKED_OUT_TOPIC}",
    None: "not decided",
}

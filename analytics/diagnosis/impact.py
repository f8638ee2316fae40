"""The impact of problems on messages: failed sends, unconsumed messages.

Rules: a rule that counts messages names its `Impact`; a fold with other numbers puts them into its
case. Each message counts in one rule, so an incident has the sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final


class Impact(StrEnum):
    """Effects on messages, most severe first; the values are names in JSON."""

    LOST = "messages_lost"
    SENDS_FAILED = "sends_failed"
    NOT_CONSUMED = "messages_not_consumed"
    DEAD = "messages_dead_lettered"
    SKIPPED = "messages_skipped"
    INVISIBLE = "messages_invisible"
    ROLLED_BACK = "messages_rolled_back"
    NO_REPLY = "requests_without_reply"
    RETURN_REFUSED = "returns_refused"
    STORED_TWICE = "messages_stored_twice"
    MAYBE_STORED_TWICE = "messages_maybe_stored_twice"
    MAYBE_STORED = "messages_maybe_stored"
    NOT_DURABLE = "messages_not_durable"
    REDELIVERED = "messages_redelivered"
    EARLY = "messages_early"
    LATE = "messages_late"
    UNCONFIRMED = "messages_unconfirmed"
    RETRIED = "sends_retried"


_TEXTS: Final = {
    Impact.LOST: ("message{of} was lost", "messages{of} were lost"),
    Impact.SENDS_FAILED: ("send attempt failed", "send attempts failed"),
    Impact.NOT_CONSUMED: ("message{of} was not consumed", "messages{of} were not consumed"),
    Impact.DEAD: ("message{of} went to the DLQ", "messages{of} went to the DLQ"),
    Impact.SKIPPED: ("message was skipped{by}", "messages were skipped{by}"),
    Impact.INVISIBLE: (
        "transactional message is not visible to consumers",
        "transactional messages are not visible to consumers",
    ),
    Impact.ROLLED_BACK: (
        "transactional message was rolled back by the wrong client",
        "transactional messages were rolled back by the wrong client",
    ),
    Impact.NO_REPLY: ("request got no reply in time", "requests got no reply in time"),
    Impact.RETURN_REFUSED: (
        "message{of} could not be returned for redelivery",
        "messages{of} could not be returned for redelivery",
    ),
    Impact.STORED_TWICE: (
        "message is stored more than once",
        "messages are stored more than once",
    ),
    Impact.MAYBE_STORED_TWICE: ("message may be stored twice", "messages may be stored twice"),
    Impact.MAYBE_STORED: (
        "failed message may have been stored anyway",
        "failed messages may have been stored anyway",
    ),
    Impact.NOT_DURABLE: (
        "stored message may be lost if the broker fails",
        "stored messages may be lost if the broker fails",
    ),
    Impact.REDELIVERED: ("message may be redelivered{to}", "messages may be redelivered{to}"),
    Impact.EARLY: ("message was delivered too early", "messages were delivered too early"),
    Impact.LATE: ("message was delivered late", "messages were delivered late"),
    Impact.UNCONFIRMED: (
        "message was sent without confirmation",
        "messages were sent without confirmation",
    ),
    Impact.RETRIED: ("send succeeded on retry", "sends succeeded on retry"),
}
"""singular and plural texts; {of}, {by}, and {to} are the group if there is only one"""


def impact_text(impact: Impact, count: int, groups: Iterable[str | None]) -> str:
    """Return the impact on `count` messages of these groups as text."""
    different = set(groups)
    group = different.pop() if len(different) == 1 else None
    names = {word: f" {word} group {group}" if group else "" for word in ("of", "by", "to")}
    return f"{count:,} {_TEXTS[impact][count != 1].format(**names)}"

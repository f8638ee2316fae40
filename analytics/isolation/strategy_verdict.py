"""Whether a client had its fault strategy on, inferred from its attempts at isolated brokers.

Rules: no verdict without evidence. A client that sends to a broker which the strategy would exclude
has it off, or selects queues itself, or is of another generation than its version; one that never
does so may be lucky, so that probability counts. All clients avoid a broker that left the route,
which no exchange shows: `on` means consistent, not proven.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .strategy_replay import (
    CHANCE,
    NO_STRATEGY,
    OFF,
    ON,
    OTHER_GENERATION,
    UNDETERMINED,
    UNSEEN,
    Replay,
)

_MANY = 0.2
"""Share of the attempts expected without a strategy that is implausible with one."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on a producer's strategy, with its reason."""

    state: str
    """one of isolation.VERDICTS"""
    reason: str
    """for people"""


def verdict_of(
    replay: Replay,
    others: Iterable[tuple[str, Replay]],
    language: str | None,
    said: bool | None = None,
    unreachable: str | None = None,
) -> Verdict:
    """Return the verdict on a producer.

    `replay` uses the producer's own generation, `others` all generations, used only if its own does
    not fit. `said` is the configured sendLatencyFaultEnable, if the user gave it; `unreachable` are
    brokers to which its connects failed.
    """
    if said is not None:
        return Verdict(ON if said else OFF, "as given")
    if language != "JAVA":
        return Verdict(NO_STRATEGY, f"the strategy is the Java client's; this client is {language}")
    if not replay.windows and unreachable:
        return Verdict(
            UNDETERMINED, f"connection attempts to {unreachable} failed, but no send matches them"
        )
    if not replay.windows:
        return Verdict(
            UNDETERMINED, "no captured attempt failed or was slow enough to isolate its broker"
        )
    met = replay.avoided + replay.broken
    if not met:
        return Verdict(UNDETERMINED, "no send could have reached an isolated broker")
    if not replay.broken:
        if replay.chance < CHANCE:
            unseen = replay.counts[UNSEEN]
            but = f", but for {unseen} after unseen ones" if unseen else ""
            return Verdict(
                ON,
                f"{replay.avoided} attempts while a broker was isolated, none to that broker{but}",
            )
        return Verdict(UNDETERMINED, f"only {replay.avoided} attempts while a broker was isolated")
    summary = f"{replay.broken} of {met} attempts went to an isolated broker"
    fitting = next((name for name, other in others if _fits(other)), None)
    if fitting is not None:
        return Verdict(OTHER_GENERATION, f"{summary}, none by the tables of generation {fitting}")
    # With two brokers, a client without strategy sends half of these to the isolated one.
    if replay.broken >= _MANY * met / 2:
        return Verdict(OFF, f"{summary} (unless the program selects its queues)")
    return Verdict(UNDETERMINED, f"{summary}: too few without the strategy, too many with it")


def _fits(replay: Replay) -> bool:
    return bool(replay.windows) and not replay.broken and replay.chance < CHANCE

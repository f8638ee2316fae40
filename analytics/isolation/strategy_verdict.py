"""Whether a client had its fault strategy on, judged by what it did while brokers were isolated.

Rules: nothing is said without evidence. A client that sends to a broker which the strategy would
not give has it off, or chooses queues itself, or is of another generation than it says; one that
never does so may be lucky, so the chance of that counts. A broker that left the route is avoided by
all clients, which no exchange shows: `on` is what fits, not what is proven.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .strategy_replay import CHANCE, NO_STRATEGY, OFF, ON, OTHER_GENERATION, UNSEEN, UNTOLD, Replay

_MANY = 0.2
"""Share of the attempts of a client without strategy at isolated brokers that is too large for one
with a strategy."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is thought of a producer's strategy, and why."""

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

    `replay` is by its own generation, `others` are by all generations, which are looked at only
    where its own does not fit. `said` is what the user knows of sendLatencyFaultEnable;
    `unreachable` are brokers to which its connects failed.
    """
    if said is not None:
        return Verdict(ON if said else OFF, "as given")
    if language != "JAVA":
        return Verdict(NO_STRATEGY, f"the strategy is the Java client's; this one says {language}")
    if not replay.windows and unreachable:
        return Verdict(UNTOLD, f"connects to {unreachable} failed, but no send can be tied to them")
    if not replay.windows:
        return Verdict(
            UNTOLD, "no attempt that was seen failed or was slow enough to isolate its broker"
        )
    met = replay.avoided + replay.broken
    if not met:
        return Verdict(UNTOLD, "nothing was sent that could have met an isolated broker")
    if not replay.broken:
        if replay.chance < CHANCE:
            unseen = len(replay.trespasses.because(UNSEEN))
            but = f", but for {unseen} after unseen ones" if unseen else ""
            return Verdict(ON, f"{replay.avoided} attempts, none at an isolated broker{but}")
        return Verdict(UNTOLD, f"only {replay.avoided} attempts while a broker was isolated")
    what = f"{replay.broken} of {met} attempts at a broker while it was isolated"
    fitting = next((name for name, other in others if _fits(other)), None)
    if fitting is not None:
        return Verdict(OTHER_GENERATION, f"{what}, none by the tables of generation {fitting}")
    if replay.broken >= _MANY * met / 2:
        return Verdict(OFF, f"{what}, though others were available; or queues are chosen by hand")
    return Verdict(UNTOLD, f"{what}: too few for a client without the strategy, too many with it")


def _fits(replay: Replay) -> bool:
    return bool(replay.windows) and not replay.broken and replay.chance < CHANCE

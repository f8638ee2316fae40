"""The floors that rmqtool has to hold, as data, and the comparison with what was measured.

Ratios are of the median CPU times of the same interleaved run: everyone works in one thread, so on
an idle machine CPU time is the wall clock, and on a busy one it is what other processes change
least. They are for a capture of a million packets: on a
smaller one the start of the processes counts too much, and only memory, start-up and correctness
are judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.measure import Measured

from .startup import Startup

FULL_SIZE = 1_000_000

RATIO_FLOORS = (
    ("jsonl", "lua", 25.0),
    ("parquet", "lua", 20.0),
    ("jsonl", "default", 4.0),
    ("parquet", "default", 3.0),
    ("jsonl", "plain", 4.0),
    ("parquet", "plain", 3.5),
    ("jsonl", "java", 1 / 2),
    ("sends", "sends-plain", 3.5),
    ("sends-parquet", "sends-plain", 2.5),
    ("diagnose", "summary", 1 / 1.5),
    ("messages", "jsonl", 1 / 2.5),
    ("commands", "jsonl", 1 / 10),
    ("log", "parquet", 1 / 4),
)
"""(who, against whom, how many times faster at least)"""

RSS_LIMITS = (
    ("jsonl", 64.0),
    ("commands", 64.0),
    ("mixed", 64.0),
    ("sends", 64.0),
    ("sends-parquet", 220.0),
    ("parquet", 220.0),
    ("diagnose", 144.0),
    ("messages", 64.0),
    ("log", 240.0),
)
"""(who, largest resident set in MiB)"""

HELP_TIMES = 8.0
"""how many times what the interpreter alone takes `rmqtool --help` may take"""


HELD, MISSED, NOT_JUDGED = "ok", "MISSED", "-"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One floor and what was measured."""

    outcome: str
    """HELD, MISSED or NOT_JUDGED."""
    what: str
    """The floor in words."""
    measured: str
    """The figure, or why there is none."""


def _verdict(held: bool, what: str, measured: str) -> Verdict:
    return Verdict(HELD if held else MISSED, what, measured)


def judge(packets: int, figures: Mapping[str, Measured], startup: Startup | None) -> list[Verdict]:
    """Return a verdict for each floor of speed, memory and start-up."""
    verdicts = [_judge_ratio(packets, figures, *floor) for floor in RATIO_FLOORS]
    for who, limit in RSS_LIMITS:
        what = f"{who} below {limit:g} MiB"
        if who in figures:
            rss = figures[who].rss
            verdicts.append(_verdict(rss < limit, what, f"{rss:.0f} MiB"))
        else:
            verdicts.append(Verdict(NOT_JUDGED, what, "not measured"))
    what = f"rmqtool --help below {HELP_TIMES:g} times python -c pass, without heavy libraries"
    if startup is None:
        verdicts.append(Verdict(NOT_JUDGED, what, "not measured"))
    else:
        took = startup.help.cpu / startup.nothing.cpu
        held = took < HELP_TIMES and not startup.heavy
        loaded = ", ".join(startup.heavy) or "none"
        text = (
            f"{took:.1f} times, {startup.help.cpu * 1e3:.0f} ms of CPU, heavy libraries: {loaded}"
        )
        verdicts.append(_verdict(held, what, text))
    return verdicts


def _judge_ratio(
    packets: int, figures: Mapping[str, Measured], who: str, other: str, floor: float
) -> Verdict:
    what = f"{who} at least {floor:g} times as fast as {other}"
    if who not in figures or other not in figures:
        return Verdict(NOT_JUDGED, what, "not measured")
    ratio = figures[other].cpu / figures[who].cpu
    if packets < FULL_SIZE:
        text = f"{ratio:.2f}, not judged below {FULL_SIZE:,} packets"
        return Verdict(NOT_JUDGED, what, text)
    return _verdict(ratio >= floor, what, f"{ratio:.2f}")


def judge_outputs(compared: int, wrong: Sequence[str]) -> list[Verdict]:
    """Return the verdict on what was decoded."""
    what = "outputs agree with the ground truth"
    if not compared and not wrong:
        return [Verdict(NOT_JUDGED, what, "nothing compared")]
    return [_verdict(not wrong, what, f"{compared} compared, {len(wrong)} complaints")]

"""Runs the benchmark: `python -m bench [--packets N] [--rounds R] [--quick] [--check]`.

Everyone decodes the same generated capture, in interleaved rounds (A B C, A B C, ...), each in a
process of its own that is measured from outside with the capture in the page cache. Every output
is compared with the ground truth, and a wrong one is status 1. Medians are printed with their
ratios; `--check` makes a missed floor status 1, too. A baseline whose tool is absent is skipped,
and said so.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.captures.captures import CACHE, Capture, capture_of, warm
from bench.captures.generate import SENDS
from bench.measure import Measured, RunFailed, measure, medians

from .contestants import Contestant, contestants, tool_missing
from .floors import FULL_SIZE, MISSED, Verdict, judge, judge_outputs
from .java_baseline import java_result
from .report import print_growth, print_startup, print_table, print_verdicts
from .startup import Startup, measure_startup
from .verify import differences, digest_of

SMALL = 20_000
SENDS_SHARE = 5
"""the capture of small commands has this part of the packets of the main one"""


@dataclass(slots=True)
class Results:
    """All that one run of the benchmark measured."""

    packets: int
    """Packets of the main capture that were asked for."""
    runs: dict[str, list[Measured]] = field(default_factory=dict)
    """Contestant -> its runs, one a round."""
    growth: dict[str, dict[int, Measured]] = field(default_factory=dict)
    """Contestant -> packets asked for -> medians."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Contestant -> why it did not take part."""
    compared: int = 0
    """Outputs that were compared with the ground truth."""
    wrong: list[str] = field(default_factory=list)
    """Outputs that were not as the ground truth has it, and runs that failed."""
    startup: Startup | None = None
    """Start-up of the command line."""

    def medians(self) -> dict[str, Measured]:
        """Return the medians of each contestant."""
        return {key: medians(runs) for key, runs in self.runs.items() if runs}


class Bench:
    """The captures, the scratch folder and what was measured so far."""

    def __init__(self, packets: int, seed: int, scratch: Path) -> None:
        """Take the size of the main capture; captures are generated when first needed."""
        self.results = Results(packets)
        self.seed = seed
        self.scratch = scratch
        self.known: dict[tuple[str, Path], set[str]] = {}
        self.failed: set[str] = set()

    def capture(self, kind: str, packets: int = 0) -> Capture:
        """Return the capture of a kind: main, mixed, sends or small."""
        size = packets or self.results.packets
        if kind == "small":
            size = SMALL
        elif kind == SENDS:
            size //= SENDS_SHARE
        return capture_of(size, self.seed, kind if kind in ("mixed", SENDS) else "json")

    def once(self, who: Contestant, capture: Capture) -> Measured | None:
        """Run one contestant once, check and remove its output; None if it failed."""
        if who.key in self.failed:
            return None
        stdout = self.scratch / f"{who.key}.out"
        target = self.scratch / f"{who.key}{who.suffix or '.out'}"
        warm(capture.path)
        try:
            took = measure(who.command(capture.path, target), stdout, dict(os.environ))
            if who.warm:
                said = java_result(stdout)
                took = Measured(said.warm, said.warm_cpu, took.rss, took.others)
            self._check(who, capture, target)
        except (RunFailed, ValueError, KeyError) as error:
            self.failed.add(who.key)
            self.results.wrong.append(f"{who.key}: {error}")
            return None
        finally:
            for path in self.scratch.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        return took

    def _check(self, who: Contestant, capture: Capture, output: Path) -> None:
        if who.read is None:
            return
        self.results.compared += 1
        known = self.known.setdefault((who.key, capture.path), set())
        digest = digest_of(output)
        if digest in known:
            return
        known.add(digest)
        for line in differences(who.read(output), capture):
            self.results.wrong.append(f"{who.key} on {capture.path.name}: {line}")

    def rounds(self, chosen: list[Contestant], rounds: int) -> None:
        """Run everyone in turn, `rounds` times."""
        for number in range(rounds):
            for who in chosen:
                if number >= who.rounds:
                    continue
                took = self.once(who, self.capture(who.capture))
                if took is None:
                    continue
                self.results.runs.setdefault(who.key, []).append(took)
                print(f"  round {number + 1}: {who.key:9} {took.wall:8.2f} s", file=sys.stderr)

    def grow(self, chosen: list[Contestant], sizes: list[int], rounds: int) -> None:
        """Run our own contestants on captures of other sizes."""
        everyone = [who for who in chosen if who.key in ("jsonl", "commands", "parquet")]
        for who in everyone:
            by_size = self.results.growth.setdefault(who.key, {})
            for size in sizes:
                times = min(rounds, who.rounds)
                runs = [self.once(who, self.capture("main", size)) for _ in range(times)]
                done = [run for run in runs if run is not None]
                if done:
                    by_size[size] = medians(done)
            if self.results.runs.get(who.key):
                by_size[self.results.packets] = medians(self.results.runs[who.key])


def _able(everyone: list[Contestant], results: Results) -> Iterator[Contestant]:
    for who in everyone:
        reason = who.missing()
        if reason:
            results.skipped[who.key] = reason
            print(f"  skipped {who.key}: {reason}", file=sys.stderr)
        else:
            yield who


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--packets", type=int, default=FULL_SIZE, help="size of the capture")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="100,000 packets, for a first look")
    parser.add_argument("--large", action="store_true", help="growth up to 5,000,000 packets")
    parser.add_argument("--slow", action="store_true", help="measure scapy, too")
    parser.add_argument("--only", default="", metavar="KEYS", help="contestants, with commas")
    parser.add_argument("--check", action="store_true", help="status 1 when a floor is missed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.packets = 100_000
    return arguments


def _as_json(results: Results, verdicts: list[Verdict]) -> str:
    plain = asdict(results)
    plain["medians"] = {key: asdict(value) for key, value in results.medians().items()}
    plain["verdicts"] = [asdict(verdict) for verdict in verdicts]
    return json.dumps(plain, indent=1) + "\n"


def main() -> int:
    """Run the benchmark and return the exit status."""
    arguments = _arguments()
    scratch = CACHE / f"scratch-{os.getpid()}"
    scratch.mkdir(parents=True, exist_ok=True)
    bench = Bench(arguments.packets, arguments.seed, scratch)
    results = bench.results
    everyone = contestants(arguments.slow)
    if arguments.only:
        wanted = arguments.only.split(",")
        everyone = [who for who in everyone if who.key in wanted]
    try:
        chosen = list(_able(everyone, results))
        bench.rounds(chosen, arguments.rounds)
        sizes = [arguments.packets // 10, *([5_000_000] if arguments.large else [])]
        bench.grow(chosen, sizes, min(arguments.rounds, 3))
        if not tool_missing():
            results.startup = measure_startup(scratch)
    finally:
        shutil.rmtree(scratch)
    verdicts = judge(results.packets, results.medians(), results.startup)
    verdicts += judge_outputs(results.compared, results.wrong)
    print_table(everyone, results.medians(), bench.capture)
    print_growth(results.growth)
    print_startup(results.startup)
    for key, reason in results.skipped.items():
        print(f"skipped {key}: {reason}")
    print_verdicts(verdicts, results.wrong)
    if arguments.json:
        arguments.json.write_text(_as_json(results, verdicts))
    missed = any(verdict.outcome == MISSED for verdict in verdicts)
    return 1 if results.wrong or (arguments.check and missed) else 0


if __name__ == "__main__":
    sys.exit(main())

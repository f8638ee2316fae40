"""Print what the rules say of captures: python -m tests.analytics.diagnosis.show CAPTURE…

With `--write` in place of captures it writes what is expected of all samples, `EXPECTED`: read
every line that changes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from analytics.diagnosis.engine import Diagnosis, Engine
from analytics.diagnosis.incidents import impact_of
from analytics.diagnosis.problem import Problem
from analytics.diagnosis.registry import rules
from analytics.diagnosis.rule import DiagnosisRule
from dissectors.decode.pipeline import Decode, DecodeOptions

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "samples"
SHARED = ROOT.parent / "shared" / "captures"
EXPECTED = Path(__file__).with_name("problems_of_samples.txt")
HEAD = "== "


def diagnosis_of(
    captures: Sequence[str], chosen: Sequence[DiagnosisRule] | None = None
) -> Diagnosis:
    """Return the diagnosis of captures, by all rules or by those that are given."""
    decode = Decode(list(captures), DecodeOptions(conversations=True))
    engine = Engine(rules() if chosen is None else chosen)
    for batch in decode.records():
        engine.add_exchanges(batch)
        engine.add_connections(decode.take_conversations())
        engine.add_findings(decode.take_findings())
    engine.add_connections(decode.take_conversations())
    engine.add_findings(decode.take_findings())
    return engine.diagnosis()


def line_of(one: Problem) -> str:
    """Return a problem as one line; what follows from another one is indented."""
    under = "  " if one.consequence_of else ""
    times = f"x{one.count}"
    impact = f" ({impact_of([one])})" if one.impact else ""
    head = f"{under}{one.incident} {one.rule} [{one.severity}, {one.confidence}] {times}"
    return f"{head}{impact}: {one.title}"


def captures() -> dict[str, Path]:
    """Return all samples, and the shared captures where they are, by name."""
    found = {path.name: path for path in sorted(SAMPLES.glob("*.pcap*")) if is_capture(path)}
    return found | {f"shared/{path.name}": path for path in sorted(SHARED.glob("*.pcap"))}


def is_capture(path: Path) -> bool:
    """Return whether a file of samples/ is a capture."""
    return path.name.endswith((".pcap", ".pcapng", ".pcap.gz", ".pcapng.gz", ".pcap.zst"))


@cache
def expected() -> Mapping[str, list[str]]:
    """Return the lines that are expected, by name of capture."""
    found: dict[str, list[str]] = {}
    for line in EXPECTED.read_text().splitlines():
        if line.startswith(HEAD):
            lines = found[line.removeprefix(HEAD)] = []
        elif line:
            lines.append(line)
    return found


def write_expected() -> None:
    parts = []
    for name, path in captures().items():
        lines = [line_of(one) for one in diagnosis_of([str(path)]).problems]
        parts.append("\n".join([f"{HEAD}{name}", *lines]))
    EXPECTED.write_text("\n\n".join(parts) + "\n")


def main() -> None:
    if sys.argv[1:] == ["--write"]:
        write_expected()
        return
    for name in sys.argv[1:]:
        print(f"{HEAD}{name}")
        for one in diagnosis_of([name]).problems:
            print(line_of(one))
            for text in (one.reason, *one.details):
                if text:
                    print(f"      {text}")
            for evidence in one.evidence[:3]:
                print(f"      {evidence.packet} {evidence.what}")


if __name__ == "__main__":
    main()

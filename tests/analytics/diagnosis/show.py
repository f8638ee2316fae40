"""Print what the rules say of captures: python -m tests.analytics.diagnosis.show CAPTURE…"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from analytics.diagnosis.engine import Diagnosis, Engine
from analytics.diagnosis.registry import rules
from analytics.diagnosis.rule import DiagnosisRule
from dissectors.decode.pipeline import Decode, DecodeOptions


def diagnosis_of(
    captures: Sequence[str], chosen: Sequence[DiagnosisRule] | None = None
) -> Diagnosis:
    """Return the diagnosis of captures, by all rules or by those that are given."""
    decode = Decode(list(captures), DecodeOptions(conversations=True))
    engine = Engine(rules() if chosen is None else chosen)
    for batch in decode.records():
        engine.add_exchanges(batch)
        engine.add_connections(decode.take_conversations())
        engine.add_findings(decode.take_experts())
    engine.add_connections(decode.take_conversations())
    engine.add_findings(decode.take_experts())
    return engine.diagnosis()


def main() -> None:
    for name in sys.argv[1:]:
        print(f"== {name}")
        for one in diagnosis_of([name]).problems:
            under = "   " if one.consequence_of else ""
            print(
                f"{under}{one.incident} {one.rule} [{one.severity}, {one.confidence}]"
                f" x{one.count}: {one.title}"
            )
            for text in (one.reason, *one.details):
                if text:
                    print(f"      {text}")
            for evidence in one.evidence[:3]:
                print(f"      {evidence.packet} {evidence.what}")


if __name__ == "__main__":
    main()

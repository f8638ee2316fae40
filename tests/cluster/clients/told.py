"""What clients themselves knew of their messages, beside a capture: the truth that tests hold to.

A program that runs with `told=true` prints JSON lines (`java/both/Told.java`). Here the lines of
all clients become one list in order of time, in which each delivery is one object.

Rules: times are milliseconds of the machine's clock, which is also that of the capture; nothing of
the capture itself is in the list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SUFFIX = "clients.json"
_RECORD = ("client", "offsetMsgId", "reconsumed")
"""what the lines of a delivery agree in: the topic of a retry is its own only until the listener"""


def told_in(printed: str) -> list[dict[str, Any]]:
    """The objects among the lines that a client printed; a line that a kill cut is none."""
    objects = []
    for line in printed.splitlines():
        if line.startswith('{"kind"'):
            try:
                objects.append(json.loads(line))
            except ValueError:
                continue
    return objects


def truth_of(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines in order of time, with the lines of a delivery joined to one object.

    A delivery has `at`, when the client took it out of the answer; `given`, when the listener got
    it first; `tries`, how often; `done` and `outcome`, what the listener said last. Those that it
    did not come to are missing.
    """
    truth: list[dict[str, Any]] = []
    newest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in lines:
        record = tuple(line.get(name) for name in _RECORD)
        kind = line["kind"]
        if kind == "received":
            newest[record] = {**line, "kind": "delivery"}
            truth.append(newest[record])
        elif kind == "given":
            newest[record].setdefault("given", line["at"])
            newest[record]["tries"] = newest[record].get("tries", 0) + 1
        elif kind == "done":
            newest[record] |= {"done": line["at"], "outcome": line["outcome"]}
        else:
            truth.append(line)
    return sorted(truth, key=lambda one: int(one["at"]))


def write_truth(path: Path, truth: Iterable[dict[str, Any]]) -> None:
    """Writes one object per line, as a JSON list."""
    rows = ",\n".join(json.dumps(one, separators=(",", ":")) for one in truth)
    path.write_text(f"[\n{rows}\n]\n", encoding="utf-8")

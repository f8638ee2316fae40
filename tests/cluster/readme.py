"""Writes `samples/README.md` from the table of scenarios and the captures that are there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .scenarios.scene import Scenario

HEAD = """# Samples

Captures of a real RocketMQ, recorded on loopback by `make samples` (`python -m tests.cluster
record [NAME...]`); this
file is written by the same command. Servers have addresses of 127.77.0.0/24: NameServers .1 and
.2, brokers .11 and up,
a proxy of ours in front of a broker .61; clients come from 127.0.0.1. Message ids name 192.0.2.10,
an address kept for
documentation. Names end with the generation: `-5x` is RocketMQ 5.5.0 (5.3.3 where `-53`), `-4x`
the client 4.9.8 on
the server 4.9.7, the newest of 4.x that there are. Secrets in `acl-*` are dummies made for the
recording.

`*.faults.json` beside a capture is what the Java producer itself knew: one object a line of its
output, `kind`
`settings` first, then `send` (outcome of one call, with its begin and end in milliseconds since
the epoch) and `state`
(read between sends, left out while unchanged), each with `items`: the fault items of the client,
field by field.

| capture | bytes | client, server | what happens | what is odd |
|---|---|---|---|---|
"""


def write_readme(folder: Path, scenarios: Iterable[Scenario]) -> Path:
    """Writes one row for each scenario whose capture exists; returns the file."""
    rows = []
    for scenario in scenarios:
        files = [path for path in sorted(folder.glob(f"{scenario.name}.*")) if path.suffix != ".md"]
        files = [path for path in files if not path.name.endswith(".expected.json")]
        if not files:
            continue
        names = ", ".join(f"`{path.name}`" for path in files)
        size = sum(path.stat().st_size for path in files)
        versions = f"{scenario.client}, {scenario.cluster().version}"
        rows.append(f"| {names} | {size} | {versions} | {scenario.what} | {scenario.odd} |\n")
    path = folder / "README.md"
    path.write_text(HEAD + "".join(rows))
    return path

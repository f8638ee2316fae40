"""Writes `samples/README.md` from the table of scenarios and the captures that are there."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path

from tests.cluster.clients.told import SUFFIX as SUFFIX_TOLD
from tests.cluster.scenarios.scene import Scenario
from tests.expected import SUFFIX

HEAD = """# Samples

Captures of a real RocketMQ on loopback. `make samples` records them anew from nothing, and
`python -m tests.cluster record NAME...` some of them; both also write this file, from the table of
scenarios in `tests/cluster/scenarios/`.

- Names end with the generation: `-5x` is RocketMQ 5.5.0, `-53` is 5.3.3, `-4x` the client 4.9.8 on
  the server 4.9.7 (of 4.x, each the newest that Maven Central has). Where the column says so, a
  client of 4.x, or of 5.1.4 (`-51`), speaks with a 5.x server, as in `fault-*-4x`.
- Servers have addresses of 127.77.0.0/24: NameServers .1 and .2, brokers .11 and up, a proxy in
  front of a broker .61. Clients come from 127.0.0.1. Message ids name 192.0.2.10, which stands for
  the client's host and is an address kept for documentation.
- Recording happens in namespaces of its own, so nothing else of a machine can be in a capture;
  `tests/cluster/decoding/test_samples.py` looks for it all the same. Secrets in `acl-*` are
  dummies.
- A broker of 5.x asks its NameServer for the cluster (106) every five seconds and registers (103)
  every thirty: such exchanges may be in any capture.
- `NAME.faults.json` or `NAME.producer.json` beside a capture is what the Java producer itself
  knew, a list of objects: first `kind` `settings`; then `send`, the outcome of one call (`begin`
  and `at` in milliseconds since the epoch, `msgId` is the UNIQ_KEY), and `state`, read between
  sends and left out while unchanged; both with `items`, the fault items field by field as the
  client's class has them.
- `NAME.clients.json` is what all clients of a recording knew of their messages, one object per line
  in order of time (`at`, milliseconds of the clock that is also the capture's), with `client` and
  `group`. `send`: the outcome of a call that began at `begin`. `delivery`: taken out of an answer
  at `at`, first `given` to the listener, `done` with this `outcome` after so many `tries`; members
  that are missing did not come to be. `queues`: those held from then on (`held`: topic, broker and
  queue, and for an orderly consumer whether it had the lock), looked at every 20 ms. `decided` and
  `checked`: what a producer said of its transaction. `started`, `stopping`, `stopped`, `killed`.
  `msgId` is the UNIQ_KEY.

| capture | bytes | client, server | what happens | what is odd |
|---|---|---|---|---|
"""

PROVOKED = """
## What was provoked
Each of these was recorded for rules of the diagnosis, which stand in brackets. Brokers are broker-a
and broker-b, in the order of their addresses; a client's id is its host and its instance.

"""

TOLD = """
## What clients tell
Each of these has `NAME.clients.json`; `tests/analytics/life/test_truth.py` holds the table of
messages and `rmqtool trace` to it.

"""


def write_readme(folder: Path, scenarios: Iterable[Scenario]) -> Path:
    """Writes one row for each scenario whose capture exists; returns the file."""
    scenarios = tuple(scenarios)
    rows = []
    for scenario in scenarios:
        files = [path for path in sorted(folder.glob(f"{scenario.name}.*")) if path.suffix != ".md"]
        files = [path for path in files if not path.name.endswith(SUFFIX)]
        if not files:
            continue
        names = ", ".join(f"`{path.name}`" for path in files)
        size = sum(path.stat().st_size for path in files)
        versions = f"{scenario.client}, {scenario.cluster().version}"
        rows.append(f"| {names} | {size} | {versions} | {scenario.what} | {scenario.odd} |\n")
    path = folder / "README.md"
    provoked = _texts(one for one in scenarios if one.shows and any(folder.glob(f"{one.name}.*")))
    told = _texts(one for one in scenarios if (folder / f"{one.name}.{SUFFIX_TOLD}").exists())
    path.write_text(HEAD + "".join(rows) + PROVOKED + provoked + TOLD + told)
    return path


def _texts(scenarios: Iterable[Scenario]) -> str:
    """What was provoked, as the scenarios say it, once for all generations."""
    texts: dict[tuple[object, tuple[str, ...]], list[str]] = {}
    for scenario in scenarios:
        texts.setdefault((scenario.run, scenario.shows), []).append(scenario.name)
    parts = []
    for (run, rules), names in texts.items():
        text = inspect.getdoc(run) or ""
        samples = ", ".join(f"`{name}`" for name in names)
        shown = f" ({', '.join(rules)})" if rules else ""
        parts.append(f"- {samples}{shown}: {' '.join(text.split())}\n")
    return "".join(parts)

"""Writes `samples/README.md` from the table of scenarios and the captures that are there."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path

from tests.cluster.clients.told import SUFFIX as SUFFIX_TOLD
from tests.cluster.scenarios.scene import Scenario
from tests.expected import SUFFIX

HEAD = """# Samples

These captures were recorded from real RocketMQ software on loopback. `make samples` records all of
them again, and `python -m tests.cluster record NAME...` records some. Both also generate this file
from the scenarios in `tests/cluster/scenarios/`.

- **Names** end with the release: `-5x` is RocketMQ 5.5.0, `-53` is 5.3.3, and `-4x` is client 4.9.8
  with server 4.9.7, the newest 4.x releases on Maven Central. If the version column says so, a
  client of 4.x or 5.1.4 (`-51`) connects to a 5.x server, as in `fault-*-4x`.
- **Addresses** of servers are in 127.77.0.0/24: NameServers .1 and .2, brokers from .11 on, and a
  proxy in front of a broker .61. Clients use 127.0.0.1. Message ids contain 192.0.2.10, an address
  reserved for documentation, instead of the client's host.
- **Isolation**: recordings run in their own network namespaces, so captures contain no other
  traffic. `tests/cluster/decoding/test_samples.py` checks this. Secrets in `acl-*` are dummies.
- **Background requests**: 5.x brokers request the cluster from their NameServer (106) every five
  seconds and register (103) every thirty seconds, so any capture may contain such exchanges.

## Records of clients

`NAME.faults.json` and `NAME.producer.json` are the Java producer's own record, a list of objects.
The first has `kind` `settings`. `send` is the outcome of one call: `begin` and `at` are in
milliseconds since the epoch, and `msgId` is the UNIQ_KEY. `state` is read between sends and omitted
while unchanged. `send` and `state` have `items`: the fault items with the fields of the client's
class.

`NAME.clients.json` is what all clients of a recording knew about their messages, one object per
line, sorted by time. `at` is in milliseconds of the capture's clock, `client` and `group` name the
client, and `msgId` is the UNIQ_KEY.

- `send`: the outcome of a call that started at `begin`.
- `delivery`: a message received in a response at `at`, first passed to the listener at `given`, and
  completed at `done` with this `outcome` after `tries` tries. Missing members did not happen.
- `queues`: the queues owned from then on (`held`: topic, broker, and queue, and for an orderly
  consumer whether it had the lock), checked every 20 ms.
- `decided`, `checked`: the producer's decision about its transaction.
- `started`, `stopping`, `stopped`, `killed`: the state of the client.

## Captures

| capture | bytes | client, server | what happens | notes |
|---|---|---|---|---|
"""

PROVOKED = """
## Problems
These samples were recorded to test the diagnosis rules in parentheses. Brokers are named broker-a
and broker-b in the order of their addresses. A client id consists of the host and the instance.

"""

TOLD = """
## Samples with client records
These samples have `NAME.clients.json`. `tests/analytics/life/test_truth.py` checks the messages
table and `rmqtool trace` against these records.

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

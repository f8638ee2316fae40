"""`python -m tests.attacks.measure FOLDER`: what each attack of the catalogue costs, as JSON lines.

One process imports everything from its sources; each attack, size and command runs in a copy of it
that may take `MEMORY` more. Work is what Python does, calls counted by its profiler: it is the same
on every machine.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.pure import import_sources

PEER = "a peer"
"""in place of a command: what is attacked is a client, or the sandbox"""
MEMORY = 256 << 20
"""bytes of address space besides what is in use at the start"""


class Cost(NamedTuple):
    """What one run took."""

    attack: str
    """empty: a capture of two sends"""
    command: str
    size: int
    status: int
    """exit status; negative: a signal"""
    work: int
    """calls"""
    written: int
    """bytes of both outputs"""
    said: str
    """the end of standard error"""


def _run(deed: Callable[[], None], folder: Path) -> tuple[int, int, int, str]:
    out, err, count = folder / "out", folder / "err", folder / "count"
    count.write_text("0")
    process = os.fork()
    if not process:
        for path, number in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        status = 99
        try:
            status = _counted(deed, count)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    said = err.read_text("utf-8", "replace")
    written = out.stat().st_size + err.stat().st_size
    return status, int(count.read_text()), written, said[-600:]


def _counted(deed: Callable[[], None], count: Path) -> int:
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
    calls = itertools.count()
    sys.setprofile(lambda frame, event, argument, next_=calls.__next__: next_())
    try:
        deed()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 99
    finally:
        sys.setprofile(None)
        count.write_text(str(next(calls)))
    return 0


def main(folder: Path) -> None:
    """Write a line for each attack, command and size."""
    import_sources()
    from .catalogue import ATTACKS
    from .peers import PEERS

    for warm in ("decode", "diagnose", "trace", "replay"):  # what is imported late is imported now
        __import__(f"rmqtool.{warm}.run")
    for warm in ("conversations.http2_state", "grpc.calls", "http2.connection"):
        __import__(f"dissectors.{warm}")
    from tests.rmqtool.command import rmqtool

    first = folder / "first.pcap"
    first.write_bytes(ATTACKS["topics"].make(2))
    commands = dict.fromkeys(one for attack in ATTACKS.values() for one in attack.commands)
    for command in commands:
        rmqtool(*(one.format(first) for one in command))
    for command in commands:
        _tell("", 0, command, first)
    for name, attack in ATTACKS.items():
        for size in (attack.size, 2 * attack.size):
            path = folder / attack.name
            path.write_bytes(attack.make(size))
            for command in attack.commands:
                _tell(name, size, command, path)
    for name, peer in PEERS.items():
        peer.run(2)  # what is imported late is imported now
        for size in (peer.size, 2 * peer.size):
            found = _run(partial(peer.run, size), folder)
            print(json.dumps(Cost(name, PEER, size, *found)._asdict()), flush=True)


def _tell(name: str, size: int, command: tuple[str, ...], path: Path) -> None:
    from rmqtool.cli import main

    def run() -> None:
        sys.argv = ["rmqtool", *(one.format(path) for one in command)]
        main()

    found = _run(run, path.parent)
    words = " ".join(one for one in command if one != "{}")
    print(json.dumps(Cost(name, words, size, *found)._asdict()), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""`python -m tests.fuzz [--seconds N] [TARGET...]`: coverage-guided, with atheris.

Each target gets its share of the time. Starts from the corpus beside this file and from `seeds`;
keeps of what it found the inputs that reach new branches, the smallest for each. An input that
breaks a promise is written to the current folder as `crash-...`, and the exit status is 1.
Needs atheris, which has no wheels for every Python: it says so where that is absent.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from .corpus import corpus_of, keep
from .seeds import seeds_of
from .targets import TARGETS

MAX_INPUT = 1024
"""bytes of one input"""
MAX_SECONDS = 300
"""for one input, by the clock: most of it is waiting where the machine has other work"""


def _worker(target: str, *arguments: str) -> int:
    command = [sys.executable, "-m", "tests.fuzz.worker", target, *arguments]
    return subprocess.run(command, check=False).returncode


def _fuzz(target: str, seconds: int) -> bool:
    """Whether all promises were kept."""
    with tempfile.TemporaryDirectory() as folder:
        found, seeds, small = (Path(folder) / name for name in ("found", "seeds", "small"))
        for each in (found, seeds, small):
            each.mkdir()
        for number, data in enumerate([*seeds_of(target), *corpus_of(target)]):
            (seeds / str(number)).write_bytes(data)
        limits = (f"-max_len={MAX_INPUT}", f"-timeout={MAX_SECONDS}", "-rss_limit_mb=2048")
        status = _worker(target, str(found), str(seeds), f"-max_total_time={seconds}", *limits)
        if status:
            return False
        _worker(target, "-merge=1", str(small), str(seeds), str(found), *limits)
        keep(target, [path.read_bytes() for path in small.iterdir()])
    return True


def main() -> int:
    """Returns 1 where a promise was broken, 2 where atheris is not installed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=int, default=60, help="of the whole run (default: 60)")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    options = parser.parse_args()
    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed: pip install atheris")
        return 2
    targets = options.targets or list(TARGETS)
    share = max(options.seconds // len(targets), 1)
    broken = [target for target in targets if not _fuzz(target, share)]
    for target in broken:
        print(f"{target}: a promise is broken, see above")
    return 1 if broken else 0


sys.exit(main())

"""One fuzzing process: `python -m tests.fuzz.worker TARGET` and the options of libFuzzer.

The decode path runs from its sources, so that the fuzzer sees which branches an input takes.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-not-found]

from tests.pure import import_sources


def main() -> None:
    """Never returns: the fuzzer ends the process."""
    import_sources()
    with atheris.instrument_imports(include=["dissectors", "replay"]):
        from tests.fuzz.targets import TARGETS

    target = TARGETS[sys.argv[1]]
    with tempfile.TemporaryDirectory() as folder:
        # To merge, libFuzzer starts its own program again: it must be one that can be started.
        program = Path(folder) / "worker"
        command = shlex.join([sys.executable, "-m", "tests.fuzz.worker", sys.argv[1]])
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        program.chmod(0o700)
        atheris.Setup([str(program), *sys.argv[2:]], target)
        atheris.Fuzz()


main()

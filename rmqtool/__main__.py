"""`python -m rmqtool` and the command `rmqtool`."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys

_COLLECT_AFTER = 50_000
"""threshold of the garbage collector: loading makes thousands of lasting objects"""


def _skip_collection() -> None:
    """Disable the garbage collector at exit: the process frees its memory anyway."""
    # It lists uncollected objects on standard error, even if its import was interrupted.
    if "_duckdb" not in sys.modules:
        gc.freeze()


def main() -> None:
    """Run the command line; a Ctrl-C while it is being loaded ends it without a traceback."""
    # Not if the parent ignores it, as a shell does for a background job of a script.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_COLLECT_AFTER)
    # NumPy's matrix library, which is unused here, would otherwise start a thread per core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    atexit.register(_skip_collection)
    from .owners import said_of_owners

    if not said_of_owners():
        sys.exit(1)
    from .cli import main as run

    run()


if __name__ == "__main__":
    main()

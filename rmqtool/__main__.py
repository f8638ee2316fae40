"""`python -m rmqtool` and the command `rmqtool`."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys

_COLLECT_AFTER = 50_000
"""objects after which Python looks for circles: loading makes thousands, and each stays"""


def _skip_collection() -> None:
    """Look for no circles at the end: the memory goes with the process."""
    if "duckdb" not in sys.modules:  # it lists on standard error what was not collected
        gc.freeze()


def main() -> None:
    """Run the command line; a Ctrl-C while it is being loaded ends it without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_COLLECT_AFTER)
    # NumPy's library for matrices, which nobody needs here, else starts a thread for each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    atexit.register(_skip_collection)
    from .owners import said_of_owners

    if not said_of_owners():
        sys.exit(1)
    from .cli import main as run

    run()


if __name__ == "__main__":
    main()

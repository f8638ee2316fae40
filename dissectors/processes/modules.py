"""Run a module of this installation in another Python process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def start_module(name: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start `python -m name arguments`; `options` are those of `Popen`."""
    root = str(Path(__file__).resolve().parents[2])
    # The child must run this code, also where it is not installed.
    path = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        # -P: do not import modules from the working directory
        [sys.executable, "-P", "-m", name, *arguments],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path)),
        **options,
    )

"""Runs this package again inside Linux namespaces of its own: network, process ids, host name.

Rules:
- Inside there is only loopback and one invented address (192.0.2.10, kept for documentation by RFC
  5737), from which
  clients make message ids; so a capture cannot hold an address, host name or process id of the
  machine. Stores are in a small file system of their own, so that paths and sizes in answers tell
  nothing either.
- The kernel ends every process inside with the first one, so nothing outlives a recording.
- Nothing can be downloaded inside: fetch before.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from tests.cluster.servers.artifacts import Unavailable

MARK = "RMQTOOL_RECORDING"
HOST_NAME = "sample"
ADDRESS = "192.0.2.10/24"
FOLDER = "/mnt"
FOLDER_SIZE = "1500m"


def inside() -> bool:
    """Whether this process already runs in the namespaces."""
    return MARK in os.environ


def run_inside(arguments: Sequence[str]) -> int:
    """Runs `python -m tests.cluster ARGUMENTS` in new namespaces; returns its exit status."""
    unshare = shutil.which("unshare")
    if unshare is None or shutil.which("ip") is None:
        raise Unavailable("recording needs unshare and ip (util-linux, iproute2)")
    command = [unshare, "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        command.append("--map-root-user")
    command += [sys.executable, "-m", "tests.cluster", *arguments]
    child = subprocess.Popen(command, env={**os.environ, MARK: "1"})
    try:
        return child.wait()
    except BaseException:
        # unshare heeds no gentler signal; its end is that of everything inside.
        child.kill()
        child.wait()
        raise


def furnish() -> None:
    """Brings up loopback, the invented address and the file system; called once inside."""
    socket.sethostname(HOST_NAME)
    _ip("link set lo up")
    _ip("link add host0 type veth peer name host1")
    _ip(f"addr add {ADDRESS} dev host0")
    _ip("link set host0 up")
    _ip("link set host1 up")
    _do("mount", "-t", "tmpfs", "-o", f"size={FOLDER_SIZE}", "tmpfs", FOLDER)
    tempfile.tempdir = FOLDER


def _ip(arguments: str) -> None:
    _do("ip", *arguments.split())


def _do(*command: str) -> None:
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise Unavailable(f"{' '.join(command)}: {run.stderr.strip()}")

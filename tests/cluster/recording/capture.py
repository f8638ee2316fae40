"""Recording loopback traffic with tcpdump.

Rules: a capture is complete when `__enter__` returns and until `__exit__`; it holds only packets
of the given filter.
"""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

from tests.cluster.servers.artifacts import Unavailable
from tests.cluster.servers.processes import OwnedProcess, wait_until
from tests.tools import find

INTERFACE = "lo"
SETTLE_SECONDS = 0.4
"""tcpdump hands packets on in blocks; this long after the last one it has them all."""


class Capture:
    """tcpdump on loopback into one pcap file, as a context manager."""

    def __init__(
        self,
        path: Path,
        expression: str,
        *,
        snaplen: int = 262144,
        interface: str = INTERFACE,
        nanoseconds: bool = False,
    ):
        self.path = path
        self._command = [
            tcpdump(),
            "-i",
            interface,
            "-n",
            "-U",
            "--immediate-mode",
            "-B",
            "16384",
            "-Z",
            "root",
            "-s",
            str(snaplen),
            "-w",
            str(path),
            f"--time-stamp-precision={'nano' if nanoseconds else 'micro'}",
            expression,
        ]
        self._log = path.with_suffix(".tcpdump.log")
        self._process: OwnedProcess | None = None

    def __enter__(self) -> Capture:
        self._log.unlink(missing_ok=True)
        self._process = OwnedProcess(self._command, self._log)

        def listening() -> bool:
            assert self._process is not None
            if self._process.returncode is not None:
                raise Unavailable(self._process.describe("cannot capture"))
            return "listening on" in self._log.read_text(errors="replace")

        wait_until("tcpdump listens", listening, 10.0)
        return self

    def __exit__(self, _: object, error: BaseException | None, *rest: object) -> None:
        assert self._process is not None
        time.sleep(SETTLE_SECONDS)
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(10.0)
        finally:
            self._process.kill()
        text = self._log.read_text(errors="replace")
        self._log.unlink()
        dropped = re.search(r"(\d+) packets dropped by kernel", text)
        if error is None and dropped and int(dropped[1]):
            raise RuntimeError(f"{self.path.name}: the kernel dropped {dropped[1]} packets")


def tcpdump() -> str:
    """Path of tcpdump; raises `Unavailable` where there is none."""
    found = find("tcpdump")
    if found is None:
        raise Unavailable("no tcpdump on this machine")
    return found

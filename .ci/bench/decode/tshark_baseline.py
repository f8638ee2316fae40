"""tshark as a baseline: how it is started with the benchmark's Lua dissector.

Some builds do not run Lua scripts for root. Then tshark is started under another user, which needs
a capture that user can read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from .verify import SEPARATOR

DISSECTOR = Path(__file__).with_name("rocketmq.lua")
TSHARK_FIELDS = (
    "frame.number", "frame.time_epoch", "rmqbench.code", "rmqbench.opaque", "rmqbench.flag",
    "rmqbench.language", "rmqbench.version", "rmqbench.remark", "rmqbench.topic",
    "rmqbench.group", "rmqbench.queue", "rmqbench.key", "rmqbench.header_length",
    "rmqbench.body_length",
)  # fmt: skip
BARE = ("env", "HOME=/nonexistent")
"""without plugins and preferences of the user, our own dissector among them"""
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *BARE)


def tshark_missing() -> str:
    """Return why tshark cannot be used, or an empty text."""
    return "" if shutil.which("tshark") else "tshark is not installed"


@cache
def lua_prefix() -> tuple[str, ...] | None:
    """Return what must stand before `tshark` for Lua scripts to run, or None if nothing helps."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        script = Path(folder) / "probe.lua"
        script.write_text('io.stderr:write("lua runs\\n")\n')
        script.chmod(0o644)
        for prefix in (BARE, NOBODY):
            if not shutil.which(prefix[0]):
                continue
            command = [*prefix, "tshark", "-X", f"lua_script:{script}", "-v"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if "lua runs" in done.stdout + done.stderr:
                return prefix
    return None


def lua_missing() -> str:
    """Return why tshark with Lua cannot be used, or an empty text."""
    if tshark_missing():
        return tshark_missing()
    return "" if lua_prefix() is not None else "this tshark does not run Lua scripts"


def summary_command(capture: Path, reassemble: bool) -> list[str]:
    """Return the command that prints one line per packet and decodes no RocketMQ.

    With reassembly, tshark's default, its guesses at protocols (SMPP and DICOM) take some RocketMQ
    bytes for their own and wait for endless PDUs: on a million packets that is eight times slower
    and grows with the square of the size. Without, the same lines come out in linear time.
    """
    switch = "TRUE" if reassemble else "FALSE"
    return [
        *BARE, "tshark", "-n", "-r", str(capture), "-o", f"tcp.desegment_tcp_streams:{switch}",
    ]  # fmt: skip


def lua_command(capture: Path) -> list[str]:
    """Return the command that prints `TSHARK_FIELDS` of every packet."""
    fields = [word for name in TSHARK_FIELDS for word in ("-e", name)]
    return [
        *(lua_prefix() or ()), "tshark", "-n", "-r", str(capture),
        "-X", f"lua_script:{DISSECTOR}", "-o", "tcp.reassemble_out_of_order:TRUE",
        "-T", "fields", "-E", f"aggregator={SEPARATOR}", "-E", "occurrence=a", *fields,
    ]  # fmt: skip

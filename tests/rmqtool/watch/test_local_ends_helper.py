"""The helper sees processes of other users after rights were given up, and nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.tools import find

from ..command import ROOT

pytestmark = pytest.mark.slow
SERVER = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""
ASKING = """
import sys
from dissectors.live.privileges import give_up
from rmqtool.watch.local_ends import EndsHelper
from rmqtool.watch.local_ends import LocalEnds
helper = EndsHelper()
give_up(None)
ends = [("192.0.2.1:5", f"127.0.0.1:{sys.argv[1]}")]
print(LocalEnds().of(ends)[0].pid, helper.of(ends)[0].pid)
helper.close()
print(len(helper.of(ends)))
"""


def test_a_helper_names_processes_of_other_users() -> None:
    program = find("setpriv")
    if program is None or os.geteuid() != 0:
        pytest.skip("setpriv is not installed, or this is not root")
    rights = ["--reuid", "65534", "--regid", "65534", "--clear-groups"]
    with subprocess.Popen(
        [program, *rights, sys.executable, "-I", "-S", "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdout is not None
        port = server.stdout.readline().decode().strip()
        done = subprocess.run(
            [sys.executable, "-c", ASKING, port],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        server.terminate()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["None", str(server.pid), "1"]


def test_without_rights_the_helper_sees_what_all_may_see() -> None:
    code = (
        "from rmqtool.watch.local_ends import EndsHelper\n"
        "helper = EndsHelper()\n"
        "print([one.text for one in helper.of([('192.0.2.1:5', '127.0.0.1:1')])])\n"
        "helper.close()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "['server 127.0.0.1:1: process unknown']\n"

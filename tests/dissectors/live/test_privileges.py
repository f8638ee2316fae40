"""Rights are given up once the interface is open: read from the kernel, of a running capture."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from dissectors.live.interface import LiveError
from dissectors.live.privileges import Account, account_of
from tests.dissectors.live.test_interface import needs_filter, needs_right
from tests.patience import wait_for
from tests.rmqtool.live.test_command import ENVIRONMENT, settle
from tests.rmqtool.live_traffic import Wire
from tests.traffic.commands import send, sent

ROOT = Path(__file__).resolve().parents[3]
NOBODY = pwd.getpwnam("nobody")
SYSTEM_PYTHON = "/usr/bin/python3"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
_NONE = dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapAmb"), "0000000000000000")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may write in; those of pytest are closed to others."""
    path = Path(tempfile.mkdtemp(dir="/tmp"))
    path.chmod(0o777)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def _python_for_all() -> list[str]:
    """A Python of the same version that others can read, and its way to rmqtool; else a skip."""
    asked = "import sys; print(*sys.version_info[:2])"
    if Path(SYSTEM_PYTHON).exists():
        said = subprocess.run([SYSTEM_PYTHON, "-c", asked], capture_output=True, text=True).stdout
        if said.split() == [*map(str, sys.version_info[:2])]:
            return [SYSTEM_PYTHON, "-P", "-m", "rmqtool"]
    pytest.skip("no Python of this version that others can read")


def _paths_for_all() -> str:
    """What is imported here, without what only root can read."""
    return os.pathsep.join([str(ROOT), *(one for one in sys.path if "site-packages" in one)])


def status_of(process: int) -> dict[str, str]:
    """What the kernel says of a process."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@contextmanager
def running(
    command: list[str], folder: Path, more: Mapping[str, str] = {}
) -> Iterator[subprocess.Popen[bytes]]:
    """A capture that has given up its rights, or has ended."""
    environment = {**ENVIRONMENT, "PYTHONPATH": _paths_for_all(), **more}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe) as one:
        try:
            wait_for(
                "it gave up its rights",
                lambda: one.poll() is not None or status_of(one.pid).get("NoNewPrivs") == "1",
            )
            if one.poll() is None:
                settle(one)
            yield one
        finally:
            if one.poll() is None:
                one.kill()


def captured(
    command: list[str], folder: Path, more: Mapping[str, str] = {}
) -> tuple[dict[str, str], str]:
    """Capture an exchange with `command`; what the kernel said of it meanwhile, and its errors."""
    wire = Wire()
    rows = ["-f", f"tcp port {wire.port}", "-o", "rows.jsonl", "-w", "kept.pcapng"]
    with running([*command, "decode", "live", "-i", "lo", *rows], folder, more) as one:
        assert one.poll() is None, one.communicate()
        said = status_of(one.pid)
        for task in Path(f"/proc/{one.pid}/task").iterdir():
            fields = status_of(int(task.name))
            assert _NONE.items() <= fields.items()
        wire.say(send(1).frame, sent(1).frame)
        settle(one)
        one.send_signal(signal.SIGINT)
        _, errors = one.communicate(timeout=60)
        assert one.returncode == 0, errors
    wire.close()
    assert b'"SEND_MESSAGE_V2"' in (folder / "rows.jsonl").read_bytes()
    assert (folder / "kept.pcapng").stat().st_size > 100
    assert _NONE.items() <= said.items()
    assert said["NoNewPrivs"] == "1"
    return said, errors.decode()


def _owners(folder: Path) -> set[int]:
    return {path.stat().st_uid for path in folder.iterdir()}


@pytest.mark.slow
@needs_filter
@as_root
def test_root_keeps_its_name_and_no_capability(folder: Path) -> None:
    said, errors = captured([sys.executable, "-P", "-m", "rmqtool"], folder)
    assert said["Uid"].split() == ["0"] * 4
    assert said["CapBnd"] == "0000000000000000"
    assert errors.startswith("rmqtool: opened lo as root, then dropped capabilities; ")
    assert _owners(folder) == {0}


@pytest.mark.slow
@needs_filter
@as_root
@pytest.mark.parametrize("how", ["sudo", "--user"])
def test_it_runs_as_who_called_sudo(folder: Path, how: str) -> None:
    command = _python_for_all()
    if how == "sudo":
        called = {"SUDO_UID": str(NOBODY.pw_uid), "SUDO_GID": str(NOBODY.pw_gid)}
        said, errors = captured(command, folder, called)
    else:
        shim = folder / "run"
        shim.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@" --user nobody\n')
        shim.chmod(0o755)
        said, errors = captured([str(shim)], folder)
        shim.unlink()
    assert said["Uid"].split() == [str(NOBODY.pw_uid)] * 4
    assert said["Gid"].split() == [str(NOBODY.pw_gid)] * 4
    assert "0" not in said["Groups"].split()
    assert said["CapBnd"] == "0000000000000000"
    assert "rmqtool: opened lo as root; now running as nobody\n" in errors
    assert _owners(folder) == {NOBODY.pw_uid}


@pytest.mark.slow
@needs_filter
@as_root
def test_a_user_with_one_capability_keeps_none(folder: Path) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    ids = [f"--reuid={NOBODY.pw_uid}", f"--regid={NOBODY.pw_gid}", "--clear-groups"]
    rights = ["--inh-caps=+net_raw", "--ambient-caps=+net_raw"]
    said, errors = captured(["setpriv", *ids, *rights, *_python_for_all()], folder)
    assert said["Uid"].split() == [str(NOBODY.pw_uid)] * 4
    assert "root" not in errors


@pytest.mark.slow
@needs_filter
@as_root
def test_a_python_with_a_file_capability_keeps_none(folder: Path) -> None:
    if shutil.which("setcap") is None or shutil.which("setpriv") is None:
        pytest.skip("setcap or setpriv is not installed")
    program, *arguments = _python_for_all()
    copy = folder / "python"
    shutil.copy(program, copy)
    done = subprocess.run(["setcap", "cap_net_raw+ep", copy], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no file capabilities here: {done.stderr.strip()}")
    ids = [f"--reuid={NOBODY.pw_uid}", f"--regid={NOBODY.pw_gid}", "--clear-groups"]
    captured(["setpriv", *ids, str(copy), *arguments], folder)


@pytest.mark.slow
@needs_filter
@as_root
def test_diagnose_gives_them_up_too(folder: Path) -> None:
    command = [sys.executable, "-P", "-m", "rmqtool", "diagnose", "-i", "lo", "-f", "tcp port 1"]
    with running(command, folder) as one:
        said = status_of(one.pid)
        one.send_signal(signal.SIGINT)
        _, errors = one.communicate(timeout=60)
    assert _NONE.items() <= said.items()
    assert errors.startswith(b"rmqtool: opened lo as root, ")


@pytest.mark.slow
@needs_right
@as_root
def test_a_program_that_the_user_cannot_read_is_refused(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    path = {"PYTHONPATH": f"{_paths_for_all()}:{closed}"}
    called = {"SUDO_UID": str(NOBODY.pw_uid), "SUDO_GID": str(NOBODY.pw_gid)}
    command = [*_python_for_all(), "decode", "live", "-i", "lo"]
    with running(command, folder, {**path, **called}) as one:
        _, errors = one.communicate(timeout=60)
    assert one.returncode == 1
    assert errors.decode() == (
        f"rmqtool: live capture: nobody cannot read what this program is made of ({closed})\n"
        "  install it where all can read it, or give --user root\n"
    )


@as_root
@pytest.mark.parametrize(
    ("environment", "account"),
    [
        ({}, None),
        ({"SUDO_UID": "0", "SUDO_GID": "0"}, None),
        ({"SUDO_UID": "1"}, None),
        ({"SUDO_UID": "²", "SUDO_GID": "1"}, None),
        ({"SUDO_UID": "-1", "SUDO_GID": "-1"}, None),
        ({"SUDO_UID": str(1 << 32), "SUDO_GID": "1"}, None),
        ({"SUDO_UID": "4242424", "SUDO_GID": "7"}, Account("4242424", 4242424, 7)),
        (
            {"SUDO_UID": str(NOBODY.pw_uid), "SUDO_GID": str(NOBODY.pw_gid)},
            Account("nobody", NOBODY.pw_uid, NOBODY.pw_gid),
        ),
    ],
)
def test_who_called_sudo(environment: dict[str, str], account: Account | None) -> None:
    assert account_of(None, environment) == account


def test_a_user_that_is_none_is_said() -> None:
    assert account_of("root", {}) == Account("root", 0, 0)
    for name in ("nosuch", "", "a\0b"):
        with pytest.raises(LiveError, match="there is no user"):
            account_of(name, {})

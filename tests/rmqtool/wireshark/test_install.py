"""`rmqtool wireshark`: written, installed where tshark looks, and nobody else's file touched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dissectors.wireshark import FILE_NAME, SIGNATURE, lua_text
from rmqtool import __version__
from rmqtool.ui.status import ExitStatus
from rmqtool.wireshark.install import plugin_folder

from ..command import ROOT, Result, process, rmqtool

TEXT = lua_text(__version__)
FOREIGN = "-- my own dissector\nlocal p = Proto('rocketmq', 'mine')\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def run(home: Path, *arguments: str | Path) -> Result:
    """Without tshark, so that the folder does not depend on the machine."""
    return rmqtool("wireshark", *arguments, HOME=str(home), PATH=str(home))


def installed(home: Path) -> Path:
    return home / ".local" / "lib" / "wireshark" / "plugins" / FILE_NAME


@pytest.mark.slow
def test_to_standard_output() -> None:
    result = process("wireshark")
    assert (result.status, result.out, result.err) == (ExitStatus.OK, TEXT, "")
    assert TEXT.startswith(f"{SIGNATURE} {__version__}\n")


@pytest.mark.slow
def test_a_reader_that_has_seen_enough() -> None:
    done = subprocess.run(
        '"$PYTHON" -m rmqtool wireshark | head -1',
        shell=True,
        cwd=ROOT,
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == TEXT.splitlines()[0] + "\n"
    assert done.stderr == b""


def test_to_a_file(home: Path) -> None:
    path = home / "any.lua"
    assert run(home, "-o", path) == Result(ExitStatus.OK, "", "")
    assert path.read_text() == TEXT
    older = TEXT.splitlines()[0] + " and older\n"
    path.write_text(older)
    refused = run(home, "-o", path)
    assert refused.status == ExitStatus.USAGE
    assert "already exists\n  add --force to replace it" in refused.err
    assert path.read_text() == older
    assert run(home, "-o", path, "--force").status == ExitStatus.OK
    assert path.read_text() == TEXT
    assert os.listdir(home) == ["any.lua"]


def test_a_file_of_somebody_else_stays(home: Path) -> None:
    path = installed(home)
    path.parent.mkdir(parents=True)
    path.write_text(FOREIGN)
    for arguments in (("--install",), ("--uninstall",), ("-o", path)):
        result = run(home, *arguments)
        assert result.status == ExitStatus.FAILURE
        assert result.out == ""
        assert "was not written by rmqtool" in result.err
        assert path.read_text() == FOREIGN
    assert os.listdir(path.parent) == [FILE_NAME]


def test_an_empty_file_is_nobodys(home: Path) -> None:
    path = home / "any.lua"
    path.touch()
    assert run(home, "-o", path, "--force").status == ExitStatus.OK
    assert path.read_text() == TEXT


def test_there_and_back(home: Path) -> None:
    path = installed(home)
    result = run(home, "--install")
    assert result.status == ExitStatus.OK
    assert result.out.startswith(f"{path} written\n")
    assert path.read_text() == TEXT
    assert run(home, "--install").out.startswith(f"{path} is already up to date\n")
    assert run(home, "--uninstall").out == f"{path} removed\n"
    assert not path.exists()
    again = run(home, "--uninstall")
    assert again == Result(ExitStatus.OK, f"{path} does not exist: nothing to remove\n", "")


def test_a_rival_is_named(home: Path) -> None:
    rival = installed(home).with_name("other.lua")
    rival.parent.mkdir(parents=True)
    rival.write_text(FOREIGN)
    (rival.parent / "peaceful.lua").write_text("local p = Proto('kafkaish', 'x')")
    result = run(home, "--install")
    assert result.status == ExitStatus.OK
    assert f"{rival} declares the same protocol" in result.err
    assert "peaceful" not in result.err
    assert rival.read_text() == FOREIGN


@pytest.mark.parametrize(
    "arguments",
    [("--install", "--uninstall"), ("--install", "-o", "-"), ("--uninstall", "-o", "x.lua")],
)
def test_one_thing_at_a_time(home: Path, arguments: tuple[str, ...]) -> None:
    result = run(home, *arguments)
    assert result.status == ExitStatus.USAGE
    assert "cannot be combined" in result.err
    assert os.listdir(home) == []


def test_a_folder_that_cannot_be_made(home: Path) -> None:
    (home / ".local").write_text("a file")
    result = run(home, "--install")
    assert result.status == ExitStatus.FAILURE
    assert "Traceback" not in result.err
    assert "cannot be written" in result.err


def test_help_has_examples() -> None:
    result = rmqtool("wireshark", "--help")
    assert result.status == ExitStatus.OK
    assert "rmqtool wireshark --install" in result.out


@pytest.mark.slow
@pytest.mark.tshark
def test_where_tshark_looks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tshark loads what was installed without being told of it."""
    monkeypatch.setenv("HOME", str(home))
    assert str(home) in str(plugin_folder())
    assert rmqtool("wireshark", "--install").status == ExitStatus.OK
    assert (plugin_folder() / FILE_NAME).read_text() == TEXT
    done = subprocess.run(
        ["tshark", "-G", "protocols"], capture_output=True, check=False, text=True
    )
    if "rocketmq" not in done.stdout and os.geteuid() == 0:
        pytest.skip("this tshark does not run Lua scripts for root")
    assert "RocketMQ Remoting\tROCKETMQ\trocketmq" in done.stdout
    assert rmqtool("wireshark", "--uninstall").status == ExitStatus.OK

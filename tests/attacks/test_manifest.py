"""A decoded log from somebody else: its files are regular files inside of it, and nothing else."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rmqtool
from rmqtool.errors import ReadError
from tests.expected import SAMPLES
from tests.rmqtool.command import rmqtool as run

LONGEST = 60
"""seconds; who opens a pipe waits for ever"""
FORMS = ("parquet", "jsonl")


@pytest.fixture(autouse=True)
def _no_wait() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(LONGEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=FORMS)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A decoded log of a sample."""
    pytest.importorskip("pyspark")
    folder = tmp_path / "log"
    form = request.param
    done = run("decode", "pcap", SAMPLES / "push-retry-dlq-5x.pcap", "-T", form, "-o", f"{folder}/")
    assert done.status == 0, done.err
    return folder


def _outside(log: Path, part: Path) -> str:
    part.rename(log.parent / part.name)
    return str(log.parent / part.name)


def _above(log: Path, part: Path) -> str:
    return "../" + Path(_outside(log, part)).name


def _device(log: Path, part: Path) -> str:
    return "/dev/zero"


def _device_above(log: Path, part: Path) -> str:
    return os.path.relpath("/dev/zero", log)


def _pipe(log: Path, part: Path) -> str:
    part.unlink()
    os.mkfifo(part)
    return str(part.relative_to(log))


def _link(log: Path, part: Path) -> str:
    part.symlink_to(_outside(log, part))
    return str(part.relative_to(log))


def _link_to_device(log: Path, part: Path) -> str:
    part.unlink()
    part.symlink_to("/dev/zero")
    return str(part.relative_to(log))


def _linked_folder(log: Path, part: Path) -> str:
    part.parent.rename(log.parent / "elsewhere")
    part.parent.symlink_to(log.parent / "elsewhere")
    return str(part.relative_to(log))


def _folder(log: Path, part: Path) -> str:
    return str(part.parent.relative_to(log))


def _nothing(log: Path, part: Path) -> str:
    return ""


def _zero_byte(log: Path, part: Path) -> str:
    return str(part.relative_to(log)) + "\0"


PLACES = (
    *(_outside, _above, _device, _device_above, _pipe, _link, _link_to_device, _linked_folder),
    *(_folder, _nothing, _zero_byte),
)


def refused(log: Path) -> None:
    """Every reader refuses the log with a reason."""
    for command in (["diagnose", log], ["trace", log, "K0"], ["report", "latency", log]):
        done = run(*command)
        assert done.status == 1, done.out
        assert "inside the decoded log" in done.err or "not a file of the log" in done.err
        assert "Traceback" not in done.err
    with pytest.raises(ReadError):
        rmqtool.read(str(log))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("table", ["parts", "message_parts"])
def test_parts_are_regular_files_of_the_log(
    log: Path, table: str, place: Callable[[Path, Path], str]
) -> None:
    path = log / "manifest.json"
    manifest = json.loads(path.read_text())
    part = manifest[table][0]
    part["file"] = place(log, log / part["file"])
    path.write_text(json.dumps(manifest))
    refused(log)


@pytest.mark.parametrize("place", [_pipe, _link, _link_to_device])
@pytest.mark.parametrize("table", ["conversations", "findings"])
def test_tables_beside_them_are_regular_files(
    log: Path, table: str, place: Callable[[Path, Path], str]
) -> None:
    (file,) = log.glob(f"{table}.*")
    place(log, file)
    refused(log)


@pytest.mark.parametrize("place", [_pipe, _link, _link_to_device])
def test_the_manifest_is_a_regular_file(log: Path, place: Callable[[Path, Path], str]) -> None:
    place(log, log / "manifest.json")
    for command in (["diagnose", log], ["trace", log, "K0"], ["report", "latency", log]):
        done = run(*command)
        assert done.status == 1, done.out
        assert "Traceback" not in done.err
    with pytest.raises(ReadError):
        list(rmqtool.read(str(log)).exchanges())

"""Runs rmqtool for tests: in this process, or as a user starts it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from typer import testing

from tests.traffic.captures import pcap_of
from tests.traffic.commands import HEART_BEAT, Command, route_query, send, sent
from tests.traffic.talk import MILLISECOND, SECOND, End, Talk, merged

ROOT = Path(__file__).resolve().parents[2]
EVIL = "\x1b[2J[red]evil\n\u202e\x9b="
_CODE = """
from tests.pure import import_sources, wants_sources
if wants_sources():
    import_sources()
from rmqtool.cli import main
main()
"""
PROGRAM = [sys.executable, "-c", _CODE]
"""rmqtool as a process, of the implementation that is tested"""
NAMESRV = End("10.0.0.9", 9876)
# The commands are made from their functions once, not for each run.
testing._get_command = cache(testing._get_command)


class Result(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


def rmqtool(*arguments: str | Path, **environment: str) -> Result:
    """Run in this process; standard output is not a terminal."""
    from rmqtool.cli import app

    env: dict[str, str | None] = {"COLUMNS": None, **environment}
    result = testing.CliRunner().invoke(app, [str(part) for part in arguments], env=env)
    return Result(result.exit_code, result.stdout, result.stderr)


def process(*arguments: str | Path, **environment: str) -> Result:
    """Run as a process of its own."""
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        capture_output=True,
        cwd=ROOT,
        env=os.environ | environment,
        check=False,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def talk_to_broker() -> Talk:
    """Two sends, one refused with an evil remark, one oneway, one unanswered, a request back."""
    talk = Talk().open()
    talk.say(0, send(1).frame).wait(2 * MILLISECOND).say(1, sent(1, 4711).frame)
    evil = send(2)
    evil = replace(evil, ext=evil.ext | {"b": EVIL, "i": "KEYS\x01=1+1\x02"})
    talk.say(0, evil.frame).wait(SECOND)
    talk.say(1, Command(2, 2, 1, remark=f"[TIMEOUT_CLEAN_QUEUE]broker busy {EVIL}").frame)
    talk.say(0, Command(15, 3, 2, ext={"topic": "Orders", "queueId": "1"}).frame)
    talk.say(1, Command(40, 77, 2, ext={"consumerGroup": "readers"}, language="JAVA").frame)
    talk.say(0, Command(HEART_BEAT, 4, body=b'{"clientID":"10.0.0.5@1"}', language="GO").frame)
    talk.say(0, Command(9999, 5, ext={"AccessKey": "rocketmq-key", "Signature": "abc="}).frame)
    talk.say(1, Command(3, 5, 1, remark="not supported").frame)
    return talk.close()


def talk_to_namesrv() -> Talk:
    """A route query and its answer."""
    query = route_query(9)
    talk = Talk(End("10.0.0.5", 40000), NAMESRV, isn=(7, 9), at=talk_to_broker().now).open()
    return talk.say(0, query.frame).say(1, query.answer(0, body=b"{}").frame).close()


def capture_in(folder: Path, name: str = "a.pcap") -> Path:
    """Write a capture with both conversations."""
    path = folder / name
    path.write_bytes(pcap_of(merged(talk_to_broker(), talk_to_namesrv())))
    return path


def full_after(room: int) -> Callable[[], None]:
    """Return what makes files of a new process end at so many bytes, as on a full disk.

    The process writes no bytecode: Python keeps a file of it that was cut short.
    """

    def limit() -> None:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    return limit

"""What a target says cannot steer the terminal, in any form of the result."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from dissectors.remoting.command import RESPONSE_FLAG, RemotingCommand
from replay.wire.request import encode_command
from tests.replay.responder import Responder, Serve, answer, responding
from tests.replay.script import route_body
from tests.rmqtool.command import EVIL, ROOT, rmqtool

SAMPLE = ROOT / "samples" / "send-sync-5x.pcap"


def _refusing(code: int) -> Serve:
    """Answer with a code, and evil texts wherever a broker has a choice."""

    def serve(connection: socket.socket, command: RemotingCommand, _: bytes) -> None:
        reply = RemotingCommand(code, command.opaque, RESPONSE_FLAG, EVIL, 479, EVIL, {EVIL: EVIL})
        connection.sendall(encode_command(reply, EVIL.encode()))

    return serve


def _storing(connection: socket.socket, command: RemotingCommand, _: bytes) -> None:
    fields = {"msgId": EVIL, "queueId": "0", "queueOffset": "7", "transactionId": EVIL}
    answer(connection, command, 0, fields)


def _naming(target: Responder) -> Serve:
    """Answer route queries with an evil broker name and an evil address."""

    def serve(connection: socket.socket, command: RemotingCommand, _: bytes) -> None:
        brokers = {EVIL: target.address, "other": f"{EVIL}:1"}
        answer(connection, command, 0, {}, route_body(brokers))

    return serve


@pytest.mark.parametrize("serve", [_refusing(2), _refusing(99_999), _storing])
@pytest.mark.parametrize("form", ["table", "jsonl"])
@pytest.mark.parametrize("command", ["send", "replay", "raw"])
def test_an_evil_target(tmp_path: Path, command: str, form: str, serve: Serve) -> None:
    with responding() as target:
        target.serve, target.serve_route = serve, _naming(target)
        options = ["-n", target.address, "--color", "never"]
        options += ["--format", form]
        if command == "send":
            done = rmqtool("send", "--topic", "T", "--body", "x", "--verbose", *options)
        else:
            mode = ["--mode", "raw"] if command == "raw" else ["--retries", "0"]
            journal = ["-o", str(tmp_path / "run"), "--top-speed"]
            done = rmqtool("replay", SAMPLE, *options, *mode, *journal)
        assert target.received, done.err
    shown = (done.out + done.err).replace("\n", "")
    assert shown.isprintable(), [char for char in shown if not char.isprintable()]
    assert "should not have happened" not in done.err
    if form == "jsonl":
        assert [json.loads(line) for line in done.out.splitlines()]

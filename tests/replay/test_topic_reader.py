"""The reader of a topic, at a broker that says what a test wants."""

from __future__ import annotations

import json
import socket

import pytest

from dissectors.remoting.command import RemotingCommand
from replay.config import ProducerConfig
from replay.topic_reader import TopicReader

from .responder import Responder, answer, responding


@pytest.mark.parametrize(
    ("members", "expected"),
    [(["b", "a", 5], ["a", "b"]), (5, []), ("abc", []), ({"a": 1}, []), (None, [])],
)
def test_groups_are_those_of_a_list(
    monkeypatch: pytest.MonkeyPatch, members: object, expected: list[str]
) -> None:
    other = Responder._answer

    def respond(
        self: Responder, connection: socket.socket, command: RemotingCommand, body: bytes
    ) -> None:
        if command.code == 300:
            answer(connection, command, 0, {}, json.dumps({"groupList": members}).encode())
        else:
            other(self, connection, command, body)

    monkeypatch.setattr(Responder, "_answer", respond)
    with responding() as one, TopicReader(ProducerConfig("g", one.address)) as reader:
        assert reader.groups("T", reader.route("T")) == expected

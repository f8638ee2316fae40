"""A slip of ours, in whatever serves a request: it is answered, told, and ends nothing."""

from __future__ import annotations

from typing import cast

import pytest

from dissectors.remoting.codes import ResponseCode
from replay.sandbox import (
    EventKind,
    Sandbox,
    SandboxEvent,
    SandboxOptions,
    SandboxThread,
    sandbox_thread,
)
from replay.sandbox.namesrv import NAME
from replay.sandbox.request import ReceivedRequest
from replay.sandbox.server import HandlerResponse
from replay.sandbox.service import SandboxServer

from .talk import Talk

CODE = 29


def fails(request: ReceivedRequest) -> HandlerResponse:
    raise RecursionError("a slip")


def let_fail(box: SandboxThread, is_namesrv: bool) -> None:
    """Whoever serves the connection that is open fails at `CODE`."""

    def change(sandbox: Sandbox) -> None:
        (one,) = sandbox.hub.connections
        assert (one.service.name == NAME) is is_namesrv
        cast(SandboxServer, one.service).handlers[CODE] = fails

    box.call(change)


@pytest.mark.parametrize("is_namesrv", [False, True])
def test_it_is_answered_and_the_connection_goes_on(is_namesrv: bool) -> None:
    events: list[SandboxEvent] = []
    with (
        sandbox_thread(SandboxOptions(on_event=events.append)) as box,
        Talk(box.namesrv if is_namesrv else box.addresses["broker-a"]) as talk,
    ):
        talk.ask(9999)
        let_fail(box, is_namesrv)
        reply = talk.ask(CODE)
        assert (reply.code, reply.remark) == (ResponseCode.SYSTEM_ERROR, "RecursionError")
        assert talk.ask(9999).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    (told,) = [event for event in events if event.kind is EventKind.INTERNAL]
    assert "a slip" in told.detail

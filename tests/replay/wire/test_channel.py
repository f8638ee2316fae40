"""The connections of one client."""

from __future__ import annotations

from replay.errors import SendTimeoutError
from replay.wire.request import plain_request
from replay.wire.steps import Invoke

from ..script import HEARTBEAT, Bench


def test_a_request_that_is_too_late_leaves_no_channel() -> None:
    bench = Bench()
    channels = bench.client.channels
    for number in range(3):
        late = Invoke(f"10.0.2.{number}:1", plain_request(bench.config, HEARTBEAT, {}), 0, True)
        assert isinstance(bench.run(channels.ask(late)).error, SendTimeoutError)
    assert channels.open_count == 0

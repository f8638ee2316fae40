"""A sandbox with two brokers, and a connection to one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from replay.sandbox import SandboxOptions, SandboxThread, TopicSpec, sandbox_thread

from .requests import TOPIC
from .talk import Talk


@pytest.fixture
def box() -> Iterator[SandboxThread]:
    options = SandboxOptions(
        topics=[TopicSpec(TOPIC, 2)],
        delay_levels="100ms 200ms 300ms",
        transaction_timeout_ms=100,
        transaction_interval_ms=200,
    )
    with sandbox_thread(options) as running:
        yield running


@pytest.fixture
def broker(box: SandboxThread) -> Iterator[Talk]:
    with Talk(box.addresses["broker-a"]) as talk:
        yield talk

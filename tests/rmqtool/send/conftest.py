"""A sandbox to send to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from replay.sandbox import SandboxOptions, SandboxThread, TopicSpec, sandbox_thread


@pytest.fixture(scope="module")
def box() -> Iterator[SandboxThread]:
    """Two brokers with a topic on both."""
    with sandbox_thread(SandboxOptions(brokers=2, topics=[TopicSpec("T", 2)])) as started:
        yield started

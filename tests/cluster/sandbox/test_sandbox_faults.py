"""What the sandbox breaks, the real Java producer takes for what it is meant to be."""

from __future__ import annotations

import pytest

from replay.sandbox import SandboxOptions, TopicSpec, injection_of_text, sandbox_thread
from tests.cluster.clients.clients import run_java
from tests.cluster.fixtures import require_jars
from tests.cluster.servers.artifacts import NEWEST_5

pytestmark = pytest.mark.cluster

TOPIC = "SampleTopic"


@pytest.mark.parametrize(
    ("fault", "failed", "on_b"),
    [
        # Codes that Java sends again: every message ends on the other broker.
        ("busy broker=broker-a", 0, 10),
        ("disk-full broker=broker-a", 0, 10),
        ("error=16 broker=broker-a", 0, 10),
        ("read-only broker=broker-a", 0, 10),
        ("leave-route broker=broker-a", 0, 10),
        # A lost connection is an error that Java sends again too.
        ("drop broker=broker-a", 0, 10),
        ("down requests=all broker=broker-a", 0, 10),
        # Codes that it does not send again; ten messages, round robin over two brokers.
        ("error=13 times=3", 6, None),
        # Stored, although the answer says that the disk was slow: no failure for Java.
        ("error=10 stored=true", 0, None),
    ],
)
def test_a_java_producer_under_a_fault(fault: str, failed: int, on_b: int | None) -> None:
    require_jars([NEWEST_5])
    options = SandboxOptions(
        brokers=2, topics=[TopicSpec(TOPIC)], injections=[injection_of_text(fault)], seed=1
    )
    with sandbox_thread(options) as box:
        printed = run_java("Send", box.namesrv, count=10, may_fail=True, timeout_ms=20_000)
        stored = box.call(
            lambda sandbox: {
                name: broker.state.messages_in for name, broker in sandbox.brokers.items()
            }
        )
    outcomes = [
        line.split()[0]
        for line in printed.splitlines()
        if line.startswith(("SEND_OK", "FLUSH_DISK_TIMEOUT", "failed"))
    ]
    assert len(outcomes) == 10
    assert outcomes.count("failed") == failed
    assert sum(stored.values()) == 10 - failed
    if on_b is not None:
        assert stored["broker-b"] == on_b
    if "stored" in fault:
        assert set(outcomes) == {"FLUSH_DISK_TIMEOUT"}


def test_no_answer_is_a_timeout_of_java() -> None:
    require_jars([NEWEST_5])
    options = SandboxOptions(
        topics=[TopicSpec(TOPIC)], injections=[injection_of_text("silent stored=true times=1")]
    )
    with sandbox_thread(options) as box:
        printed = run_java("Send", box.namesrv, count=2, may_fail=True)
        stored = box.call(lambda sandbox: sandbox.brokers["broker-a"].state.messages_in)
    assert "failed RemotingTooMuchRequestException" in printed or "Timeout" in printed
    assert printed.count("SEND_OK") == 1
    assert stored == 2  # what the producer believes lost is there

"""What a sandbox with a file still knows after it ended, and after it was killed."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dissectors.remoting.messages.records import decode_messages
from replay.sandbox import (
    EventKind,
    Sandbox,
    SandboxError,
    SandboxEvent,
    SandboxOptions,
    TopicSpec,
    sandbox_thread,
)
from tests.patience import wait_for

from ..talk import Talk, heartbeat, pull_fields, send_fields

ROOT = Path(__file__).resolve().parents[4]
TOPIC = "Orders"


def options(path: Path, **more: object) -> SandboxOptions:
    return SandboxOptions(
        store=path,
        topics=[TopicSpec(TOPIC)],
        delay_levels="1s",
        transaction_timeout_ms=50,
        transaction_interval_ms=200,
        **more,  # type: ignore[arg-type]
    )


def bodies(broker: Talk, topic: str = TOPIC, offset: int = 0) -> list[bytes]:
    found = []
    while True:
        reply = broker.ask(11, pull_fields(topic, 0, offset))
        if reply.code != 0:
            return found
        found += [message.body for message in decode_messages(reply.body).messages]
        offset = int(reply.fields["nextBeginOffset"])


def test_only_the_user_may_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "box.db"
    with sandbox_thread(options(path)) as box, Talk(box.addresses["broker-a"]) as broker:
        assert broker.ask(310, send_fields(TOPIC), b"one").code == 0
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert {"box.db", "box.db-wal"} <= modes.keys()
    assert set(modes.values()) == {0o600}


@pytest.mark.slow
def test_all_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "box.db"
    with sandbox_thread(options(path)) as box, Talk(box.addresses["broker-a"]) as broker:
        first = broker.ask(310, send_fields(TOPIC, KEYS="k"), b"one")
        broker.ask(310, send_fields("Made"), b"two")
        broker.ask(310, send_fields(TOPIC, DELAY="1"), b"late")
        half = send_fields(TOPIC, TRAN_MSG="true", PGROUP="producers", UNIQ_KEY="H")
        broker.ask(310, half, b"half")
        offset = {"consumerGroup": "g", "topic": TOPIC, "queueId": "0"}
        broker.ask(15, {**offset, "commitOffset": "1"})
        group = {"groupName": "tuned", "retryMaxTimes": 3}
        assert broker.ask(200, body=json.dumps(group).encode()).code == 0
    with sandbox_thread(options(path)) as box, Talk(box.addresses["broker-a"]) as broker:
        assert bodies(broker)[0] == b"one"
        assert bodies(broker, "Made") == [b"two"]
        assert broker.ask(14, offset).fields == {"offset": "1"}
        view = broker.ask(33, {"offset": str(int(first.fields["msgId"][16:], 16))})
        assert decode_messages(view.body).messages[0].body == b"one"
        config = json.loads(broker.ask(352, {"group": "tuned"}).body)
        assert config["retryMaxTimes"] == 3
        with Talk(box.addresses["broker-a"]) as producer:
            producer.send(34, body=heartbeat("producer", producers=("producers",)))
            codes = {producer.receive().code, producer.receive().code}
            assert codes == {0, 39}  # the half message is asked for
        wait_for("both are there", lambda: bodies(broker) == [b"one", b"late"])
        assert broker.ask(310, send_fields(TOPIC), b"more").fields["queueOffset"] == "2"
    with sandbox_thread(options(path)) as box, Talk(box.addresses["broker-a"]) as broker:
        time.sleep(0.2)
        assert bodies(broker) == [b"one", b"late", b"more"]  # and not delivered twice


_PROGRAM = """
import sys, time
from pathlib import Path
from replay.sandbox import SandboxOptions, sandbox_thread
with sandbox_thread(SandboxOptions(store=Path(sys.argv[1]))) as box:
    print(box.addresses["broker-a"], flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_what_was_answered_survives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "box.db"
    command = [sys.executable, "-c", _PROGRAM, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        answered = []
        with Talk(address) as broker:
            for number in range(500):
                broker.send(310, send_fields(TOPIC), b"%d" % number, opaque=number)
            for _ in range(300):
                reply = broker.receive()
                assert reply.code == 0
                answered.append(b"%d" % reply.opaque)
            process.send_signal(signal.SIGKILL)
            process.wait(60)
    with sandbox_thread(options(path)) as box, Talk(box.addresses["broker-a"]) as broker:
        stored = bodies(broker)
    assert len(answered) == 300
    assert set(answered) <= set(stored)
    assert len(stored) == len(set(stored))


def test_offsets_go_on_after_messages_were_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "box.db"
    small = options(path, store_limit=20_000, drop_oldest=True)
    with sandbox_thread(small) as box, Talk(box.addresses["broker-a"]) as broker:
        broker.ask(310, send_fields("Made"), b"forgotten")
        for _ in range(100):
            assert broker.ask(310, send_fields(TOPIC), b"x" * 1000).code == 0
        low = broker.ask(31, {"topic": TOPIC, "queueId": "0"}).fields["offset"]
        assert 80 < int(low) < 100
    with sandbox_thread(small) as box, Talk(box.addresses["broker-a"]) as broker:
        queue = {"topic": TOPIC, "queueId": "0"}
        assert broker.ask(31, queue).fields["offset"] == low
        assert broker.ask(30, queue).fields["offset"] == "100"
        assert broker.ask(30, {"topic": "Made", "queueId": "0"}).fields["offset"] == "1"
        assert len(bodies(broker, offset=int(low))) == 100 - int(low)


def test_a_removed_topic_stays_removed(tmp_path: Path) -> None:
    path = tmp_path / "box.db"
    with sandbox_thread(options(path)) as box, Talk(box.addresses["broker-a"]) as broker:
        broker.ask(310, send_fields("Made"), b"old")
        broker.ask(215, {"topic": "Made"})
        assert broker.ask(310, send_fields("Made"), b"new").fields["queueOffset"] == "0"
    with sandbox_thread(options(path)) as box, Talk(box.addresses["broker-a"]) as broker:
        assert bodies(broker, "Made") == [b"new"]


def test_files_that_are_none_of_ours(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("certainly no database, whatever it is called " * 30)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    for path, reason in (
        (text, "not a database"),
        (other, "not a store of a sandbox"),
        (tmp_path / "no" / "folder.db", "cannot be opened"),
    ):
        with pytest.raises(SandboxError, match=reason), sandbox_thread(options(path)):
            pass
    assert text.read_text().startswith("certainly")


@pytest.mark.slow
def test_a_file_belongs_to_one_sandbox(tmp_path: Path) -> None:
    path = tmp_path / "box.db"
    first = sandbox_thread(options(path))
    with first, pytest.raises(SandboxError, match="in use"), sandbox_thread(options(path)):
        pass
    with sandbox_thread(options(path)):
        pass


def test_what_cannot_be_kept_is_not_answered(tmp_path: Path) -> None:
    path = tmp_path / "box.db"
    events: list[SandboxEvent] = []
    with sandbox_thread(options(path, on_event=events.append)) as box:
        address = box.addresses["broker-a"]
        with Talk(address) as broker:
            assert broker.ask(310, send_fields(TOPIC), b"kept").code == 0

            def commit() -> None:
                raise SandboxError("the disk is gone")

            def commit_by(commit: Callable[[], None] | None) -> Callable[[], None] | None:
                def change(sandbox: Sandbox) -> Callable[[], None] | None:
                    before, sandbox.hub.commit = sandbox.hub.commit, commit
                    return before

                return box.call(change)

            healthy = commit_by(commit)
            with pytest.raises(OSError, match=r"reset|ended"):
                broker.ask(310, send_fields(TOPIC), b"not kept")

        commit_by(healthy)
        with Talk(address) as broker:
            assert broker.ask(310, send_fields(TOPIC), b"kept again").code == 0
    told = [event.detail for event in events if event.kind is EventKind.INTERNAL]
    assert told == ["the disk is gone"]
    with sandbox_thread(options(path)) as box, Talk(box.addresses["broker-a"]) as broker:
        assert {b"kept", b"kept again"} <= set(bodies(broker))

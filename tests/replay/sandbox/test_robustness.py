"""Whatever a client sends: the sandbox lives on, answers or closes, and holds bounded memory."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.codes import RequestCode
from replay.sandbox import (
    EventKind,
    Sandbox,
    SandboxError,
    SandboxEvent,
    SandboxOptions,
    SandboxThread,
    TopicSpec,
    sandbox_thread,
)
from tests.expected import spread
from tests.patience import wait_for

from .talk import Talk, frame, heartbeat, pull_fields, send_fields

TOPIC = "Orders"
ODD = (
    *("²", "٣", "1_0", " 5", "9" * 5000, "--5", "+7"),
    *("DELAY\x01²\x02", "TRAN_MSG\x01true\x02CHECK_IMMUNITY_TIME_IN_SECONDS\x01²\x02"),
    *(
        f"TIMER_DELAY_SEC\x01{'9' * 5000}\x02",
        "RECONSUME_TIME\x01²\x02MAX_RECONSUME_TIMES\x01x\x02",
    ),
    *("", "0", "-1", "1", "9223372036854775807", "9223372036854775808", "x", "true", "Orders"),
    *("%RETRY%g", "%DLQ%g", "TBW102", "SCHEDULE_TOPIC_XXXX", "\x01\x02", "\ud800", "*", "null"),
    "KEYS\x01a b\x02TRAN_MSG\x01true\x02DELAY\x01x\x02",
    "DELAY\x01-5\x02TIMER_DELAY_MS\x01x",
)
BODIES = (b"", b"{}", b"[]", b"null", b"{", b'{"mqSet":[{"topic":1,"queueId":"x"}]}', b"\0" * 40)
SETTINGS = "".join(f"{name}={{0}}\n" for name in ("brokerPermission", "brokerId", "maxMessageSize"))


class Watched:
    """A sandbox and what it told."""

    def __init__(self) -> None:
        self.events: list[SandboxEvent] = []
        self.options = SandboxOptions(
            topics=[TopicSpec(TOPIC)],
            delay_levels="1s",
            on_event=self.events.append,
            server_version="5.3.3",
        )

    def slips(self) -> list[str]:
        return [event.detail for event in self.events if event.kind is EventKind.INTERNAL]


@pytest.fixture(scope="module")
def watched() -> Watched:
    return Watched()


@pytest.fixture(scope="module")
def box(watched: Watched) -> Iterator[SandboxThread]:
    with sandbox_thread(watched.options) as running:
        yield running


def lives(box: SandboxThread) -> None:
    """A send is stored and a route is given."""
    with Talk(box.addresses["broker-a"]) as broker, Talk(box.namesrv) as namesrv:
        assert broker.ask(310, send_fields(TOPIC), b"x").code == 0
        assert namesrv.ask(105, {"topic": TOPIC}).code == 0


def shout(address: str, data: bytes) -> None:
    """Send bytes and hang up when the other side does, or after a moment."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 2) as connection:
        try:
            connection.sendall(data)
            connection.settimeout(0.05)
            while connection.recv(65536):
                pass
        except OSError:
            pass


@pytest.mark.slow
@given(st.binary(max_size=400))
def test_any_bytes(box: SandboxThread, watched: Watched, data: bytes) -> None:
    shout(box.addresses["broker-a"], data)
    shout(box.namesrv, data)
    assert watched.slips() == []


@pytest.mark.slow
@given(st.data())
def test_damaged_frames(box: SandboxThread, watched: Watched, data: st.DataObject) -> None:
    whole = bytearray(frame(310, send_fields(TOPIC, TAGS="TagA"), b"body", opaque=7))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    shout(box.addresses["broker-a"], bytes(whole))
    assert watched.slips() == []


def fields_of(chance: random.Random) -> dict[str, str]:
    """Names that handlers read, with odd values."""
    names = [
        *"abcdefghijklmn",
        *("topic", "queueId", "consumerGroup", "group", "offset", "key", "maxNum", "perm"),
        *("readQueueNums", "writeQueueNums", "timestamp", "queueOffset", "sysFlag", "maxMsgNums"),
        *("commitOffset", "suspendTimeoutMillis", "subscription", "subVersion", "clientId"),
        *("commitOrRollback", "commitLogOffset", "producerGroup", "beginTimestamp", "msgId"),
        *("endTimestamp", "delayLevel", "brokerName", "brokerId", "brokerAddr", "clusterName"),
        *("namespace", "value", "recallHandle", "invisibleTime", "pollTime", "bornTime"),
        *("extraInfo", "initMode", "defaultTopic", "defaultTopicQueueNums", "bornTimestamp"),
        *("flag", "properties", "attemptId", "order", "expType", "exp", "cleanOffset"),
    ]
    return {name: chance.choice(ODD) for name in names if chance.random() < 0.8}


@pytest.mark.parametrize("code", spread(sorted(set(RequestCode))))
def test_every_code_with_odd_fields(box: SandboxThread, watched: Watched, code: int) -> None:
    chance = random.Random(code)
    with Talk(box.addresses["broker-a"]) as broker, Talk(box.namesrv) as namesrv:
        for _ in range(40):
            fields, body = fields_of(chance), chance.choice(BODIES)
            broker.send(code, fields, body, flag=2)
            namesrv.send(code, fields, body, flag=2)
        broker.send(code, fields_of(chance), b"")
        assert broker.ask(9999).code in (0, 3, *range(1, 700), 1500)
        assert namesrv.ask(9998).code == 3
    assert watched.slips() == []


def test_it_lives_after_all_that(box: SandboxThread) -> None:
    lives(box)


def test_lengths_of_gigabytes_close_the_connection(box: SandboxThread) -> None:
    for prefix in (b"\x40\0\0\0\0\0\0\x60", b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0\0\0\0\0"):
        with Talk(box.addresses["broker-a"]) as broker:
            broker.socket.sendall(prefix)
            assert broker.is_closed()
    lives(box)


@pytest.mark.parametrize(
    "greeting", [b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/1.1\r\n\r\n", b"PROXY TCP4 1 2 3 4"]
)
def test_other_protocols_are_named(box: SandboxThread, watched: Watched, greeting: bytes) -> None:
    before = len(watched.events)
    with Talk(box.addresses["broker-a"]) as broker:
        broker.socket.sendall(greeting)
        assert broker.is_closed()
    told = [e.detail for e in watched.events[before:] if e.kind is EventKind.BAD_BYTES]
    assert len(told) == 1
    assert told[0].startswith("these bytes look like ")


def test_byte_by_byte(box: SandboxThread) -> None:
    with Talk(box.addresses["broker-a"]) as broker:
        broker.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in frame(310, send_fields(TOPIC), b"slow"):
            broker.socket.sendall(bytes((byte,)))
        assert broker.receive().code == 0


def test_connections_are_bounded() -> None:
    with sandbox_thread(SandboxOptions(connections_limit=3)) as box:
        address = box.addresses["broker-a"]
        talks = [Talk(address) for _ in range(3)]
        assert all(talk.ask(9999).code == 3 for talk in talks)
        with Talk(address) as fourth:
            assert fourth.is_closed()
        talks[0].close()

        def is_served() -> bool:
            with contextlib.suppress(OSError), Talk(address) as another:
                return another.ask(9999).code == 3
            return False

        wait_for("another is served", is_served)
        for talk in talks:
            talk.close()


def test_who_says_nothing_does_not_keep_others_out() -> None:
    """Neither silent nor by a byte now and then."""
    with sandbox_thread(SandboxOptions(connections_limit=4, greeting_ms=400)) as box:
        address = box.addresses["broker-a"]
        with Talk(address) as client:
            assert client.ask(9999).code == 3
            silent = [Talk(address) for _ in range(3)]
            for byte in frame(9999)[:3]:
                with contextlib.suppress(OSError):
                    silent[0].socket.sendall(bytes((byte,)))
            wait_for("they are closed", lambda: all(talk.is_closed(0.1) for talk in silent))
            with Talk(address) as another:
                assert another.ask(9999).code == 3
            assert client.ask(9999).code == 3
        for talk in silent:
            talk.close()


def test_a_connection_that_is_not_used_is_closed() -> None:
    with sandbox_thread(SandboxOptions(idle_ms=300)) as box, Talk(box.namesrv) as talk:
        assert talk.ask(9999).code == 3
        wait_for("it is closed", lambda: talk.is_closed(0.1))


@pytest.mark.slow
def test_unfinished_frames_are_bounded() -> None:
    with sandbox_thread(SandboxOptions(input_limit=1_000_000)) as box:
        talks = [Talk(box.addresses["broker-a"]) for _ in range(4)]
        head = struct.pack(">II", 8_000_000, 100) + b"{" + b" " * 99
        for talk in talks:
            talk.socket.sendall(head + b"x" * 400_000)
        wait_for(
            "two are closed",
            lambda: [talk.is_closed(0.2) for talk in talks].count(True) == 2,
        )
        for talk in talks:
            talk.close()
        wait_for("nothing is held", lambda: box.call(lambda sandbox: sandbox.hub.unfinished) == 0)


def test_a_full_store_refuses_or_forgets() -> None:
    options = SandboxOptions(topics=[TopicSpec(TOPIC)], store_limit=50_000)
    with sandbox_thread(options) as box, Talk(box.addresses["broker-a"]) as broker:
        codes = [broker.ask(310, send_fields(TOPIC), b"x" * 1000).code for _ in range(60)]
        assert codes.count(0) in range(25, 50)
        assert set(codes[codes.count(0) :]) == {14}
    with sandbox_thread(replace(options, drop_oldest=True)) as box:
        with Talk(box.addresses["broker-a"]) as broker:
            codes = [broker.ask(310, send_fields(TOPIC), b"x" * 1000).code for _ in range(600)]
            assert set(codes) == {0}
            assert broker.ask(11, pull_fields(TOPIC)).code == 21
            low = int(broker.ask(31, {"topic": TOPIC, "queueId": "0"}).fields["offset"])
            assert low > 500
            assert broker.ask(11, pull_fields(TOPIC, 0, low)).code == 0
        held = box.call(lambda sandbox: sandbox.brokers["broker-a"].state.store.held_bytes)
        assert held <= 50_000


def test_long_polls_are_bounded_and_go_with_their_connection() -> None:
    options = SandboxOptions(topics=[TopicSpec(TOPIC)], held_limit=5)
    with sandbox_thread(options) as box:

        def held() -> int:
            return box.call(lambda sandbox: len(sandbox.brokers["broker-a"].state.holds))

        with Talk(box.addresses["broker-a"]) as broker:
            for _ in range(8):
                broker.send(11, pull_fields(TOPIC, hold_ms=30_000))
            assert [broker.receive().code for _ in range(3)] == [19, 19, 19]
            assert held() == 5
        wait_for("the polls are gone", lambda: held() == 0)


@pytest.mark.slow
def test_a_client_that_does_not_read_is_given_up() -> None:
    with sandbox_thread(SandboxOptions(topics=[TopicSpec(TOPIC)])) as box:
        with Talk(box.addresses["broker-a"]) as producer:
            assert producer.ask(310, send_fields(TOPIC), b"x" * 200_000).code == 0

        def unread() -> int:
            return box.call(lambda sandbox: sandbox.hub.unread)

        with Talk(box.addresses["broker-a"]) as greedy:
            greedy.socket.sendall(frame(11, pull_fields(TOPIC)) * 1000)  # 200 MB of answers
            assert greedy.is_closed() or unread() < 40 * 1024 * 1024
        with Talk(box.addresses["broker-a"]) as lazy:
            for _ in range(150):
                lazy.socket.sendall(frame(11, pull_fields(TOPIC)))
                time.sleep(0.002)
            assert 0 < unread() < 10_000_000  # reading stops where nothing is read from us
        wait_for("nothing is held", lambda: unread() == 0)


@pytest.mark.slow
def test_a_client_without_heartbeat_is_forgotten() -> None:
    options = SandboxOptions(topics=[TopicSpec(TOPIC)], client_timeout_ms=200)
    with sandbox_thread(options) as box, Talk(box.addresses["broker-a"], 10) as broker:
        broker.send(34, body=heartbeat("one", consumers={"g": TOPIC}))
        broker.receive(), broker.receive()
        assert broker.is_closed(8)


def test_names_and_codes_of_the_network_are_bounded() -> None:
    options = SandboxOptions(topics=[TopicSpec(TOPIC)])
    with sandbox_thread(options) as box, Talk(box.addresses["broker-a"]) as broker:
        long = "g" * 300
        body = heartbeat("one", producers=(long, "p"), consumers={long: TOPIC})
        assert broker.ask(34, body=body).code == 0
        broker.ask(15, {"consumerGroup": long, "topic": TOPIC, "queueId": "0", "commitOffset": "1"})
        for code in range(100_000, 111_000):
            broker.send(code, flag=2)
        assert broker.ask(30, {"topic": TOPIC, "queueId": "0"}).code == 0

        def kept(sandbox: Sandbox) -> tuple[list[str], list[str], list[str], bool]:
            state = sandbox.brokers["broker-a"].state
            groups = [config.name for config in state.groups]
            return (
                list(state.clients.producers),
                groups,
                sorted(state.offsets.topics_by_group()),
                len(state.requests) > 10_000,
            )

        assert box.call(kept) == (["p"], [], [], False)


# -- options that cannot be met --------------------------------------------------------------------


def test_it_listens_on_loopback_unless_told_otherwise() -> None:
    everywhere = SandboxOptions(host="0.0.0.0")
    with pytest.raises(SandboxError, match="other machines"), sandbox_thread(everywhere):
        pass
    elsewhere = SandboxOptions(host="127.0.0.2")
    with sandbox_thread(elsewhere) as box, Talk(box.namesrv) as namesrv:
        assert box.namesrv.startswith("127.0.0.2:")
        assert namesrv.ask(106).code == 0


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        options = SandboxOptions(namesrv_port=port)
        with pytest.raises(SandboxError, match=str(port)), sandbox_thread(options):
            pass


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (SandboxOptions(brokers=0), "brokers: must be 1 to 64, not 0"),
        (SandboxOptions(port=70_000), "70000 is not a valid port"),
        (SandboxOptions(host="localhost"), "not a valid IP address"),
        (SandboxOptions(server_version="6.6.6"), "not a release"),
        (SandboxOptions(serialize_type="XML"), "JSON or ROCKETMQ"),
        (SandboxOptions(delay_levels="soon"), "not a valid duration"),
        (SandboxOptions(topics=[TopicSpec("T", 0)]), "0 queues"),
        (SandboxOptions(advertised="a host"), "not a valid IP address"),
        (SandboxOptions(store=Path("/nowhere/box.db")), "cannot be opened"),
    ],
)
def test_options_that_make_no_sense(options: SandboxOptions, reason: str) -> None:
    with pytest.raises(SandboxError, match=reason), sandbox_thread(options):
        pass


def test_nothing_is_left_of_many_sandboxes() -> None:
    before = threading.active_count()
    for _ in range(20):
        with sandbox_thread(SandboxOptions(brokers=2)) as box, Talk(box.namesrv) as namesrv:
            assert namesrv.ask(106).code == 0
    assert threading.active_count() == before


@pytest.mark.parametrize("value", ["²", "٣٣", "1_0", "--5", "9" * 900, "", "x", "-0", "٦"])
def test_no_setting_makes_a_broker_fail(value: str) -> None:
    watched = Watched()
    with sandbox_thread(watched.options) as box:
        for address in (box.addresses["broker-a"], box.namesrv):
            with Talk(address) as talk:
                talk.ask(25, body=SETTINGS.format(value).encode())
        with Talk(box.namesrv) as namesrv:
            assert namesrv.ask(106, {}).code == 0
        if value != "-0":  # which is 0: nothing may be done
            lives(box)
    assert watched.slips() == []


def test_a_start_may_take_as_long_as_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Sandbox._start

    async def slow(self: Sandbox) -> None:
        await asyncio.sleep(0.2)
        await start(self)

    monkeypatch.setattr(Sandbox, "_start", slow)
    box = SandboxThread()
    with monkeypatch.context() as short:
        short.setattr("replay.sandbox.sandbox._READY_SECONDS", 0.05)
        box.start()
    with Talk(box.namesrv) as namesrv:
        assert namesrv.ask(106).code == 0
    box.close()

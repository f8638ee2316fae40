"""What a client does by itself: heartbeats, route refresh, farewell; and where it writes to."""

from __future__ import annotations

import json

import pytest

from dissectors.remoting.command import RemotingCommand
from replay.config import ProducerConfig
from replay.errors import ConfigError, NameServerError
from replay.message import Message, SendMode
from replay.wire.network import Network

from ..script import HEARTBEAT, MS, NAMESRV, ROUTE, Bench, ScriptLink, ScriptNetwork, mute


def send(bench: Bench, **options: object) -> None:
    operation = bench.run(bench.sender.send(Message("T", b"x"), SendMode.SYNC))
    assert operation.error is None


def test_masters_hear_of_us_soon_and_then_every_so_often() -> None:
    bench = Bench()
    send(bench)
    assert bench.network.sent(HEARTBEAT) == []
    bench.network.run(1100)
    assert {address for address, _ in bench.network.sent(HEARTBEAT)} == set(bench.brokers.values())
    bench.network.run(60_000)
    assert len(bench.network.sent(HEARTBEAT)) == 3 * 3
    body = next(body for _, _, command, body in bench.network.requests if command.code == HEARTBEAT)
    assert json.loads(body) == {
        "clientID": bench.client.client_id,
        "consumerDataSet": [],
        "heartbeatFingerprint": 0,
        "producerDataSet": [{"groupName": "g"}],
        "withoutSub": False,
    }


def test_a_client_of_4_9_says_less() -> None:
    bench = Bench(client_version=409)
    send(bench)
    bench.network.run(1100)
    body = next(body for _, _, command, body in bench.network.requests if command.code == HEARTBEAT)
    assert set(json.loads(body)) == {"clientID", "consumerDataSet", "producerDataSet"}


def test_the_client_id_is_that_of_java() -> None:
    address, _, instance = Bench().client.client_id.partition("@")
    assert address == "10.9.9.9"
    pid, _, number = instance.partition("#")
    assert pid.isdecimal()
    assert number.isdecimal()
    assert Bench(instance_name="one", unit_name="u").client.client_id == "10.9.9.9@one@u"


def test_the_address_of_the_client_is_one() -> None:
    assert ProducerConfig("g", client_ip="::1").client_ip == "::1"
    with pytest.raises(ConfigError, match="client_ip: must be an IP address, not 'host'"):
        ProducerConfig("g", client_ip="host")


def test_routes_are_refreshed_and_a_new_broker_is_used() -> None:
    bench = Bench()
    gone = bench.brokers.pop("broker-c")
    send(bench)
    bench.brokers["broker-c"] = gone
    bench.network.run(31_000)
    assert len(bench.network.sent(ROUTE)) == 2
    for _ in range(12):
        send(bench)
    assert gone in bench.addresses()


def test_a_slow_refresh_of_routes_makes_no_further_ticks() -> None:
    bench = Bench(poll_namesrv_ms=1000)
    ticks, tick = [], bench.client.tick

    def counted() -> None:
        ticks.append(bench.network.time)
        tick()

    bench.client.tick = counted  # type: ignore[method-assign]
    send(bench)
    bench.network.peers[NAMESRV] = mute
    bench.network.run(3500)  # the refresh begins after a second and is given up after another three
    assert len(bench.network.sent(ROUTE)) == 2
    assert len(ticks) < 20


def test_a_broker_that_left_the_route_is_forgotten_and_its_connection_closed() -> None:
    bench = Bench()
    for _ in range(12):
        send(bench)
    gone = bench.brokers.pop("broker-c")
    bench.network.run(61_000)
    assert bench.client.routes.master_of("broker-c") is None
    assert [link.open for link in bench.network.links if link.peer == gone] == [False]
    beats = [row for row in bench.network.requests if row[1] == gone and row[2].code == HEARTBEAT]
    assert all(when < bench.network.time - 25_000 * MS for when, *_ in beats)


def test_routes_that_cannot_be_had_stay_as_they_were() -> None:
    bench = Bench()
    send(bench)
    bench.network.peers[NAMESRV] = mute
    bench.network.run(100_000)
    send(bench)


def test_the_index_goes_on_when_the_route_says_nothing_new() -> None:
    bench = Bench()
    send(bench)
    table = bench.client.routes.table_of("T")
    bench.network.run(31_000)
    assert bench.client.routes.table_of("T") is table


def test_silent_connections_are_closed() -> None:
    bench = Bench(heartbeat_ms=10**9, poll_namesrv_ms=10**9)
    send(bench)
    assert any(link.open for link in bench.network.links)
    bench.network.run(135_000)
    assert not any(link.open for link in bench.network.links)
    assert bench.client.channels.open_count == 0
    send(bench)


def test_a_broker_whose_connection_ended_hears_of_us_again() -> None:
    bench = Bench()
    send(bench)
    bench.network.run(1100)
    lost = next(link for link in bench.network.links if link.peer == "10.0.1.2:10911")
    lost.end()
    bench.network.run(1500)
    beats = [address for address, _ in bench.network.sent(HEARTBEAT)]
    assert beats.count("10.0.1.2:10911") == 2


def test_a_broker_that_is_down_is_not_asked_all_the_time() -> None:
    bench = Bench()
    send(bench)
    bench.network.run(1100)
    lost = next(link for link in bench.network.links if link.peer == "10.0.1.2:10911")
    opened: list[str] = []
    open_ = bench.network.open
    bench.network.open = lambda *given: (opened.append(given[0]), open_(*given))[1]  # type: ignore[method-assign]
    del bench.network.peers["10.0.1.2:10911"]
    lost.end()
    bench.network.run(25_000)
    assert opened.count("10.0.1.2:10911") == 1


def test_the_next_nameserver_is_asked_and_kept() -> None:
    second = "10.0.0.2:9876"
    bench = Bench(namesrv=f"{NAMESRV};{second}")
    bench.network.peers[second] = bench.network.peers.pop(NAMESRV)
    for topic in ("T", "U", "V"):
        bench.known.add(topic)
        operation = bench.run(bench.sender.send(Message(topic, b"x"), SendMode.SYNC))
        assert operation.error is None
    assert bench.client.routes.namesrv == second


def test_a_nameserver_that_answers_an_error_is_left_for_the_next() -> None:
    second = "10.0.0.2:9876"
    bench = Bench(namesrv=f"{NAMESRV};{second}")
    bench.network.peers[second] = bench.network.peers[NAMESRV]
    bench.network.peers[NAMESRV] = lambda link, command, body: link.answer(command, 1, remark="no")
    send(bench)


def test_nothing_is_written_to_an_address_that_nobody_named() -> None:
    bench = Bench()
    for _ in range(12):
        send(bench)
    bench.network.run(70_000)
    named = {NAMESRV, *bench.brokers.values()}
    assert {address for _, address, _, _ in bench.network.requests} == named


def test_requests_of_brokers_that_nobody_serves_are_answered_so() -> None:
    bench = Bench()
    send(bench)
    answers: list[RemotingCommand] = []
    link = next(one for one in bench.network.links if one.peer != NAMESRV)

    def serve(_: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        answers.append(command)

    bench.network.peers[link.peer] = serve
    from replay.wire.request import encode_command

    for code, flag in ((220, 0), (40, 2)):
        link.send(encode_command(RemotingCommand(code, 77, flag, "JAVA", 479)))
    bench.network.run(10)
    ((code, opaque),) = [(one.code, one.opaque) for one in answers]
    assert (code, opaque) == (3, 77)


def test_farewell_is_said_to_those_who_knew_us() -> None:
    bench = Bench()
    send(bench)
    bench.network.run(1100)
    for steps in bench.client.farewell():
        bench.run(steps)
    said = bench.network.sent(35)
    assert {address for address, _ in said} == set(bench.brokers.values())
    assert said[0][1].ext_fields == {
        "clientID": bench.client.client_id,
        "producerGroup": "g",
    }
    bench.client.close()
    assert not any(link.open for link in bench.network.links)


def test_hooks_and_signature_are_on_every_request() -> None:
    from replay.acl import Credentials, signature_of

    class Hook:
        def before_request(self, address: str, code: int, fields: dict[str, str]) -> None:
            fields["hooked"] = f"{address} {code}"

    credentials = Credentials("me", "a very secret key")
    bench = Bench(credentials=credentials, rpc_hooks=(Hook(),), namespace_v2="ns")
    send(bench)
    bench.network.run(1100)
    for _, address, command, body in bench.network.requests:
        fields = command.ext_fields
        assert fields["hooked"] == f"{address} {command.code}"
        assert (fields["nsd"], fields["ns"], fields["AccessKey"]) == ("true", "ns", "me")
        assert fields["Signature"] == signature_of(fields, body, "a very secret key")
    assert "secret key" not in repr(bench.config)


def test_configs_that_cannot_work() -> None:
    network: Network = ScriptNetwork()
    assert network.now() > 0
    for settings, error in (
        ({"group": "DEFAULT_PRODUCER"}, ConfigError),
        ({"group": ""}, ConfigError),
        ({"group": "g", "serialize_type": "XML"}, ConfigError),
        ({"group": "g", "compress_type": "rar"}, ConfigError),
        ({"group": "g", "send_timeout_ms": 0}, ConfigError),
        ({"group": "g", "retries": -1}, ConfigError),
    ):
        with pytest.raises(error):
            ProducerConfig(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", " ; ", "host", "host:", ":80", "host:0", "host:x", "a:1;b"])
def test_nameservers_that_are_none(text: str) -> None:
    with pytest.raises(NameServerError):
        ProducerConfig(group="g", namesrv=text).namesrv_addresses({})


def test_nameservers_from_the_environment() -> None:
    config = ProducerConfig(group="g")
    found = config.namesrv_addresses({"NAMESRV_ADDR": "a:1; b:2;a:1;[::1]:3"})
    assert found == ("a:1", "b:2", "[::1]:3")

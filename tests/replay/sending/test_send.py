"""What is retried, how often, with which time left: every rule of the send operations."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dissectors.remoting.command import RemotingCommand
from replay.config import version_of_release
from replay.errors import BrokerError, ConnectError, InvalidMessageError, SendTimeoutError
from replay.fault import FaultSettings
from replay.message import Attempt, AttemptOutcome, Message, MessageQueue, SendMode, SendStatus
from replay.sending.send import KeySelector

from ..script import MS, NAMESRV, Bench, ScriptLink, dropping, mute, refusing, stored
from .sends import ASYNC, ONEWAY, SYNC, every_broker, failure_of, result_of, send


def test_a_stored_message_says_where_and_how() -> None:
    seen: list[Attempt] = []
    bench = Bench(on_attempt=lambda _, attempt: seen.append(attempt))
    result = result_of(send(bench))
    assert (result.status, result.queue_offset) == (SendStatus.SEND_OK, 7)
    (attempt,) = result.attempts
    assert seen == [attempt]
    assert attempt.outcome == AttemptOutcome.ANSWERED
    assert (attempt.code, attempt.why, attempt.number) == (0, "round robin", 1)
    assert attempt.address == bench.brokers[attempt.queue.broker_name]
    assert attempt.local.startswith("10.9.9.9:")
    assert attempt.request_bytes is not None
    assert attempt.begin - 1_700_000_000_000 * MS <= bench.network.time


def test_queues_are_gone_round() -> None:
    bench = Bench()
    queues = [result_of(send(bench)).queue for _ in range(24)]
    assert len(set(queues)) == 12
    assert queues[:12] == queues[12:]


@pytest.mark.parametrize("mode", [SYNC, ASYNC])
@pytest.mark.parametrize(
    ("code", "status"),
    [
        (0, SendStatus.SEND_OK),
        (10, SendStatus.FLUSH_DISK_TIMEOUT),
        (11, SendStatus.SLAVE_NOT_AVAILABLE),
        (12, SendStatus.FLUSH_SLAVE_TIMEOUT),
    ],
)
def test_10_11_and_12_are_stored(mode: SendMode, code: int, status: SendStatus) -> None:
    bench = Bench()

    def serve(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        link.answer(command, code, {"msgId": "A", "queueId": "1", "queueOffset": "2"})

    every_broker(bench, serve)
    result = result_of(send(bench, mode))
    assert result.status is status
    assert len(bench.addresses()) == 1


def test_stored_less_safely_is_tried_elsewhere_if_wanted_and_kept_in_the_end() -> None:
    bench = Bench(retry_another_broker_when_not_store_ok=True)

    def serve(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        link.answer(command, 11, {"msgId": "A", "queueId": "1", "queueOffset": "2"})

    every_broker(bench, serve)
    result = result_of(send(bench))
    assert result.status is SendStatus.SLAVE_NOT_AVAILABLE
    assert len(result.attempts) == 3


def test_a_retry_has_another_broker_and_opaque_and_the_same_id() -> None:
    bench = Bench()
    every_broker(bench, refusing(14))
    error = failure_of(send(bench))
    sent = bench.network.sent(310)
    assert len(sent) == 3
    assert all(first[0] != second[0] for first, second in pairwise(sent))
    assert len({command.opaque for _, command in sent}) == 3
    properties = [command.ext_fields["i"] for _, command in sent]
    assert len(set(properties)) == 1
    assert "UNIQ_KEY" in properties[0]
    assert error.brokers == tuple(attempt.queue.broker_name for attempt in error.attempts)
    assert isinstance(error.cause, BrokerError)
    assert error.cause.code == error.code == 14


RETRIED = {17, 14, 1, 16, 204, 205}


@pytest.mark.parametrize(
    ("version", "retried"),
    [(413, RETRIED), (465, RETRIED), (473, RETRIED | {2}), (475, RETRIED | {2, 1500})],
)
def test_codes_are_retried_as_the_client_version_does(version: int, retried: set[int]) -> None:
    for code in (1, 2, 3, 13, 14, 16, 17, 29, 204, 205, 1500):
        bench = Bench(client_version=version, reconnect_for_go_away=False)
        every_broker(bench, refusing(code, "no"))
        error = failure_of(send(bench))
        assert len(bench.addresses()) == (3 if code in retried else 1), code
        assert isinstance(error.cause, BrokerError)
        assert error.cause.remark == "no"


def test_an_error_code_is_not_retried_when_asynchronous() -> None:
    bench = Bench()
    every_broker(bench, refusing(14))
    error = failure_of(send(bench, ASYNC))
    assert len(bench.addresses()) == 1
    assert error.code == 14


def test_retries_are_as_many_as_configured() -> None:
    for retries in (0, 1, 5):
        bench = Bench(retries=retries)
        every_broker(bench, refusing(1))
        assert len(failure_of(send(bench)).attempts) == retries + 1


def test_a_silent_broker_takes_the_whole_time_and_its_connection_is_closed() -> None:
    bench = Bench(send_timeout_ms=500)
    every_broker(bench, mute)
    began = bench.network.time
    error = failure_of(send(bench))
    took = (bench.network.time - began) // MS
    assert 500 <= took <= 520
    assert isinstance(error.cause, SendTimeoutError)
    assert error.out_of_time
    assert [attempt.outcome for attempt in error.attempts] == [AttemptOutcome.TIMEOUT]
    assert not bench.network.links[-1].open


def test_an_asynchronous_timeout_leaves_the_connection_to_others() -> None:
    bench = Bench(send_timeout_ms=500)
    every_broker(bench, mute)
    error = failure_of(send(bench, ASYNC))
    assert isinstance(error.cause, SendTimeoutError)
    assert len(error.attempts) == 1
    assert bench.network.links[-1].open


def test_a_part_of_the_time_may_be_kept_for_further_attempts() -> None:
    bench = Bench(send_timeout_ms=1000, send_max_timeout_per_request_ms=300)
    every_broker(bench, mute)
    error = failure_of(send(bench))
    times = [round(attempt.latency_us / 1000) for attempt in error.attempts if attempt.latency_us]
    assert [time // 50 * 50 for time in times] == [300, 300, 400]


def test_the_time_left_is_what_the_attempts_before_left() -> None:
    bench = Bench(send_timeout_ms=1000)
    every_broker(bench, refusing(1, delay_ms=400))
    error = failure_of(send(bench))
    assert [attempt.outcome for attempt in error.attempts] == ["answered", "answered", "timeout"]
    assert error.elapsed_ms <= 1010


def test_a_broker_that_is_down_is_left_for_another_one() -> None:
    bench = Bench()
    for name in ("broker-a", "broker-b"):
        del bench.network.peers[bench.brokers[name]]
    for mode in (SYNC, ASYNC):
        for _ in range(12):
            result = result_of(send(bench, mode))
            assert result.attempts[-1].queue.broker_name == "broker-c"
            assert all(one.outcome == AttemptOutcome.CONNECT for one in result.attempts[:-1])
            assert all(one.error and one.request_bytes is None for one in result.attempts[:-1])


def test_an_asynchronous_retry_repeats_the_request_as_it_was() -> None:
    bench = Bench()
    del bench.network.peers[bench.brokers["broker-a"]]
    bench.network.peers[bench.brokers["broker-b"]] = dropping
    for _ in range(12):
        before = len(bench.network.requests)
        result = result_of(send(bench, ASYNC))
        sent = [row for row in bench.network.requests[before:] if row[2].code == 310]
        headers = {tuple(sorted(command.ext_fields.items())) for _, _, command, _ in sent}
        assert len(headers) == 1
        assert len({command.opaque for _, _, command, _ in sent}) == len(sent)
        assert result.attempts[-1].queue.broker_name == "broker-c"


def test_a_synchronous_retry_is_a_new_request() -> None:
    bench = Bench()
    bench.network.peers[bench.brokers["broker-a"]] = dropping
    bench.network.peers[bench.brokers["broker-b"]] = refusing(1, delay_ms=50)
    for _ in range(6):
        send(bench)
    born = [command.ext_fields["g"] for _, command in bench.network.sent(310)]
    named = [command.ext_fields["n"] for _, command in bench.network.sent(310)]
    assert len(set(born)) > 1
    assert set(named) == set(bench.brokers)


def test_one_way_is_written_with_its_bit_and_not_waited_for() -> None:
    bench = Bench()
    every_broker(bench, mute)
    began = bench.network.time
    result = result_of(send(bench, ONEWAY))
    assert bench.network.time - began < 5 * MS
    ((_, command),) = bench.network.sent(310)
    assert command.flag == 2
    assert result.queue_offset is None
    (attempt,) = result.attempts
    assert (attempt.outcome, attempt.end, attempt.code) == (AttemptOutcome.ONEWAY, None, None)
    assert bench.client.channels.in_flight == 0


def test_one_way_is_tried_once() -> None:
    bench = Bench()
    for address in bench.brokers.values():
        del bench.network.peers[address]
    error = failure_of(send(bench, ONEWAY))
    assert len(error.attempts) == 1
    assert isinstance(error.cause, ConnectError)


def test_a_chosen_queue_is_tried_once_and_asynchronous_with_the_same_broker() -> None:
    queue = MessageQueue("T", "broker-b", 3)
    bench = Bench()
    bench.network.peers[bench.brokers["broker-b"]] = refusing(14)
    assert len(failure_of(send(bench, queue=queue)).attempts) == 1
    bench.network.peers[bench.brokers["broker-b"]] = dropping
    error = failure_of(send(bench, ASYNC, queue=queue))
    assert error.brokers == ("broker-b",) * 3
    assert {command.ext_fields["e"] for _, command in bench.network.sent(310)} == {"3"}
    assert error.attempts[0].why == "chosen by the caller"


def test_an_order_key_always_means_the_same_queue() -> None:
    bench = Bench()
    queues = {result_of(send(bench, selector=KeySelector("order-17"))).queue for _ in range(5)}
    assert len(queues) == 1
    others = {result_of(send(bench, selector=KeySelector(f"k{n}"))).queue for n in range(50)}
    assert len(others) > 6


def test_a_selector_that_chooses_something_else_is_refused() -> None:
    bench = Bench()
    operation = send(bench, selector=lambda queues, _: MessageQueue("T", "other", 0))
    assert isinstance(operation.error, InvalidMessageError)


def test_a_batch_is_one_request_with_all_ids() -> None:
    bench = Bench()
    messages = [Message("T", b"%d" % number) for number in range(5)]
    result = result_of(bench.run(bench.sender.send_batch(messages, SYNC)))
    ((_, command),) = bench.network.sent(320)
    assert command.ext_fields["m"] == "true"
    assert result.unique_key == ",".join(one.properties["UNIQ_KEY"] for one in messages)
    assert result.attempts[0].message_count == 5


@pytest.mark.parametrize(
    "bad",
    [
        Message("T", b""),
        Message("bad topic", b"x"),
        Message("T", b"x" * 101),
        Message("SCHEDULE_TOPIC_XXXX", b"x"),
        Message("T", b"x", properties={"a": "\x01"}),
        Message("T", b"x", properties={"a": "b" * 40000}),
    ],
)
def test_what_is_no_message_is_refused_before_anything_is_sent(bad: Message) -> None:
    bench = Bench(max_message_size=100)
    with pytest.raises(InvalidMessageError):
        bench.run(bench.sender.send(bad, SYNC)).result  # noqa: B018
    assert bench.network.requests == []


def test_vip_channel_is_two_below_but_not_for_asynchronous_retries() -> None:
    bench = Bench(vip_channel=True)
    for number in (1, 2, 3):
        bench.network.peers[f"10.0.1.{number}:10909"] = dropping
    failure_of(send(bench))
    assert all(address.endswith(":10909") for address in bench.addresses())
    bench.network.requests.clear()
    result_of(send(bench, ASYNC))
    ports = [address.rpartition(":")[2] for address in bench.addresses()]
    assert ports == ["10909", "10911"]


@pytest.mark.parametrize(
    ("release", "port"),
    [
        *[(release, 10909) for release in ("3.5.9", "4.2.0", "4.4.0", "4.5.0")],
        *[(release, 10911) for release in ("4.5.1", "4.9.8", "5.3.3")],
    ],
)
def test_the_vip_channel_is_on_by_default_below_4_5_1(release: str, port: int) -> None:
    """The default of com.rocketmq.sendMessageWithVIPChannel in the jar of each release."""
    for setting, expected in ((None, port), (True, 10909), (False, 10911)):
        bench = Bench(client_version=version_of_release(release), vip_channel=setting)
        for number in (1, 2, 3):
            bench.network.peers[f"10.0.1.{number}:10909"] = stored
        result_of(send(bench))
        assert [address.rpartition(":")[2] for address in bench.addresses()] == [str(expected)]


@pytest.mark.parametrize("mode", [SYNC, ASYNC, ONEWAY])
def test_a_vip_channel_that_cannot_be_reached_is_named(mode: SendMode) -> None:
    bench = Bench(client_version=version_of_release("4.2.0"), retries_async=0)
    cause = failure_of(send(bench, mode)).cause
    assert isinstance(cause, ConnectError)
    assert "turn it off: --no-vip, vip_channel=False" in cause.hint


@pytest.mark.parametrize(
    ("release", "attempts"), [("3.5.9", 3), ("4.2.0", 3), ("4.3.0", 1), ("4.9.8", 1), ("5.3.3", 1)]
)
def test_attempts_share_one_timeout_since_4_3(release: str, attempts: int) -> None:
    """Each attempt of an older client waits for the whole timeout."""
    bench = Bench(client_version=version_of_release(release), vip_channel=False)
    every_broker(bench, mute)
    begin = bench.network.time
    failed = failure_of(send(bench, timeout_ms=1000))
    assert len(failed.attempts) == attempts
    assert all(
        one.latency_us is not None and 0.99e6 < one.latency_us < 1.1e6 for one in failed.attempts
    )
    assert attempts * 1000 <= (bench.network.time - begin) // MS < attempts * 1100
    assert failed.out_of_time is (attempts == 1)


@pytest.mark.parametrize(("release", "wait_ms"), [("4.2.0", 1000), ("4.3.0", 600)])
@pytest.mark.parametrize("mode", [SYNC, ONEWAY])
def test_the_route_query_counts_since_4_3(mode: SendMode, release: str, wait_ms: int) -> None:
    def slow_bench() -> Bench:
        bench = Bench(client_version=version_of_release(release), vip_channel=False, retries=0)
        every_broker(bench, mute)

        def slow(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
            bench.network.later(400, lambda: bench.name_server(link, command, body))

        bench.network.peers[NAMESRV] = slow
        return bench

    if mode is SYNC:
        queue = MessageQueue("T", "broker-a", 0)
        for options in ({}, {"queue": queue}):
            failed = failure_of(send(slow_bench(), timeout_ms=1000, **options))
            (attempt,) = failed.attempts
            assert attempt.latency_us is not None
            assert wait_ms <= attempt.latency_us // 1000 < wait_ms + 30
    else:
        result_of(send(slow_bench(), mode, timeout_ms=1000))


def test_go_away_is_asked_once_more_on_a_new_connection() -> None:
    bench = Bench()
    seen: list[ScriptLink] = []

    def leaving(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        first = not any(one.peer == link.peer for one in seen)
        seen.append(link)
        if first and command.code == 310:
            link.answer(command, 1500, {}, b"", "please go away")
        else:
            stored(link, command, body)

    every_broker(bench, leaving)
    result = result_of(send(bench))
    assert [one.code for one in result.attempts] == [1500, 0]
    assert result.attempts[0].address == result.attempts[1].address
    assert result.attempts[0].conversation != result.attempts[1].conversation
    assert "GO_AWAY" in result.attempts[1].why
    bench.network.run(15_000)
    assert not seen[0].open


def test_go_away_again_is_an_error_code_like_others() -> None:
    bench = Bench()
    every_broker(bench, refusing(1500))
    error = failure_of(send(bench))
    assert error.code == 1500
    assert len(bench.addresses()) == 6  # three brokers, each asked twice


def test_the_fault_strategy_is_off_unless_configured() -> None:
    bench = Bench()
    del bench.network.peers[bench.brokers["broker-a"]]
    for _ in range(12):
        send(bench)
    assert bench.sender.strategy.items() == ()


def test_the_fault_strategy_avoids_a_broker_that_failed() -> None:
    bench = Bench(fault=FaultSettings("5.1"))
    bench.network.peers[bench.brokers["broker-a"]] = dropping
    results = [result_of(send(bench)) for _ in range(40)]
    tries = [one.queue.broker_name for result in results for one in result.attempts]
    assert tries.count("broker-a") == 1
    assert not bench.sender.strategy.is_available("broker-a", bench.network.time // MS)
    assert results[-1].attempts[0].why == "available"


def test_the_detector_finds_a_broker_that_came_back() -> None:
    bench = Bench(fault=FaultSettings("5.1", detector=True))
    bench.network.peers[bench.brokers["broker-a"]] = dropping
    for _ in range(20):
        send(bench)
    assert not bench.sender.strategy.is_reachable("broker-a")
    bench.network.run(10_000)
    probes = [
        command for address, command in bench.network.sent(30) if address.startswith("10.0.1.1:")
    ]
    assert probes
    assert not bench.sender.strategy.is_reachable("broker-a")
    bench.network.peers[bench.brokers["broker-a"]] = stored
    bench.network.run(4000)
    assert bench.sender.strategy.is_reachable("broker-a")

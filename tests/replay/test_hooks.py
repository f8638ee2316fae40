"""Check hooks veto attempts; what send hooks raise is kept with the result."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from dissectors.remoting.command import RemotingCommand
from replay.errors import BrokerError, ForbiddenError, HookError
from replay.fault import FaultSettings
from replay.hooks import SendContext
from replay.message import AttemptOutcome, MessageQueue, SendMode

from .script import Bench, ScriptLink, refusing
from .sending.sends import ASYNC, ONEWAY, SYNC, every_broker, failure_of, result_of, send

every_mode = pytest.mark.parametrize("mode", [SYNC, ASYNC, ONEWAY])


class Check:
    """A check hook that does what it is given, and notes what it was asked."""

    def __init__(self, decide: Callable[[SendContext], None]) -> None:
        self.decide = decide
        self.asked: list[str] = []

    def check_send(self, context: SendContext) -> None:
        assert context.attempt is None
        self.asked.append(context.queue.broker_name)
        self.decide(context)


def veto(context: SendContext) -> None:
    raise ForbiddenError(f"{context.queue.broker_name} is closed for the night")


def fail(_: SendContext) -> None:
    raise KeyError("bug")


@every_mode
def test_a_veto_writes_nothing(mode: SendMode) -> None:
    check = Check(veto)
    bench = Bench(check_hooks=(check,))
    failed = failure_of(send(bench, mode))
    assert bench.addresses() == []
    assert isinstance(failed.cause, ForbiddenError)
    assert {one.outcome for one in failed.attempts} == {AttemptOutcome.REFUSED}
    assert "closed for the night" in (failed.attempts[0].error or "")
    # As Java after an MQClientException: a synchronous send asks for the other brokers, too.
    assert len(set(check.asked)) == (3 if mode is SYNC else 1)
    assert len(failed.attempts) == len(check.asked)


def test_a_veto_of_one_broker_sends_to_another_one() -> None:
    def decide(context: SendContext) -> None:
        if context.queue.broker_name == "broker-a":
            veto(context)

    bench = Bench(check_hooks=(Check(decide),))
    results = [result_of(send(bench)) for _ in range(12)]
    assert {one.queue.broker_name for one in results} == {"broker-b", "broker-c"}
    assert bench.brokers["broker-a"] not in bench.addresses()


def test_a_veto_of_a_chosen_queue_ends_the_send() -> None:
    bench = Bench(check_hooks=(Check(veto),))
    failed = failure_of(send(bench, queue=MessageQueue("T", "broker-b", 1)))
    assert len(failed.attempts) == 1


@every_mode
def test_another_error_of_a_check_hook_ends_the_send_at_once(mode: SendMode) -> None:
    check = Check(fail)
    bench = Bench(check_hooks=(check,))
    failed = failure_of(send(bench, mode))
    assert isinstance(failed.cause, HookError)
    assert failed.cause.reason == "a check hook failed: KeyError: 'bug'"
    assert isinstance(failed.cause.__cause__, KeyError)
    assert len(check.asked) == len(failed.attempts) == 1
    assert bench.addresses() == []


@pytest.mark.parametrize(("decide", "isolated"), [(veto, True), (fail, False)])
def test_only_a_veto_reaches_the_fault_strategy(
    decide: Callable[[SendContext], None], isolated: bool
) -> None:
    """Clients below 5.1.4 isolate after any MQClientException; a RuntimeException passes by."""
    bench = Bench(check_hooks=(Check(decide),), fault=FaultSettings("4.8"))
    failure_of(send(bench))
    assert bool(list(bench.sender.strategy.items())) is isolated


class Failing:
    """A send hook that raises before and after each attempt."""

    def before_send(self, context: SendContext) -> None:
        raise RuntimeError("before")

    def after_send(self, context: SendContext) -> None:
        raise RuntimeError(f"after {context.error is None}")


@every_mode
def test_errors_of_send_hooks_are_kept_with_the_result(
    mode: SendMode, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(hooks=(Failing(),))
    with caplog.at_level(logging.WARNING, "rmqtool.replay"):
        result = result_of(send(bench, mode))
    assert [str(one) for one in result.hook_errors] == ["before", "after True"]
    assert all(one.__traceback__ is None for one in result.hook_errors)
    assert len(caplog.records) == 2


def test_errors_of_send_hooks_are_kept_with_the_failure() -> None:
    bench = Bench(hooks=(Failing(),))
    every_broker(bench, refusing(14))
    failed = failure_of(send(bench))
    assert isinstance(failed.cause, BrokerError)
    assert [str(one) for one in failed.hook_errors] == ["before", "after False"] * 3


def test_errors_of_later_attempts_are_kept_with_what_was_stored_before() -> None:
    bench = Bench(hooks=(Failing(),), retry_another_broker_when_not_store_ok=True)

    def serve(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        first = len(bench.network.sent(310)) == 1
        link.answer(
            command,
            11 if first else 14,
            {"msgId": "A", "queueId": "1", "queueOffset": "2"},
        )

    every_broker(bench, serve)
    result = result_of(send(bench))
    assert len(result.attempts) == 3
    errors = [str(one) for one in result.hook_errors]
    assert errors == ["before", "after True", *["before", "after False"] * 2]


def test_without_errors_there_are_none() -> None:
    assert result_of(send(Bench())).hook_errors == ()

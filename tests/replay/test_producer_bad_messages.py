"""One request that cannot be made fails alone: wrong field types, hooks and guards that raise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from replay import AsyncProducer, Message, Producer, ProducerConfig, SendMode
from replay.errors import HookError, InvalidMessageError, SendFailed, SendTimeoutError
from replay.sandbox import Sandbox, SandboxOptions, sandbox_thread
from replay.validators import why_not_message

from .responder import responding, silence

SYNC, ASYNC, ONEWAY = SendMode.SYNC, SendMode.ASYNC, SendMode.ONEWAY
every_mode = pytest.mark.parametrize("mode", [SYNC, ASYNC, ONEWAY])
TOPIC = "Orders"
SEND_V2 = 310
HEART_BEAT = 34


def message(**fields: Any) -> Any:
    return Message(**{"topic": TOPIC, "body": b"x", **fields})


WRONG: list[tuple[Any, str]] = [
    ("text", "the message must be a Message, not a value of type str"),
    (message(topic=7), "topic must be a str, not a value of type int"),
    (message(topic=["Orders"]), "topic must be a str, not a value of type list"),
    (message(body="text"), "body must be bytes, not a value of type str"),
    (message(body=None), "body must be bytes, not None"),
    (message(body=bytearray(b"x")), "body must be bytes, not a value of type bytearray"),
    (message(tags=1), "tags must be a str or None, not a value of type int"),
    (message(keys=["a", "b"]), "keys must be a str or None, not a value of type list"),
    (message(properties=None), "properties must be a dict of str, not None"),
    (message(properties={"n": 1}), "property 'n' must be a str, not a value of type int"),
    (message(properties={"n": None}), "property 'n' must be a str, not None"),
    (message(properties={1: "n"}), "a name in properties must be a str, not a value of type int"),
    (message(flag="1"), "flag must be an int, not a value of type str"),
    (message(flag=True), "flag must be an int, not a value of type bool"),
    (message(flag=1 << 31), "flag is 2147483648"),
    (message(wait_store_ok=1), "wait_store_ok must be a bool or None, not a value of type int"),
]


@pytest.mark.parametrize(("wrong", "reason"), WRONG)
def test_the_error_names_the_field_and_the_type(wrong: Any, reason: str) -> None:
    problem = why_not_message(wrong, 1000)
    assert problem is not None
    assert problem.reason == reason


def test_hints_for_what_is_often_confused() -> None:
    body, keys = (why_not_message(message(**one), 9) for one in ({"body": "x"}, {"keys": ["a"]}))
    assert body is not None
    assert body.hint == "encode it: text.encode()"
    assert keys is not None
    assert keys.hint == "join the keys with spaces: ' '.join(keys)"


async def among_valid(
    config: ProducerConfig, mode: SendMode, wrong: Callable[[], Any], *, is_open: bool
) -> tuple[list[Any], list[Any]]:
    """Send one wrong message between valid ones; what came of the valid and of the wrong."""
    async with asyncio.timeout(20), AsyncProducer(config) as producer:
        if is_open:
            await producer.send(message())
        before = [producer.send(message(), mode=mode) for _ in range(5)]
        bad = producer.send(wrong(), mode=mode)
        after = [producer.send(message(), mode=mode) for _ in range(5)]
        valid = await asyncio.gather(*before, *after, return_exceptions=True)
        return valid, await asyncio.gather(bad, return_exceptions=True)


def config_of(box: Sandbox, **settings: Any) -> ProducerConfig:
    return ProducerConfig(group="g", namesrv=box.namesrv, **settings)


@every_mode
@pytest.mark.parametrize("is_open", [False, True])
def test_a_wrong_message_fails_alone(mode: SendMode, is_open: bool) -> None:
    with sandbox_thread(SandboxOptions()) as box:
        for wrong, reason in WRONG:
            valid, bad = asyncio.run(
                among_valid(config_of(box), mode, lambda one=wrong: one, is_open=is_open)
            )
            assert not [one for one in valid if isinstance(one, Exception)], reason
            assert isinstance(bad[0], InvalidMessageError), reason
            with Producer(config_of(box)) as producer:
                if is_open:
                    producer.send(message())
                with pytest.raises(InvalidMessageError, match=r"^(the |a )?\w+"):
                    producer.send(wrong, mode=mode)
                producer.send(message(), mode=mode)


class Marked:
    """An RPC hook that acts on one send alone, the third."""

    def __init__(self, act: Callable[[dict[str, str]], None]) -> None:
        self.act = act
        self.sends = 0

    def before_request(self, address: str, code: int, fields: dict[str, str]) -> None:
        if code == SEND_V2:
            self.sends += 1
            if self.sends == 3:
                self.act(fields)


def raises(_: dict[str, str]) -> None:
    raise ZeroDivisionError("hook")


def spoils(fields: dict[str, str]) -> None:
    fields["extra"] = object()  # type: ignore[assignment]


@every_mode
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(
    ("act", "error"), [(raises, HookError), (spoils, InvalidMessageError)], ids=["raise", "spoil"]
)
def test_an_rpc_hook_fails_its_own_request_alone(
    mode: SendMode, is_open: bool, act: Callable[[dict[str, str]], None], error: type
) -> None:
    with sandbox_thread(SandboxOptions()) as box:
        hook = Marked(act)
        config = config_of(box, rpc_hooks=(hook,))

        async def run() -> list[Any]:
            async with asyncio.timeout(20), AsyncProducer(config) as producer:
                if is_open:
                    await producer.send(message())
                sends = [producer.send(message(), mode=mode) for _ in range(8)]
                return await asyncio.gather(*sends, return_exceptions=True)

        failed = [one for one in asyncio.run(run()) if isinstance(one, Exception)]
        assert len(failed) == 1
        assert isinstance(failed[0], SendFailed)
        assert isinstance(failed[0].cause, error)
        assert failed[0].attempts[0].outcome == "refused"

        hook.sends = 0
        with Producer(config) as producer:
            producer.send(message())
            producer.send(message())
            with pytest.raises(SendFailed) as raised:
                producer.send(message(), mode=mode)
            assert isinstance(raised.value.cause, error)
            producer.send(message(), mode=mode)


def test_timeouts_still_work_while_every_heartbeat_fails() -> None:
    """The clock that sends heartbeats is the one that ends requests without an answer."""

    class Failing:
        def before_request(self, address: str, code: int, fields: dict[str, str]) -> None:
            if code == HEART_BEAT:
                raise ZeroDivisionError("hook")

    with responding() as responder:
        config = ProducerConfig(
            group="g",
            namesrv=responder.address,
            rpc_hooks=(Failing(),),
            heartbeat_ms=50,
            send_timeout_ms=300,
        )

        async def run() -> Any:
            async with asyncio.timeout(20), AsyncProducer(config) as producer:
                await producer.send(message())
                await asyncio.sleep(0.3)
                responder.serve = silence
                return await asyncio.gather(producer.send(message()), return_exceptions=True)

        (error,) = asyncio.run(run())
        assert isinstance(error, SendFailed)
        assert isinstance(error.cause, SendTimeoutError)
        assert not [one for one, _ in responder.received if one.code == HEART_BEAT]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_guard_that_raises_refuses(asynchronous: bool) -> None:
    def guard(address: str, named: str) -> str | None:
        raise KeyError(address)

    with sandbox_thread(SandboxOptions()) as box:
        config = config_of(box, guard=guard)
        if asynchronous:

            async def run() -> Any:
                async with asyncio.timeout(2), AsyncProducer(config) as producer:
                    return await asyncio.gather(producer.send(message()), return_exceptions=True)

            error = asyncio.run(run())[0]
        else:
            with Producer(config) as producer, pytest.raises(Exception) as raised:  # noqa: PT011
                producer.send(message())
            error = raised.value
    assert "the address guard failed: KeyError" in str(error)


def test_a_mode_or_timeout_of_a_wrong_type() -> None:
    with sandbox_thread(SandboxOptions()) as box, Producer(config_of(box)) as producer:
        with pytest.raises(InvalidMessageError, match="mode is 'sync'"):
            producer.send(message(), mode="sync")  # type: ignore[arg-type]
        with pytest.raises(InvalidMessageError, match=r"timeout_ms must be an int, not .* str"):
            producer.send(message(), timeout_ms="3000")  # type: ignore[arg-type]

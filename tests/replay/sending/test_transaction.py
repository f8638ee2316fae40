"""Transactions: the half message, its outcome, the questions of a broker."""

from __future__ import annotations

import asyncio
import socket

import pytest

from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.ids.message_ids import encode_offset_id
from dissectors.remoting.messages.compression import compress
from dissectors.remoting.messages.message import StoredMessage, encode_message
from replay import AsyncProducer, Message, Producer, ProducerConfig, TransactionState
from replay.message import SendMode, SendStatus
from replay.sending.transaction import ASKED, QUESTIONS, Check, Transactions
from replay.wire.request import encode_command
from tests.patience import wait_for

from ..responder import Responder, answer, responding
from ..script import Bench, ScriptLink, stored

COMMIT, ROLLBACK, UNKNOWN = (
    TransactionState.COMMIT,
    TransactionState.ROLLBACK,
    TransactionState.UNKNOWN,
)
OFFSET_ID = encode_offset_id("127.0.0.1:10911", 4711) or ""


def storing(code: int) -> object:
    def serve(connection: socket.socket, command: RemotingCommand, body: bytes) -> None:
        fields = {"msgId": OFFSET_ID, "queueId": "0", "queueOffset": "17", "transactionId": "TX"}
        answer(connection, command, code, fields)

    return serve


def config_of(responder: Responder, **settings: object) -> ProducerConfig:
    values: dict[str, object] = {"group": "g", "namesrv": responder.address, **settings}
    return ProducerConfig(**values)  # type: ignore[arg-type]


def ends(responder: Responder) -> list[RemotingCommand]:
    """What the broker was told (37), when it has come."""
    wait_for("the end of a transaction", lambda: told(responder))
    return told(responder)


def told(responder: Responder) -> list[RemotingCommand]:
    """What the broker was told (37) so far."""
    return [command for command, _ in responder.received if command.code == 37]


@pytest.mark.parametrize("state", [COMMIT, ROLLBACK, UNKNOWN])
@pytest.mark.parametrize("blocking", [True, False])
def test_the_outcome_is_told_one_way(state: TransactionState, blocking: bool) -> None:
    with responding() as responder:
        responder.serve = storing(0)  # type: ignore[assignment]
        asked: list[Message] = []

        def execute(message: Message) -> TransactionState:
            asked.append(message)
            return state

        message = Message("T", b"half").with_delay_level(3)
        if blocking:
            with Producer(config_of(responder)) as producer:
                result = producer.send_in_transaction(message, execute)
        else:

            async def run() -> object:
                async with AsyncProducer(config_of(responder)) as producer:
                    return await producer.send_in_transaction(message, execute)

            result = asyncio.run(run())  # type: ignore[assignment]
        (end,) = ends(responder)
        (half,) = responder.sends()
        beats = [command.code for command, _ in responder.received]
    assert result.transaction_state is state
    assert asked == [message]
    assert message.properties["__transactionId__"] == "TX"
    assert half.ext_fields["f"] == "4"
    assert "TRAN_MSG\x01true" in half.ext_fields["i"]
    assert "DELAY" not in half.ext_fields["i"]
    assert beats.index(34) < beats.index(310), "the broker knows us before it has to ask"
    assert end.flag == 2
    fields = end.ext_fields
    assert fields["commitOrRollback"] == str(int(state))
    assert (fields["tranStateTableOffset"], fields["commitLogOffset"]) == ("17", "4711")
    assert (fields["msgId"], fields["transactionId"]) == (result.unique_key, "TX")
    assert (fields["producerGroup"], fields["fromTransactionCheck"]) == ("g", "false")


def test_not_stored_safely_is_rolled_back_without_asking() -> None:
    with responding() as responder:
        responder.serve = storing(12)  # type: ignore[assignment]

        def execute(message: Message) -> TransactionState:
            raise AssertionError("must not be called")

        with Producer(config_of(responder)) as producer:
            result = producer.send_in_transaction(Message("T", b"half"), execute)
        (end,) = ends(responder)
    assert result.status is SendStatus.FLUSH_SLAVE_TIMEOUT
    assert result.transaction_state is ROLLBACK
    assert end.ext_fields["commitOrRollback"] == "12"


def test_what_the_local_transaction_raises_makes_it_unknown() -> None:
    with responding() as responder:
        responder.serve = storing(0)  # type: ignore[assignment]

        def execute(message: Message) -> TransactionState:
            raise LookupError("no such account")

        with Producer(config_of(responder)) as producer:
            result = producer.send_in_transaction(Message("T", b"half"), execute)
        (end,) = ends(responder)
    assert result.transaction_state is UNKNOWN
    assert end.ext_fields["commitOrRollback"] == "0"
    assert end.remark is not None
    assert "LookupError: no such account" in end.remark


def check_frame(group: str, body: bytes = b"half", sys_flag: int = 4) -> bytes:
    """A broker's question about a half message."""
    stored = StoredMessage(
        "T", body, {"UNIQ_KEY": "ID", "PGROUP": group, "TRAN_MSG": "true"}, sys_flag=sys_flag
    )
    fields = {
        "topic": "T",
        "tranStateTableOffset": "17",
        "commitLogOffset": "4711",
        "msgId": "ID",
        "transactionId": "TX",
        "bname": "broker-0",
    }
    command = RemotingCommand(39, 1, 2, "JAVA", 479, None, fields)
    return encode_command(command, encode_message(stored))


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("raises", [False, True])
def test_a_broker_that_asks_is_answered(blocking: bool, raises: bool) -> None:
    asked: list[Message] = []

    def listen(message: Message) -> TransactionState:
        asked.append(message)
        if raises:
            raise LookupError("?")
        return COMMIT

    async def listen_later(message: Message) -> TransactionState:
        await asyncio.sleep(0)
        return listen(message)

    def serve(connection: socket.socket, command: RemotingCommand, body: bytes) -> None:
        connection.sendall(check_frame("another group"))
        connection.sendall(check_frame("g", compress(b"half" * 99, "zlib"), 4 | 1 | 0x300))
        storing(0)(connection, command, body)  # type: ignore[operator]

    with responding() as responder:
        responder.serve = serve
        if blocking:
            with Producer(config_of(responder, check_listener=listen)) as producer:
                producer.send(Message("T", b"x"))
                wait_for("it is answered", lambda: producer.poll(0.05) or told(responder))
        else:

            async def run() -> None:
                config = config_of(responder, check_listener=listen_later)
                async with AsyncProducer(config) as producer:
                    await producer.send(Message("T", b"x"))
                    for _ in range(600):
                        if told(responder):
                            break
                        await asyncio.sleep(0.05)

            asyncio.run(run())
        (end,) = ends(responder)
    (message,) = asked
    assert (message.topic, message.body) == ("T", b"half" * 99)
    assert message.properties["UNIQ_KEY"] == "ID"
    fields = end.ext_fields
    assert fields["fromTransactionCheck"] == "true"
    assert fields["commitOrRollback"] == ("0" if raises else "8")
    assert (fields["tranStateTableOffset"], fields["commitLogOffset"]) == ("17", "4711")
    assert (fields["msgId"], fields["transactionId"], fields["bname"]) == ("ID", "TX", "broker-0")
    assert end.flag == 2


def test_questions_that_wait_are_bounded_by_number_and_bytes() -> None:
    bench = Bench(check_listener=lambda _: COMMIT)
    transactions = Transactions(bench.sender)
    waiting: list[Check] = []
    transactions.on_check = waiting.append
    bomb = check_frame(bench.config.group, compress(bytes(16 << 20), "zlib"), 4 | 1 | 0x300)
    small = check_frame(bench.config.group)

    def serve(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        for _ in range(6):
            link.send(bomb)
        stored(link, command, body)

    for address in bench.brokers.values():
        bench.network.peers[address] = serve
    bench.run(bench.sender.send(Message("T", b"x"), SendMode.SYNC))
    questions = bench.config.budget.bound(*QUESTIONS)
    bodies = bench.config.budget.bound(*ASKED)
    assert (len(waiting), questions.held) == (4, 4)
    assert (bodies.held, bodies.ended) == (64 << 20, 2)
    for check in waiting:
        assert check.message.body == bytes(16 << 20)
        transactions.asked(check)
    assert (questions.held, bodies.held) == (0, 0)
    waiting.clear()
    bench.network.links[-1].send(small * 2100)
    bench.network.run(100)
    assert (len(waiting), questions.held, questions.ended) == (2000, 2000, 100)


@pytest.mark.parametrize("blocking", [True, False])
def test_a_question_is_held_until_the_application_was_asked(blocking: bool) -> None:
    def listen(message: Message) -> TransactionState:
        held.append(config.budget.bound(*QUESTIONS).held)
        raise LookupError("?")

    def serve(connection: socket.socket, command: RemotingCommand, body: bytes) -> None:
        connection.sendall(check_frame("g") * 3)
        storing(0)(connection, command, body)  # type: ignore[operator]

    held: list[int] = []
    with responding() as responder:
        responder.serve = serve
        config = config_of(responder, check_listener=listen)
        if blocking:
            with Producer(config) as producer:
                producer.send(Message("T", b"x"))
                wait_for("all are asked", lambda: producer.poll(0.05) or len(held) == 3)
        else:

            async def run() -> None:
                async with AsyncProducer(config) as producer:
                    await producer.send(Message("T", b"x"))
                    for _ in range(600):
                        if len(held) == 3:
                            break
                        await asyncio.sleep(0.05)

            asyncio.run(run())
    assert held[0] >= 1
    assert config.budget.bound(*QUESTIONS).held == config.budget.bound(*ASKED).held == 0


def test_questions_that_cannot_be_read_are_passed_over() -> None:
    def serve(connection: socket.socket, command: RemotingCommand, body: bytes) -> None:
        for junk in (b"", b"junk" * 20):
            question = RemotingCommand(39, 1, 2, "JAVA", 479, None, {})
            connection.sendall(encode_command(question, junk))
        storing(0)(connection, command, body)  # type: ignore[operator]

    with responding() as responder:
        responder.serve = serve
        config = config_of(responder, check_listener=lambda _: COMMIT)
        with Producer(config) as producer:
            assert producer.send(Message("T", b"x")).queue_offset == 17
            producer.poll(0.05)
        assert not [command for command, _ in responder.received if command.code == 37]

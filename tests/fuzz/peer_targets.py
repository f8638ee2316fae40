"""What is fuzzed beside captures: what a NameServer, a broker and files of others say.

A client on a network without sockets sends a message. Whatever its peers say, the send ends with a
result or with one of the client's own errors, and what is not the send's affair raises nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import msgspec

from dissectors.foreign import Unreadable, json_of
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.fastjson.codec import decode_json, encode_json
from replay.captured.command_log import LogReader
from replay.cluster.route import MOST_QUEUES, decode_route
from replay.errors import ClientError
from replay.message import SendMode, SendResult, TransactionState
from replay.plan.rewrite import RewriteError, rules_of
from replay.run.journal_rows import Begin, OutcomeEntry
from replay.sending.request_reply import PendingRequests
from replay.sending.transaction import Check, Transactions
from replay.wire.request import encode_command
from tests.replay.script import Bench, ScriptLink, route_body, stored
from tests.replay.sending.sends import message

from .tokens import expanded

MAX_FIELD = 30_000
_STEP = msgspec.json.Decoder(Begin | OutcomeEntry)
MOST_MS = 600_000
"""scripted time in which a send has ended"""
FIELDS = ("msgId", "queueId", "queueOffset", "transactionId", "recallHandle", "MSG_REGION")
PUSHED = (39, 40, 220, 221, 307, 309, 326, 999)
"""requests that a broker sends to a client"""
PUSHED_FIELDS = (
    *("topic", "properties", "sysFlag", "flag", "msgId", "transactionId", "tranStateTableOffset"),
    *("commitLogOffset", "bornHost", "storeHost", "queueId", "consumerGroup", "bname"),
)


def routes(data: bytes) -> None:
    """The route that a NameServer answers with: kind, queues and permission, then the text."""
    if len(data) < 3:
        return
    kind, queues, perm = data[0] & 7, data[1], data[2]
    text = expanded(data[3:])
    if kind & 1:
        whole = decode_json(route_body({"broker-a": "10.0.1.1:10911"}, queues, perm)).value
        assert isinstance(whole, dict)
        body = encode_json({**whole, "orderTopicConf": text.decode("utf-8", "replace")})
    elif kind & 4:
        body = (
            b'{"brokerDatas":[{"brokerAddrs":{"0":"10.0.1.1:10911"},"brokerName":"broker-a"}],'
            b'"queueDatas":[],"topicQueueMappingByBroker":{"broker-a":{"currIdMap":{"0":%b,"1":1},'
            b'"epoch":%b,"totalQueues":%b,"scope":"a"}}}' % (text, text, text)
        )
    else:
        body = text
    for most in (None, 4):
        route = decode_route("T", body, most)
        assert route is None or len(route.queues) <= MOST_QUEUES
    bench = Bench()

    def serve(link: ScriptLink, command: RemotingCommand, _: bytes) -> None:
        link.answer(command, 0, {}, body)

    bench.network.peers["10.0.0.1:9876"] = serve
    _sends(bench)


def answers(data: bytes) -> None:
    """What a broker answers to a send: its code, which fields have the text, the text."""
    if len(data) < 2:
        return
    code, how, text = data[0], data[1], expanded(data[2:])
    words = text.decode("utf-8", "replace")[:MAX_FIELD]
    fields = {name: words for number, name in enumerate(FIELDS) if how >> number & 1}
    complete = {"msgId": "x", "queueId": "0", "queueOffset": "7", **fields}

    def serve(link: ScriptLink, command: RemotingCommand, _: bytes) -> None:
        if command.code == 310 and how & 8:
            link.send(text)  # no frame, or whatever it is
            link.end(delay_ms=1)
        elif command.code == 310:
            link.answer(command, code, complete if how & 64 else fields, text, words)
        else:
            link.answer(command, 0, {}, text if how & 16 else b"")

    bench = Bench()
    for address in bench.brokers.values():
        bench.network.peers[address] = serve
    _sends(bench)


def pushes(data: bytes) -> None:
    """What a broker asks a client before it answers: which request, in which form, the text."""
    if len(data) < 2:
        return
    code, how, text = PUSHED[data[0] % len(PUSHED)], data[1], expanded(data[2:])
    words = text.decode("utf-8", "replace")[:MAX_FIELD]
    fields = dict.fromkeys(PUSHED_FIELDS, words) if how & 1 else {"properties": words}
    if how & 2:
        fields["sysFlag"] = str(1 | (how >> 4 & 3) << 8)
    serialize_type = "ROCKETMQ" if how & 4 else "JSON"
    asked = RemotingCommand(code, 99, 2 if how & 8 else 0, "JAVA", 479, words, fields)
    asked.serialize_type = serialize_type
    try:
        pushed = encode_command(asked, text)
    except (ValueError, OverflowError):
        return  # what the form cannot carry

    def serve(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        if not command.is_response:
            link.send(pushed)
            stored(link, command, body)

    bench = Bench(check_listener=lambda _: TransactionState.COMMIT)
    transactions = Transactions(bench.sender)
    PendingRequests(bench.sender)
    asked_back: list[Check] = []
    transactions.on_check = asked_back.append
    for address in bench.brokers.values():
        bench.network.peers[address] = serve
    _sends(bench)
    for check in asked_back:
        bench.run(transactions.respond(check, TransactionState.COMMIT))


def lines(data: bytes) -> None:
    """Files that somebody else wrote: a log of commands, rows of a journal, a TOML file."""
    if not data:
        return
    kind, text = data[0] % 3, expanded(data[1:])
    if kind == 2:
        with suppress(RewriteError):
            rules_of(text, "x")
        return
    if kind == 1:
        with suppress(Unreadable):
            json_of(_STEP, text)
        return
    log = LogReader("x", _Refused)
    with suppress(_Refused):
        for row in (*log.receive(text + b"\n"), *log.finish()):
            log.seen_of(row, log.command_of(row))


class _Refused(Exception):
    """What a log says that it cannot read."""


def _sends(bench: Bench) -> None:
    """Send a message; the time goes by until that has ended, and a little longer."""
    operation = bench.run(bench.sender.send(message(), SendMode.SYNC), MOST_MS)
    if operation.error is not None:
        assert isinstance(operation.error, ClientError), operation.error
    else:
        assert isinstance(operation.result, SendResult)
    bench.network.run(1000)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "routes": routes,
    "answers": answers,
    "pushes": pushes,
    "lines": lines,
}
"""name and what takes the bytes"""

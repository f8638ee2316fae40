"""Rows of the messages in gRPC calls: sent, received, acknowledged, ended.

RocketMQ: rocketmq-apis, service.proto; ReceiptHandle, SendMessageActivity of the proxy.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Final

from ..conversations.conversation import Pdu
from ..grpc.bodies import body_of_message, call_trees, messages_in
from ..grpc.columns import resource_at
from ..grpc.command import CallCommand
from ..grpc.tree import Tree, nanoseconds_at, number_at, text_at, tree_at, trees_at
from ..remoting.ids.pop_receipts import PopReceipt, decode_pop_receipt
from ..rows.message_record import (
    ACKNOWLEDGED,
    CHECKED,
    COMMITTED,
    DEAD,
    DELIVERED,
    PREPARED,
    RECALLED,
    REFUSED,
    RETURNED,
    ROLLED_BACK,
    SENT,
    STORED,
    THIS,
    UNDECIDED,
)
from .seen_exchange import Facts, MessageEvent, SeenExchange

OK: Final = "OK"
_DECISIONS: Final = {"COMMIT": COMMITTED, "ROLLBACK": ROLLED_BACK}
Maker = Callable[[SeenExchange, Tree, list[Tree]], Iterator[MessageEvent]]


def rows_of_call(seen: SeenExchange) -> Iterator[MessageEvent]:
    """Yield the rows of the messages in a call."""
    make = _MAKERS.get(seen.row.request_name or "")
    request_trees = _trees(seen.request)
    if make is not None and request_trees:
        yield from make(seen, request_trees[0], _trees(seen.response))


def _trees(pdu: Pdu | None) -> list[Tree]:
    if pdu is None or not isinstance(pdu.command, CallCommand):
        return []
    return [tree for _, tree, _ in call_trees(pdu.command, pdu.body)]


def _of_send(seen: SeenExchange, request: Tree, responses: list[Tree]) -> Iterator[MessageEvent]:
    results = trees_at(responses[0], "entries") if responses else []
    for place, message in enumerate(messages_in(request)):
        result = results[place] if place < len(results) else {}
        facts = _facts_of(message, seen)
        transaction = facts.transaction_id or text_at(result, "transaction_id")
        half = text_at(message, "system_properties", "message_type") == "TRANSACTION"
        event = _sent(seen, result, PREPARED if half else STORED)
        in_queue = event == STORED and facts.deliver_time is None  # otherwise in another queue
        facts = facts._replace(
            # Protobuf omits zeros: a missing offset is the first one of the queue.
            queue_offset=(number_at(result, "offset") or 0) if in_queue else None,
            transaction_id=transaction if half else None,
            reconsume_times=None,
            queue_id=None,
        )
        yield MessageEvent(event, place, facts)


def _sent(seen: SeenExchange, result: Tree, stored: str) -> str:
    name = text_at(result, "status", "code") or seen.row.response_name
    if name is None:
        return SENT
    return stored if name == OK else REFUSED


def _of_received(
    seen: SeenExchange, request: Tree, responses: list[Tree]
) -> Iterator[MessageEvent]:
    group = resource_at(request, "group")
    place = 0
    for tree in responses:
        for message in messages_in(tree):
            facts = _facts_of(message, seen)._replace(consumer_group=group)
            yield MessageEvent(DELIVERED, place, facts)
            place += 1


def _of_ack(seen: SeenExchange, request: Tree, responses: list[Tree]) -> Iterator[MessageEvent]:
    results = trees_at(responses[0], "entries") if responses else []
    for place, entry in enumerate(trees_at(request, "entries")):
        name = text_at(results[place], "status", "code") if place < len(results) else None
        event = ACKNOWLEDGED if (name or seen.row.response_name) in (OK, None) else REFUSED
        yield MessageEvent(
            event, place, _facts_of_entry(request, entry, seen)._replace(covers=THIS)
        )


def _of_new_time(
    seen: SeenExchange, request: Tree, responses: list[Tree]
) -> Iterator[MessageEvent]:
    receipt = _receipt_of(responses[0]) if responses else None
    due = None
    if receipt is not None:
        due = (receipt.pop_time + receipt.invisible_time) * 1_000_000
    facts = _facts_of_entry(request, request, seen)._replace(deliver_time=due)
    yield MessageEvent(_event(seen, RETURNED), 0, facts)


def _of_dead(seen: SeenExchange, request: Tree, responses: list[Tree]) -> Iterator[MessageEvent]:  # noqa: ARG001
    yield MessageEvent(_event(seen, DEAD), 0, _facts_of_entry(request, request, seen))


def _of_end(seen: SeenExchange, request: Tree, responses: list[Tree]) -> Iterator[MessageEvent]:  # noqa: ARG001
    topic = resource_at(request, "topic")
    facts = Facts(
        topic,
        topic,
        unique_key=text_at(request, "message_id"),
        transaction_id=text_at(request, "transaction_id"),
    )
    event = _DECISIONS.get(text_at(request, "resolution") or "", UNDECIDED)
    yield MessageEvent(_event(seen, event), 0, facts)


def _of_recall(seen: SeenExchange, request: Tree, responses: list[Tree]) -> Iterator[MessageEvent]:
    topic = resource_at(request, "topic")
    key = text_at(responses[0], "message_id") if responses else None
    yield MessageEvent(_event(seen, RECALLED), 0, Facts(topic, topic, unique_key=key))


def _of_check(seen: SeenExchange, request: Tree, responses: list[Tree]) -> Iterator[MessageEvent]:  # noqa: ARG001
    command = tree_at(request, "recover_orphaned_transaction_command")
    for place, message in enumerate(messages_in(command)):
        facts = _facts_of(message, seen)._replace(transaction_id=text_at(command, "transaction_id"))
        yield MessageEvent(CHECKED, place, facts, from_broker=True)


def _event(seen: SeenExchange, event: str) -> str:
    return event if seen.row.response_name in (OK, None) else REFUSED


def _facts_of_entry(request: Tree, entry: Tree, seen: SeenExchange) -> Facts:
    """Return the facts of the message in an acknowledgement or a return."""
    receipt = _receipt_of(entry)
    topic, group = resource_at(request, "topic"), seen.row.group
    # Only the receipt handle shows that a message is in a retry topic: calls name the original one.
    queue = receipt.retry_topic(group, topic) if receipt and group and topic else topic
    return Facts(
        queue,
        topic,
        receipt.queue_id if receipt is not None else None,
        receipt.queue_offset if receipt is not None else None,
        consumer_group=group,
        unique_key=text_at(entry, "message_id"),
    )


def _receipt_of(tree: Tree) -> PopReceipt | None:
    text = text_at(tree, "receipt_handle")
    return decode_pop_receipt(text) if text else None


def _facts_of(message: Tree, seen: SeenExchange) -> Facts:
    """Return the facts in a message."""
    system = tree_at(message, "system_properties")
    topic = resource_at(message, "topic")
    receipt = _receipt_of(system)
    keys = system.get("keys")
    body = message.get("body")
    attempt = number_at(system, "delivery_attempt")
    group = seen.row.group
    queue = receipt.retry_topic(group, topic) if receipt and group and topic else topic
    form, text = _shown(message, seen)
    return Facts(
        queue,
        topic,
        receipt.queue_id if receipt is not None else number_at(system, "queue_id"),
        number_at(system, "queue_offset") or 0 if receipt is not None else None,
        unique_key=text_at(system, "message_id"),
        keys=" ".join(str(key) for key in keys) if isinstance(keys, list) else None,
        tags=text_at(system, "tag"),
        born_time=nanoseconds_at(system, "born_timestamp"),
        store_time=nanoseconds_at(system, "store_timestamp"),
        deliver_time=nanoseconds_at(system, "delivery_timestamp"),
        reconsume_times=max(attempt - 1, 0) if attempt is not None else None,  # it counts from 1
        body_bytes=len(body) if isinstance(body, bytes) else 0,
        body_form=form,
        body=text,
    )


def _shown(message: Tree, seen: SeenExchange) -> tuple[str | None, str | None]:
    """Return form and text of the first bytes of a body, or (None, None) if not requested."""
    if seen.body_limit <= 0:
        return None, None
    data = body_of_message(message, seen.budget)[: seen.body_limit]
    try:
        return "text", data.decode()
    except UnicodeDecodeError:
        return "base64", base64.b64encode(data).decode()


_MAKERS: Final[dict[str, Maker]] = {
    "SendMessage": _of_send,
    "ReceiveMessage": _of_received,
    "PullMessage": _of_received,
    "AckMessage": _of_ack,
    "ChangeInvisibleDuration": _of_new_time,
    "ForwardMessageToDeadLetterQueue": _of_dead,
    "EndTransaction": _of_end,
    "RecallMessage": _of_recall,
    "RecoverOrphanedTransaction": _of_check,
}
"""operation → builder of its message rows"""

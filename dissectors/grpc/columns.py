"""Row columns from the messages of calls.

One function per message type that fills columns. RocketMQ: rocketmq-apis, service.proto;
GrpcMessagingApplication.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..remoting.row_facts.ext_fields import deadline_of
from ..remoting.row_facts.names import (
    CHECKED,
    CLIENT_TYPE,
    DEADLINE_MS,
    DECISION,
    DELIVER_MS,
    ENDPOINT,
    FIFO,
    MAX_FACTS,
    MESSAGE_GROUP,
    MESSAGE_TYPE,
    RECONSUME_LIMIT,
    RECONSUMED,
    REQUESTED_ENDPOINT,
    STORED_MS,
    SUBSCRIPTION,
    TIMER,
    TRANSACTION,
    TRANSACTION_ID,
    fact,
    present_facts,
)
from ..times import SECOND
from .command import CallColumns
from .tree import Tree, nanoseconds_at, number_at, text_at, tree_at, trees_at

_DECISIONS: Final = {"COMMIT": "commit", "ROLLBACK": "rollback"}
_MILLI: Final = 1_000_000
_TIMES: Final = ("delivery_timestamp", "born_timestamp", "store_timestamp")


def resource_at(tree: Tree, name: str) -> str | None:
    """Return the name of a topic or group, prefixed with its namespace if it has one."""
    resource = tree_at(tree, name)
    text, space = text_at(resource, "name"), text_at(resource, "resource_namespace")
    return f"{space}%{text}" if space and text else text


def columns_of(type_name: str, tree: Tree) -> CallColumns:
    """Return the columns of a message."""
    make = _MAKERS.get(type_name, _common)
    return make(tree)


def _common(tree: Tree) -> CallColumns:
    """Return the columns that many requests share."""
    queue = tree_at(tree, "message_queue")
    topic = resource_at(queue, "topic") if queue else resource_at(tree, "topic")
    return CallColumns(
        topic=topic,
        group=resource_at(tree, "group"),
        # proto3 writes no zeros: a queue of a broker without an id is queue 0.
        queue_id=(number_at(queue, "id") or 0) if queue and "broker" in queue else None,
        broker_name=text_at(queue, "broker", "name"),
        unique_key=text_at(tree, "message_id"),
        queue_offset=number_at(tree, "offset"),
    )


def _of_send(tree: Tree) -> CallColumns:
    messages = trees_at(tree, "messages")
    columns = _of_message(messages[0]) if messages else CallColumns()
    columns.message_count = len(messages)
    columns.body_bytes = sum(_body_bytes(message) for message in messages)
    return columns


def _of_message(message: Tree) -> CallColumns:
    """Return the columns of a sent message."""
    system = tree_at(message, "system_properties")
    keys = system.get("keys")
    kind = text_at(system, "message_type")
    due = nanoseconds_at(system, "delivery_timestamp")
    return CallColumns(
        topic=resource_at(message, "topic"),
        unique_key=text_at(system, "message_id"),
        keys=" ".join(str(key) for key in keys) if isinstance(keys, list) else None,
        tags=text_at(system, "tag"),
        facts=[
            *present_facts((MESSAGE_TYPE, kind), (MESSAGE_GROUP, text_at(system, "message_group"))),
            *([fact(TRANSACTION, "prepared")] if kind == "TRANSACTION" else []),
            *([fact(DELIVER_MS, due // _MILLI)] if due is not None else []),
        ],
    )


def _of_send_result(tree: Tree) -> CallColumns:
    entries = trees_at(tree, "entries")
    if not entries:
        return CallColumns()
    first = entries[0]
    stored = text_at(first, "status", "code") == "OK"
    return CallColumns(
        unique_key=text_at(first, "message_id"),
        # A failed entry has no offset, which would read as 0.
        queue_offset=(number_at(first, "offset") or 0) if stored else None,
        facts=present_facts((TRANSACTION_ID, text_at(first, "transaction_id"))),
    )


def _of_received(tree: Tree) -> CallColumns:
    message = tree_at(tree, "message")
    if not message:
        return CallColumns()
    system = tree_at(message, "system_properties")
    return CallColumns(
        unique_key=text_at(system, "message_id"),
        queue_id=number_at(system, "queue_id") or 0,
        queue_offset=number_at(system, "queue_offset") or 0,
        body_bytes=_body_bytes(message),
        message_count=1,
        facts=[
            *_stored_in(system),
            *present_facts((MESSAGE_GROUP, text_at(system, "message_group"))),
            *_attempts_in(system),
            *_delays_in(system),
        ],
    )


def _stored_in(system: Tree) -> list[str]:
    stored = nanoseconds_at(system, "store_timestamp")
    return [] if stored is None else [fact(STORED_MS, stored // _MILLI)]


def _attempts_in(system: Tree) -> list[str]:
    """Return how often a message was delivered before, if it was."""
    again = (number_at(system, "delivery_attempt") or 0) - 1
    return [fact(RECONSUMED, again)] if again > 0 else []


def _delays_in(system: Tree) -> list[str]:
    """Return the delays of a delayed message."""
    due, created, stored = (nanoseconds_at(system, name) for name in _TIMES)
    if due is None or created is None or stored is None:
        return []
    # stored again when due; a second early is in time, as timers have steps
    late = "-" if stored < due - SECOND else str((stored - due) // _MILLI)
    return [fact(TIMER, f"{(due - created) // _MILLI} {(stored - created) // _MILLI} {late}")]


def _of_ack(tree: Tree) -> CallColumns:
    columns = _common(tree)
    entries = trees_at(tree, "entries")
    columns.message_count = len(entries)
    if entries:
        columns.unique_key = text_at(entries[0], "message_id")
        columns.facts = _deadline_in(entries[0])
    return columns


def _of_change(tree: Tree) -> CallColumns:
    columns = _common(tree)
    columns.facts = _deadline_in(tree)
    return columns


def _deadline_in(tree: Tree) -> list[str]:
    return present_facts((DEADLINE_MS, deadline_of(text_at(tree, "receipt_handle"))))


def _of_route_request(tree: Tree) -> CallColumns:
    columns = _common(tree)
    addresses = _addresses_at(tree, "endpoints")
    columns.facts = [fact(REQUESTED_ENDPOINT, address) for address in addresses[:MAX_FACTS]]
    return columns


def _of_route(tree: Tree) -> CallColumns:
    """Return the addresses of the queues of a route."""
    columns = _common(tree)
    named = dict.fromkeys(
        address
        for queue in trees_at(tree, "message_queues")
        for address in _addresses_at(tree_at(queue, "broker"), "endpoints")
    )
    columns.facts = [fact(ENDPOINT, endpoint) for endpoint in list(named)[:MAX_FACTS]]
    return columns


def _addresses_at(tree: Tree, name: str) -> list[str]:
    addresses = []
    for address in trees_at(tree_at(tree, name), "addresses"):
        host, port = text_at(address, "host"), number_at(address, "port")
        if host and port:
            addresses.append(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    return addresses


def _of_dead(tree: Tree) -> CallColumns:
    columns = _common(tree)
    attempts = ((RECONSUMED, "delivery_attempt"), (RECONSUME_LIMIT, "max_delivery_attempts"))
    columns.facts = [fact(name, number_at(tree, field) or 0) for name, field in attempts]
    return columns


def _of_end(tree: Tree) -> CallColumns:
    columns = _common(tree)
    resolution = text_at(tree, "resolution")
    checked = text_at(tree, "source") == "SOURCE_SERVER_CHECK"
    columns.facts = present_facts(
        (DECISION, _DECISIONS.get(resolution or "", "unknown")),
        (CHECKED, "true" if checked else None),
        (TRANSACTION_ID, text_at(tree, "transaction_id")),
    )
    return columns


def _of_heartbeat(tree: Tree) -> CallColumns:
    columns = _common(tree)
    columns.facts = present_facts((CLIENT_TYPE, text_at(tree, "client_type")))
    return columns


def _of_telemetry(tree: Tree) -> CallColumns:
    settings = tree_at(tree, "settings")
    if settings:
        return _of_settings(settings)
    for name in ("recover_orphaned_transaction_command", "verify_message_command"):
        command = tree_at(tree, name)
        if command:
            columns = _of_message(tree_at(command, "message"))
            columns.facts = present_facts((TRANSACTION_ID, text_at(command, "transaction_id")))
            return columns
    return CallColumns()


def _of_settings(settings: Tree) -> CallColumns:
    kind = text_at(settings, "client_type")
    subscription = tree_at(settings, "subscription")
    group = resource_at(subscription, "group")
    facts = present_facts((CLIENT_TYPE, kind))
    if isinstance(fifo := subscription.get("fifo"), bool):
        facts.append(fact(FIFO, str(fifo).lower()))
    for entry in trees_at(subscription, "subscriptions")[:MAX_FACTS]:
        topic = resource_at(entry, "topic")
        how = text_at(entry, "expression", "type") or "-"
        text = text_at(entry, "expression", "expression") or "*"
        facts.append(fact(SUBSCRIPTION, f"{group} {topic} {how} {text}"))
    topics = tree_at(settings, "publishing").get("topics")
    names = [
        resource_at({"topic": topic}, "topic")
        for topic in (topics if isinstance(topics, list) else [])
    ]
    return CallColumns(topic=names[0] if len(names) == 1 else None, group=group, facts=facts)


def _body_bytes(message: Tree) -> int:
    body = message.get("body")
    return len(body) if isinstance(body, bytes) else 0


_MAKERS: Final[dict[str, Callable[[Tree], CallColumns]]] = {
    "SendMessageRequest": _of_send,
    "SendMessageResponse": _of_send_result,
    "ReceiveMessageResponse": _of_received,
    "PullMessageResponse": _of_received,
    "AckMessageRequest": _of_ack,
    "ChangeInvisibleDurationRequest": _of_change,
    "QueryRouteRequest": _of_route_request,
    "QueryRouteResponse": _of_route,
    "ForwardMessageToDeadLetterQueueRequest": _of_dead,
    "EndTransactionRequest": _of_end,
    "HeartbeatRequest": _of_heartbeat,
    "TelemetryCommand": _of_telemetry,
}
"""Message type → function for its columns; other types have the common ones."""

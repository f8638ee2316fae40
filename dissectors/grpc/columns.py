"""What messages of calls say of the columns of a row.

One function a message type, as far as it says anything. RocketMQ: rocketmq-apis, service.proto;
GrpcMessagingApplication.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..remoting.row_facts.ext_fields import deadline_of
from ..remoting.row_facts.names import (
    ASKED_ENDPOINT,
    CHECKED,
    CLIENT_TYPE,
    DEADLINE_MS,
    DECISION,
    DELIVER_MS,
    ENDPOINT,
    MAX_FACTS,
    MESSAGE_GROUP,
    MESSAGE_TYPE,
    RECONSUME_LIMIT,
    RECONSUMED,
    SUBSCRIPTION,
    TRANSACTION,
    TRANSACTION_ID,
    fact,
    given,
)
from .command import CallColumns
from .tree import Tree, nanoseconds_at, number_at, text_at, tree_at, trees_at

_DECISIONS: Final = {"COMMIT": "commit", "ROLLBACK": "rollback"}
_MILLI: Final = 1_000_000


def resource_at(tree: Tree, name: str) -> str | None:
    """Return the name of a topic or group, behind its namespace where it has one."""
    resource = tree_at(tree, name)
    text, space = text_at(resource, "name"), text_at(resource, "resource_namespace")
    return f"{space}%{text}" if space and text else text


def columns_of(type_name: str, tree: Tree) -> CallColumns:
    """Return what a message says."""
    make = _MAKERS.get(type_name, _common)
    return make(tree)


def _common(tree: Tree) -> CallColumns:
    """Return what many requests say alike."""
    queue = tree_at(tree, "message_queue")
    topic = resource_at(queue, "topic") if queue else resource_at(tree, "topic")
    return CallColumns(
        topic=topic,
        group=resource_at(tree, "group"),
        queue_id=(number_at(queue, "id") or 0) if queue and "broker" in queue else None,
        broker_name=text_at(queue, "broker", "name"),
        unique_key=text_at(tree, "message_id"),
        queue_offset=number_at(tree, "offset"),
    )


def _of_send(tree: Tree) -> CallColumns:
    messages = trees_at(tree, "messages")
    columns = _of_message(messages[0]) if messages else CallColumns()
    columns.message_count = len(messages)
    columns.body_bytes = sum(_body_bytes(one) for one in messages)
    return columns


def _of_message(message: Tree) -> CallColumns:
    """Return what a message that is sent says."""
    system = tree_at(message, "system_properties")
    keys = system.get("keys")
    kind = text_at(system, "message_type")
    due = nanoseconds_at(system, "delivery_timestamp")
    return CallColumns(
        topic=resource_at(message, "topic"),
        unique_key=text_at(system, "message_id"),
        keys=" ".join(str(one) for one in keys) if isinstance(keys, list) else None,
        tags=text_at(system, "tag"),
        facts=[
            *given((MESSAGE_TYPE, kind), (MESSAGE_GROUP, text_at(system, "message_group"))),
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
        queue_offset=(number_at(first, "offset") or 0) if stored else None,
        facts=given((TRANSACTION_ID, text_at(first, "transaction_id"))),
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
    )


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
    return given((DEADLINE_MS, deadline_of(text_at(tree, "receipt_handle"))))


def _of_route_request(tree: Tree) -> CallColumns:
    columns = _common(tree)
    columns.facts = [fact(ASKED_ENDPOINT, one) for one in _addresses_at(tree, "endpoints")]
    return columns


def _of_route(tree: Tree) -> CallColumns:
    """Return the addresses that the queues of a route are at."""
    columns = _common(tree)
    named = dict.fromkeys(
        address
        for queue in trees_at(tree, "message_queues")
        for address in _addresses_at(tree_at(queue, "broker"), "endpoints")
    )
    columns.facts = [fact(ENDPOINT, one) for one in list(named)[:MAX_FACTS]]
    return columns


def _addresses_at(tree: Tree, name: str) -> list[str]:
    found = []
    for one in trees_at(tree_at(tree, name), "addresses"):
        host, port = text_at(one, "host"), number_at(one, "port")
        if host and port:
            found.append(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    return found


def _of_dead(tree: Tree) -> CallColumns:
    columns = _common(tree)
    attempts = ((RECONSUMED, "delivery_attempt"), (RECONSUME_LIMIT, "max_delivery_attempts"))
    columns.facts = [fact(name, number_at(tree, field) or 0) for name, field in attempts]
    return columns


def _of_end(tree: Tree) -> CallColumns:
    columns = _common(tree)
    resolution = text_at(tree, "resolution")
    checked = text_at(tree, "source") == "SOURCE_SERVER_CHECK"
    columns.facts = given(
        (DECISION, _DECISIONS.get(resolution or "", "unknown")),
        (CHECKED, "true" if checked else None),
        (TRANSACTION_ID, text_at(tree, "transaction_id")),
    )
    return columns


def _of_heartbeat(tree: Tree) -> CallColumns:
    columns = _common(tree)
    columns.facts = given((CLIENT_TYPE, text_at(tree, "client_type")))
    return columns


def _of_telemetry(tree: Tree) -> CallColumns:
    settings = tree_at(tree, "settings")
    if settings:
        return _of_settings(settings)
    for name in ("recover_orphaned_transaction_command", "verify_message_command"):
        command = tree_at(tree, name)
        if command:
            columns = _of_message(tree_at(command, "message"))
            columns.facts = given((TRANSACTION_ID, text_at(command, "transaction_id")))
            return columns
    return CallColumns()


def _of_settings(settings: Tree) -> CallColumns:
    kind = text_at(settings, "client_type")
    subscription = tree_at(settings, "subscription")
    group = resource_at(subscription, "group")
    facts = given((CLIENT_TYPE, kind))
    for entry in trees_at(subscription, "subscriptions"):
        topic = resource_at(entry, "topic")
        how = text_at(entry, "expression", "type") or "-"
        text = text_at(entry, "expression", "expression") or "*"
        facts.append(fact(SUBSCRIPTION, f"{group} {topic} {how} {text}"))
    topics = tree_at(settings, "publishing").get("topics")
    names = [
        resource_at({"topic": one}, "topic") for one in (topics if isinstance(topics, list) else [])
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
"""Message type → what takes its columns; all others have the common ones."""

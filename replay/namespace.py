"""Namespaces: names wrapped in one (version 1), or ext fields that say one (version 2).

Rules: prefixes of retry and dead-letter topics stay outermost; system topics and groups are not
wrapped; wrapping twice is wrapping once.
RocketMQ: NamespaceUtil, NamespaceRpcHook, TopicValidator.isSystemTopic, MixAll.isSysConsumerGroup.
"""

from __future__ import annotations

from typing import Final

SEPARATOR: Final = "%"
RETRY: Final = "%RETRY%"
DLQ: Final = "%DLQ%"

SYSTEM_TOPICS: Final = frozenset(
    (
        "TBW102",
        "SCHEDULE_TOPIC_XXXX",
        "BenchmarkTest",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRACE_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
        "CHECKPOINT_TOPIC",
    )
)
"""Topics that belong to RocketMQ itself, besides those that start with `rmq_sys_`."""
SYSTEM_GROUPS: Final = frozenset(
    ("CLIENT_INNER_PRODUCER", "SELF_TEST_P_GROUP", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER")
)


def is_system_topic(topic: str) -> bool:
    """Whether the topic is one of RocketMQ's own."""
    return topic in SYSTEM_TOPICS or topic.startswith("rmq_sys_")


def wrap_namespace(namespace: str, name: str) -> str:
    """Return the topic or group `name` within a namespace; unchanged without one, or if it
    has it.
    """
    if not namespace or not name or _is_system(name):
        return name
    prefix, rest = _prefix_of(name)
    if rest.startswith(namespace + SEPARATOR):
        return name
    return f"{prefix}{namespace}{SEPARATOR}{rest}"


def unwrap_namespace(namespace: str, name: str) -> str:
    """Return the topic or group without its namespace; unchanged if it has another one."""
    if not namespace or _is_system(name):
        return name
    prefix, rest = _prefix_of(name)
    return prefix + rest.removeprefix(namespace + SEPARATOR)


def namespace_fields(namespace: str) -> dict[str, str]:
    """Ext fields that say a namespace of version 2 on a request; none without one."""
    return {"nsd": "true", "ns": namespace} if namespace else {}


def _is_system(name: str) -> bool:
    return is_system_topic(name) or name in SYSTEM_GROUPS or name.startswith("CID_RMQ_SYS_")


def _prefix_of(name: str) -> tuple[str, str]:
    for prefix in (RETRY, DLQ):
        if name.startswith(prefix):
            return prefix, name[len(prefix) :]
    return "", name

"""Namespaces: as a prefix of names (version 1), or as ext fields (version 2).

Rules: prefixes of retry and dead-letter topics stay outermost; system topics and groups are not
wrapped; wrapping twice is wrapping once.
RocketMQ: NamespaceUtil, NamespaceRpcHook, TopicValidator.isSystemTopic, MixAll.isSysConsumerGroup.
"""

from __future__ import annotations

from typing import Final

from dissectors.remoting.topic_names import (
    DLQ_PREFIX,
    INNER_PRODUCER,
    RETRY_PREFIX,
    is_system_topic,
)

SEPARATOR: Final = "%"
SYSTEM_GROUPS: Final = frozenset(
    (INNER_PRODUCER, "SELF_TEST_P_GROUP", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER")
)


def wrap_namespace(namespace: str, name: str) -> str:
    """Return the topic or group with a namespace; unchanged if there is none or it has it."""
    if not namespace or not name or _is_system(name):
        return name
    prefix, rest = _prefix_of(name)
    if rest.startswith(namespace + SEPARATOR):
        return name
    return f"{prefix}{namespace}{SEPARATOR}{rest}"


def unwrap_namespace(namespace: str, name: str) -> str:
    """Return the topic or group without this namespace; unchanged if it has another."""
    if not namespace or _is_system(name):
        return name
    prefix, rest = _prefix_of(name)
    return prefix + rest.removeprefix(namespace + SEPARATOR)


def namespace_fields(namespace: str) -> dict[str, str]:
    """Return the ext fields of a version 2 namespace; none if there is no namespace."""
    return {"nsd": "true", "ns": namespace} if namespace else {}


def _is_system(name: str) -> bool:
    return is_system_topic(name) or name in SYSTEM_GROUPS or name.startswith("CID_RMQ_SYS_")


def _prefix_of(name: str) -> tuple[str, str]:
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(prefix):
            return prefix, name[len(prefix) :]
    return "", name

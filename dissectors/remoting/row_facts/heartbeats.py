"""Facts of heartbeats: clients, their groups and subscriptions.

RocketMQ: HeartbeatData.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .names import (
    CLIENT,
    CONSUME_FROM,
    CONSUMER,
    MAX_FACTS,
    PRODUCER,
    SUBSCRIPTION,
    fact,
    facts_in,
    present_facts,
)
from .values import objects_in, text_in


def heartbeat_facts(value: dict[str, object]) -> list[str]:
    """Return the facts in the body of a heartbeat."""
    client = present_facts((CLIENT, text_in(value.get("clientID"))))
    facts: list[str] = []
    for group in objects_in(value.get("producerDataSet")):
        if name := text_in(group.get("groupName")):
            facts.append(fact(PRODUCER, name))
    for group in objects_in(value.get("consumerDataSet")):
        name = text_in(group.get("groupName"))
        if name is None:
            continue
        kind = (text_in(group.get("consumeType")) or "-").upper()  # Java's readers ignore case
        model = (text_in(group.get("messageModel")) or "-").upper()
        facts.append(fact(CONSUMER, f"{kind} {model} {name}"))
        if where := text_in(group.get("consumeFromWhere")):
            facts.append(fact(CONSUME_FROM, f"{where.upper()} {name}"))
        # A short V2 heartbeat (withoutSub) has none: the subscriptions announced before stay valid.
        for subscription in objects_in(group.get("subscriptionDataSet")):
            topic = text_in(subscription.get("topic")) or "-"
            type_ = text_in(subscription.get("expressionType")) or "TAG"
            expression = text_in(subscription.get("subString")) or "*"
            facts.append(fact(SUBSCRIPTION, f"{name} {topic} {type_} {expression}"))
    return client + facts[:MAX_FACTS]


class AnnouncedSubscription(NamedTuple):
    """A subscription in a heartbeat."""

    group: str
    topic: str
    type: str
    expression: str


def subscriptions_in(facts: Iterable[str]) -> list[AnnouncedSubscription]:
    """Return the subscriptions in a heartbeat."""
    parts = (value.split(" ", 3) for value in facts_in(facts, SUBSCRIPTION))
    return [AnnouncedSubscription(*part) for part in parts if len(part) == 4]


class AnnouncedGroup(NamedTuple):
    """A consumer group in a heartbeat."""

    type: str
    """CONSUME_ACTIVELY (pull) or CONSUME_PASSIVELY (push)"""
    model: str
    """CLUSTERING or BROADCASTING"""
    name: str


def starts_in(facts: Iterable[str]) -> dict[str, str]:
    """Return group → start position without an offset, from a heartbeat."""
    parts = (value.split(" ", 1) for value in facts_in(facts, CONSUME_FROM))
    return {part[1]: part[0] for part in parts if len(part) == 2}


def consumers_in(facts: Iterable[str]) -> list[AnnouncedGroup]:
    """Return the consumer groups in a heartbeat."""
    parts = (value.split(" ", 2) for value in facts_in(facts, CONSUMER))
    return [AnnouncedGroup(*part) for part in parts if len(part) == 3]

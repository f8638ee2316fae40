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
    given,
)
from .values import objects_in, text_in


def heartbeat_facts(value: dict[str, object]) -> list[str]:
    """Return the facts in the body of a heartbeat."""
    facts = given((CLIENT, text_in(value.get("clientID"))))
    for group in objects_in(value.get("producerDataSet")):
        if name := text_in(group.get("groupName")):
            facts.append(fact(PRODUCER, name))
    for group in objects_in(value.get("consumerDataSet")):
        name = text_in(group.get("groupName"))
        if name is None:
            continue
        kind = (text_in(group.get("consumeType")) or "-").upper()  # Java's readers ignore the case
        model = (text_in(group.get("messageModel")) or "-").upper()
        facts.append(fact(CONSUMER, f"{kind} {model} {name}"))
        if where := text_in(group.get("consumeFromWhere")):
            facts.append(fact(CONSUME_FROM, f"{where.upper()} {name}"))
        for one in objects_in(group.get("subscriptionDataSet")):
            topic = text_in(one.get("topic")) or "-"
            type_ = text_in(one.get("expressionType")) or "TAG"
            expression = text_in(one.get("subString")) or "*"
            facts.append(fact(SUBSCRIPTION, f"{name} {topic} {type_} {expression}"))
    return facts[:MAX_FACTS]


class AnnouncedSubscription(NamedTuple):
    """One subscription of a heartbeat."""

    group: str
    topic: str
    type: str
    expression: str


def subscriptions_in(facts: Iterable[str]) -> list[AnnouncedSubscription]:
    """Return the subscriptions that a heartbeat announces."""
    parts = (value.split(" ", 3) for value in facts_in(facts, SUBSCRIPTION))
    return [AnnouncedSubscription(*one) for one in parts if len(one) == 4]


class AnnouncedGroup(NamedTuple):
    """One consumer group of a heartbeat."""

    type: str
    """CONSUME_ACTIVELY (pull) or CONSUME_PASSIVELY (push)"""
    model: str
    """CLUSTERING or BROADCASTING"""
    name: str


def starts_in(facts: Iterable[str]) -> dict[str, str]:
    """Return group -> where it starts without an offset, as a heartbeat announces it."""
    parts = (value.split(" ", 1) for value in facts_in(facts, CONSUME_FROM))
    return {one[1]: one[0] for one in parts if len(one) == 2}


def consumers_in(facts: Iterable[str]) -> list[AnnouncedGroup]:
    """Return the consumer groups that a heartbeat announces."""
    parts = (value.split(" ", 2) for value in facts_in(facts, CONSUMER))
    return [AnnouncedGroup(*one) for one in parts if len(one) == 3]

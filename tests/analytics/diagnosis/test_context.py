"""Context: names by the second port, and how whole a capture is."""

from __future__ import annotations

from analytics.diagnosis.context import Context
from dissectors.remoting.codes import RequestCode

from .made_rows import BROKER, connection, exchange, oneway

REGISTER = int(RequestCode.REGISTER_BROKER)


def test_a_broker_has_its_name_on_the_second_port_too() -> None:
    context = Context()
    context.add_exchange(exchange(0, REGISTER, brokers=[f"broker-a={BROKER}"]))
    assert context.broker(BROKER) == "broker-a"
    assert context.broker("10.0.0.1:10909") == "broker-a"
    assert context.own_address("10.0.0.1:10909") == BROKER
    assert context.broker("10.0.0.1:10908") == "10.0.0.1:10908"


def test_one_side_alone_is_a_loss_only_where_an_answer_is_missing() -> None:
    one_sided = connection(0, 9, directions="client")
    context = Context()
    context.add_connection(one_sided)
    context.add_exchange(oneway(0, REGISTER))
    assert context.quality.reasons() == []
    context.add_exchange(exchange(1, REGISTER, None))
    assert context.quality.reasons() == ["one direction of 1 connections was not captured"]
    other = Context()
    other.merge(context)
    assert other.quality.one_direction == 1

"""The messages of a call in JSON types: what its request or response carried, taken apart.

Bodies of RocketMQ messages are given as text where they are UTF-8 and as base64 otherwise, and
opened where the client compressed them.
"""

from __future__ import annotations

import base64

from ..budget import Budget
from ..conversations.conversation import Pdu
from ..grpc.bodies import body_of_message, call_trees
from ..grpc.command import CallCommand
from ..remoting.bodies import Body


def call_body_of(pdu: Pdu, command: CallCommand, budget: Budget | None) -> Body:
    """Return what a request or response of a call carried."""
    found = list(call_trees(command, pdu.body))
    if not found:
        return Body("none")
    budget = budget or Budget()
    values = [_shown(tree, budget) for _, tree, _ in found]
    problem = next((problem for _, _, problem in found if problem), None)
    value = values[0] if len(values) == 1 else values
    return Body(f"protobuf {found[0][0]}", value, problem=problem)


def _shown(value: object, budget: Budget) -> object:
    if isinstance(value, dict):
        made = {name: _shown(one, budget) for name, one in value.items()}
        if isinstance(value.get("body"), bytes):
            made["body"] = _shown(body_of_message(value, budget), budget)
        return made
    if isinstance(value, list):
        return [_shown(one, budget) for one in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    return value

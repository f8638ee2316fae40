"""Rebuild the body of a gRPC request or response from its kept bytes."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from ..budget import Budget
from ..remoting.bodies.body import Body
from .command import CallCommand
from .pieces import PREFIX, opened
from .tree import Tree, decode_message, text_at, tree_at, trees_at


def call_trees(command: CallCommand, body: bytes) -> Iterator[tuple[str, Tree, str | None]]:
    """Yield type, fields, and problem of each message in a request or response."""
    at = 0
    for name in command.types:
        if at + PREFIX > len(body):
            return
        start = at + PREFIX
        at = start + int.from_bytes(body[at + 1 : start])
        decoded = decode_message(name, body[start:at])
        yield name, decoded.tree, decoded.problem


def messages_in(tree: Tree) -> list[Tree]:
    """Return the RocketMQ messages in a request or a response."""
    single = tree_at(tree, "message")
    return [single] if single else trees_at(tree, "messages")


def body_of_message(message: Tree, budget: Budget) -> bytes:
    """Return the body of a RocketMQ message, decompressed."""
    body = message.get("body")
    if not isinstance(body, bytes):
        return b""
    if text_at(message, "system_properties", "body_encoding") != "GZIP":
        return body
    return opened(body, "gzip", budget)[0] or body


def call_body_of(command: CallCommand, body: bytes, budget: Budget | None) -> Body:
    """Return the body of a gRPC request or response in JSON types.

    RocketMQ message bodies become text if they are UTF-8, base64 otherwise.
    """
    trees = list(call_trees(command, body))
    if not trees:
        return Body("none")
    budget = budget or Budget()
    values = [_shown(tree, budget) for _, tree, _ in trees]
    problem = next((problem for _, _, problem in trees if problem), None)
    value = values[0] if len(values) == 1 else values
    return Body(f"protobuf {trees[0][0]}", value, problem=problem)


def _shown(value: object, budget: Budget) -> object:
    if isinstance(value, dict):
        made = {name: _shown(item, budget) for name, item in value.items()}
        if isinstance(value.get("body"), bytes):
            made["body"] = _shown(body_of_message(value, budget), budget)
        return made
    if isinstance(value, list):
        return [_shown(item, budget) for item in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    return value

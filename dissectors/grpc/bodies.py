"""What a request or a response of a call carried, taken apart again from its kept bytes."""

from __future__ import annotations

from collections.abc import Iterator

from ..budget import Budget
from .command import CallCommand
from .pieces import PREFIX, opened
from .tree import Tree, decode_message, text_at, tree_at, trees_at


def call_trees(command: CallCommand, body: bytes) -> Iterator[tuple[str, Tree, str | None]]:
    """Yield type, fields and problem of each message in what a request or response carried."""
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
    """Return the body of a RocketMQ message, opened where the client compressed it."""
    body = message.get("body")
    if not isinstance(body, bytes):
        return b""
    if text_at(message, "system_properties", "body_encoding") != "GZIP":
        return body
    return opened(body, "gzip", budget)[0] or body

"""Where messages and state go that have to survive a crash: what a store needs of a file.

RocketMQ: ConfigManager, CommitLog.
"""

from __future__ import annotations

from typing import Protocol

from ..groups import GroupConfig
from ..topics import TopicConfig
from .shelf import StoredRecord


class Journal(Protocol):
    """Where messages and state go that have to survive a crash."""

    def put_message(self, record: StoredRecord) -> None:
        """Write a message that was stored."""

    def drop_messages(self, below: int) -> None:
        """Drop the messages below a commit log offset, which were forgotten."""

    def put_end(self, topic: str, queue_id: int, offset: int) -> None:
        """Write where a queue whose messages are all forgotten goes on; "" is the commit log."""

    def put_topic(self, config: TopicConfig) -> None:
        """Write a topic that was made or changed."""

    def drop_topic(self, topic: str) -> None:
        """Remove a topic with its queues."""

    def put_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Write the offset of a group in a queue."""

    def drop_offset(self, group: str, topic: str, queue_id: int) -> None:
        """Remove an offset."""

    def put_group(self, config: GroupConfig) -> None:
        """Write a group that was made or changed."""

    def drop_group(self, group: str) -> None:
        """Remove a group."""

    def finish_message(self, physical_offset: int) -> None:
        """Remove a scheduled or half message that is settled."""

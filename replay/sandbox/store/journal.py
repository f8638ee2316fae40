"""Where messages and state go that shall survive a crash: what a store needs of a file.

RocketMQ: ConfigManager, CommitLog.
"""

from __future__ import annotations

from typing import Protocol

from .groups import GroupConfig
from .shelf import Record
from .topics import TopicConfig


class Journal(Protocol):
    """Where messages and state go that shall survive a crash."""

    def put_message(self, record: Record) -> None:
        """A message was stored."""

    def drop_messages(self, below: int) -> None:
        """Messages below a commit log offset were forgotten."""

    def put_end(self, topic: str, queue_id: int, offset: int) -> None:
        """A queue whose messages are all forgotten goes on at an offset; "" is the commit log."""

    def put_topic(self, config: TopicConfig) -> None:
        """A topic was made or changed."""

    def drop_topic(self, topic: str) -> None:
        """A topic is gone, with its queues."""

    def put_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """A group is so far in a queue."""

    def drop_offset(self, group: str, topic: str, queue_id: int) -> None:
        """An offset is gone."""

    def put_group(self, config: GroupConfig) -> None:
        """A group was made or changed."""

    def drop_group(self, group: str) -> None:
        """A group is gone."""

    def finish_message(self, physical_offset: int) -> None:
        """A scheduled or half message is done with."""

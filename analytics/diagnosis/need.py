"""What a capture must have for a rule to speak."""

from __future__ import annotations

from enum import StrEnum


class Need(StrEnum):
    """What a capture must have for a rule to speak at all."""

    ROUTES = "answers of a NameServer"
    SENDS = "sends of producers"
    PULLS = "pulls or pops of consumers"
    HEARTBEATS = "heartbeats of clients"
    CONNECTIONS = "rows of TCP connections"
    HANDSHAKES = "beginnings of connections"
    GROUPS = "requests of consumer groups"
    TRANSACTIONS = "transactional messages"
    ADMIN = "requests of administrators"

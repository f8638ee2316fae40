"""The tables say what the published definitions say: all of it, no more."""

from __future__ import annotations

from functools import cache

import pytest

from dissectors.grpc.definition import ENUMS, METHODS
from dissectors.grpc.tree import TABLES
from tests.cluster.fixtures import require_jars
from tests.cluster.servers.artifacts import PROXY_5, fetch

from .published import Published, published

pytestmark = pytest.mark.cluster

OF_PROTOBUF = {"google.protobuf.Duration", "google.protobuf.Timestamp"}
"""messages that the definitions import"""


@cache
def _published() -> Published:
    require_jars([PROXY_5])
    (jar,) = fetch(PROXY_5).glob("rocketmq-proto-*.jar")
    return published(jar)


def test_messages_and_their_fields() -> None:
    mine = {
        name: {field.number: (field.name, str(field.kind), field.of, field.many) for field in row}
        for name, row in ((name, table.values()) for name, table in TABLES.items())
        if name not in OF_PROTOBUF
    }
    assert mine == _published().messages


def test_enums() -> None:
    assert _published().enums == ENUMS


def test_methods() -> None:
    mine = {
        f"{one.service}/{one.name}": (one.asks, one.asks_many, one.gives, one.gives_many)
        for one in METHODS
    }
    assert mine == _published().methods

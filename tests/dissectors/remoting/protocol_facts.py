"""The protocol facts beside the repository, where they are: tables are compared row by row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

PROTOCOL = Path(__file__).resolve().parents[3].parent / "shared" / "protocol"


def facts(name: str) -> object:
    """The content of one table of facts; the test is skipped where the facts are not at hand."""
    path = PROTOCOL / name
    if not path.exists():
        pytest.skip("the protocol facts are not beside the repository")
    return json.loads(path.read_text())


def rows(name: str) -> list[dict[str, object]]:
    """A table of facts that is a list of rows."""
    table = facts(name)
    assert isinstance(table, list)
    return table


def table(name: str) -> dict[str, object]:
    """A table of facts that is an object."""
    found = facts(name)
    assert isinstance(found, dict)
    return found


def release_of_tag(tag: str) -> str:
    """`rocketmq-all-5.3.2` → `5.3.2`."""
    return tag.removeprefix("rocketmq-").removeprefix("all-").removesuffix("-incubating")

"""The dissector as a file, written once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissectors.wireshark import lua_text


@pytest.fixture(scope="session")
def dissector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dissector, alone in a folder that also stands for the user's home."""
    path = tmp_path_factory.mktemp("wireshark") / "rocketmq.lua"
    path.write_text(lua_text("0.0.0-test"), encoding="utf-8")
    return path

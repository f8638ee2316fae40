"""The dissector as a file, written once for all tests; crafted segments as a capture."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from bench.decode.tshark_baseline import BARE, lua_missing, lua_prefix
from dissectors.wireshark import lua_text
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send
from tests.traffic.joined import join
from tests.traffic.talk import Talk, Tcp

from .crafted import SIZES, Capture
from .tshark import Layer, commands_in, commands_of


@pytest.fixture(scope="session")
def dissector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dissector, alone in a folder that also stands for the user's home."""
    if reason := lua_missing():
        pytest.skip(reason)
    if lua_prefix() != BARE:
        pytest.skip("this tshark does not run Lua scripts for this user")
    path = tmp_path_factory.mktemp("wireshark") / "rocketmq.lua"
    path.write_text(lua_text("0.0.0-test"), encoding="utf-8")
    return path


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    """Writes segments as a capture."""

    def write(segments: Iterable[Tcp]) -> Path:
        path = tmp_path / "crafted.pcap"
        path.write_bytes(pcap_of(segments))
        return path

    return write


@pytest.fixture(scope="module")
def cut(
    dissector: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[int, list[Layer]]]:
    """The commands in frames that are cut anywhere, by size and form; tshark starts once."""
    folder = tmp_path_factory.mktemp("cut")
    for size in SIZES:
        for binary in (False, True):
            frames = [send(number, bytes(60), binary=binary).frame for number in range(3)]
            talk = Talk(mss=size).open().say(0, b"".join(frames))
            (folder / f"{size} {binary}").with_suffix(".pcap").write_bytes(pcap_of(talk.segments))
    joined = join(sorted(folder.iterdir()), folder / "all.pcapng")
    found = commands_in(joined, commands_of(dissector, joined.path))
    return {path.stem: commands for path, commands in found.items()}

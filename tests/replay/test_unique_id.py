"""Unique ids: the layout of the Java classes, and that no two are the same."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dissectors.remoting.ids.message_ids import decode_unique_key
from replay.unique_id import UniqueIds
from tests.replay.java_sends import VECTORS, java_sends

MARCH_2024 = 1_710_000_000_000


@pytest.fixture(params=["UTC", "Asia/Shanghai", "America/New_York", "Pacific/Apia"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def test_an_id_says_where_and_when_it_was_made(zone: str) -> None:
    ids = UniqueIds("192.0.2.10", 0x12345, 0xCAFEBABE)
    for now in range(MARCH_2024, MARCH_2024 + 400 * 86_400_000, 86_399_999):
        key = decode_unique_key(ids.next(now))
        assert key is not None
        assert (key.address, key.pid, key.loader_hash) == ("192.0.2.10", 0x2345, 0xCAFEBABE)
        local = time.localtime(now // 1000)
        first = time.mktime((local.tm_year, local.tm_mon, 1, 0, 0, 0, 0, 0, -1))
        assert key.month_offset == now - int(first) * 1000
    assert os.environ["TZ"] == zone


@pytest.mark.skipif(not VECTORS.exists(), reason="the protocol's test vectors are not here")
def test_the_layout_is_that_of_the_java_class() -> None:
    others = json.loads(Path(VECTORS).read_text())["other"]
    expected = next(v["value"] for v in others if v["name"] == "uniq_id_example")
    key = decode_unique_key(expected)
    assert key is not None
    ids = UniqueIds(key.address, key.pid, key.loader_hash)
    year, month = time.gmtime()[:2]
    begin = int(time.mktime((year, month, 1, 0, 0, 0, 0, 0, -1))) * 1000
    made = ids.next(begin + key.month_offset)
    assert made[:-4] == expected[:-4]
    assert len(made) == 56
    assert made.endswith("0000")


def test_ids_of_java_clients_are_of_this_layout() -> None:
    for sent in java_sends():
        text = sent.command.ext_fields["i"]
        if "UNIQ_KEY\x01" in text:
            given = text.split("UNIQ_KEY\x01")[1].partition("\x02")[0]
            key = decode_unique_key(given)
            assert key is not None
            prefix = UniqueIds(key.address, key.pid, key.loader_hash).next(0)[:-12]
            assert given.startswith(prefix)


def test_no_two_ids_are_the_same() -> None:
    ids = UniqueIds("192.0.2.10", 1, 1)
    made = {ids.next(MARCH_2024) for _ in range(65536)}
    made |= {ids.next(MARCH_2024 + 1) for _ in range(65536)}
    assert len(made) == 131072
    other = UniqueIds("192.0.2.10", 1, 2)
    assert other.next(MARCH_2024) not in made


def test_a_clock_that_goes_back_gives_ids_of_the_layout_still() -> None:
    ids = UniqueIds("192.0.2.10", 1, 1)
    first_of_april = int(time.mktime((2024, 4, 1, 0, 0, 0, 0, 0, -1))) * 1000
    ids.next(first_of_april + 5)
    for back in (1, 999_999, 1_000_001, 86_400_000):
        key = decode_unique_key(ids.next(first_of_april - back))
        assert key is not None
        assert back > 1_000_000 or key.month_offset == 0


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(ValueError, match="somewhere"):
        UniqueIds("somewhere", 1, 1)

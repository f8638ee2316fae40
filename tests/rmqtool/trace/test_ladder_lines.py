"""Ladder diagrams fit 80, 120 and 160 columns, with as many lanes as there is room for."""

from __future__ import annotations

import pytest

from rmqtool.trace.ladder_lines import ladder_lines
from rmqtool.ui.console import UNLIMITED, Terminal, cells
from tests.analytics.life.lives import lives_in


@pytest.mark.parametrize("width", [80, 120, 160, UNLIMITED])
@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("stored-twice-5x.pcap", "has unique_key"),
        ("push-retry-dlq-5x.pcap", "has unique_key"),
        ("transaction-5x.pcap", "has unique_key"),
        ("pop-calls-5x.pcap", "event == delivered"),
    ],
)
def test_no_line_is_wider_than_the_terminal(name: str, where: str, width: int) -> None:
    lives = lives_in(name, where=where)
    lines = ladder_lines(lives, Terminal(True, width, False))
    assert lines
    assert max(map(cells, lines)) <= min(width, 160)
    words = "".join("".join(lines).split())
    assert all("".join(step.words.split()) in words for life in lives for step in life.steps)
    arrows = [line for line in lines if "▶" in line or "◀" in line]
    assert len(arrows) == sum(len(life.steps) for life in lives)


def test_an_arrow_goes_from_who_spoke_to_whom() -> None:
    (life,) = lives_in("stored-twice-5x.pcap", key="key-5")
    lines = ladder_lines([life], Terminal(True, 160, False))
    heads = next(line for line in lines if "broker-a" in line and "broker-b" in line)
    first = next(line for line in lines if "▶" in line)
    assert " sent " in first
    assert first.index("├") < heads.index("broker-a") < heads.index("broker-b")
    assert abs(first.index("▶") - heads.index("broker-a")) < 8
    back = next(line for line in lines if "acknowledged" in line and "◀" in line)
    assert back.index("◀") > heads.index("broker-a") + 8


def test_without_room_those_of_a_kind_share_a_lane() -> None:
    (life,) = lives_in("stored-twice-5x.pcap", key="key-5")
    lines = ladder_lines([life], Terminal(True, 80, False))
    assert any("2 brokers" in line for line in lines)
    assert any("@producer" in line for line in lines)


def test_colours_only_where_they_are_wanted() -> None:
    (life,) = lives_in("stored-twice-5x.pcap", key="key-5")
    assert "\x1b" not in "".join(ladder_lines([life], Terminal(True, 120, False)))
    assert "\x1b" in "".join(ladder_lines([life], Terminal(True, 120, True)))

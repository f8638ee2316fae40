"""Blocks in shared memory hold until they are given back, and there is an end of the room."""

from __future__ import annotations

from dissectors.processes.children import NO_PLACE, UNIT, UNITS, SharedBlocks


def test_blocks_hold_until_they_are_given_back() -> None:
    blocks = SharedBlocks()
    first, second = b"a" * (UNIT + 1), b"b" * 10
    places = blocks.put([first[:5], first[5:]], len(first)), blocks.put([second], len(second))
    assert bytes(blocks.block(places[0], len(first))) == first
    assert bytes(blocks.block(places[1], len(second))) == second
    blocks.free(places[0], len(first))
    assert blocks.put([bytes(UNIT)], UNIT) == places[0]
    assert bytes(blocks.block(places[1], len(second))) == second


def test_where_there_is_no_room_nothing_is_overwritten() -> None:
    blocks = SharedBlocks()
    whole = bytes(UNIT * UNITS)
    assert blocks.put([whole, b"x"], len(whole) + 1) == NO_PLACE
    place = blocks.put([whole], len(whole))
    assert place != NO_PLACE
    assert blocks.put([b"x"], 1) == NO_PLACE
    blocks.free(place, len(whole))
    assert blocks.put([b"x"], 1) == place

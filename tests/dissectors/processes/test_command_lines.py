"""Commands of several processes: what each says of them, and how they are put in order."""

from __future__ import annotations

from array import array
from itertools import pairwise
from pathlib import Path

from dissectors.budget import FREE_BYTES, Budget
from dissectors.decode.command_order import MOST_BYTES, MOST_HELD
from dissectors.decode.command_row import WHOLE
from dissectors.decode.pipeline import Decode
from dissectors.processes.command_lines import CommandLines, CommandMerge
from dissectors.processes.merging import LAST, PLACE, runs_of
from dissectors.processes.task import Encoded

CAPTURE = str(Path(__file__).resolve().parents[3] / "samples" / "send-sync-5x.pcap")


def test_commands_that_may_be_made_of_few_bytes_are_watched() -> None:
    """A process says how far it is beyond what reading earned, and how much it holds."""
    budget = Budget(1)
    lines = CommandLines([CAPTURE], WHOLE, budget)
    commands = [one for batch in Decode([CAPTURE]).commands() for one in batch]
    places, data, ends, size = lines.of(commands[:3])
    assert len(places) == 3 * PLACE
    assert [len(line) + 1 for line in data.splitlines()] == [
        end - begin for begin, end in pairwise([0, *memoryview(ends).cast("q")])
    ]
    assert lines.most_spent >= FREE_BYTES - budget.room > FREE_BYTES // 2
    assert size == sum(one.pdu.header_length + len(one.pdu.body) for one in commands[:3])


def test_what_is_held_back_for_the_order_is_bounded() -> None:
    merge = CommandMerge(2)
    assert not merge.is_near(MOST_HELD + 1, MOST_BYTES + 1, (MOST_HELD, MOST_BYTES))
    assert merge.is_near(1, 1, (MOST_HELD + 1, 1))
    assert merge.is_near(1, 1, (1, MOST_BYTES + 1))
    nothing = Encoded(memoryview(b""), b"")
    place = array("q", [7, 0]).tobytes()
    late = Encoded(memoryview(b"late\n"), runs_of(place, array("q", [5]).tobytes()))
    assert merge.merged([late, nothing], 1, 100, 7).counts == [0]
    assert merge.is_near(MOST_HELD, 1, (0, 0))
    assert merge.is_near(1, MOST_BYTES, (0, 0))
    place = array("q", [3, 0]).tobytes()
    early = Encoded(memoryview(b"early\n"), runs_of(place, array("q", [6]).tobytes()))
    assert merge.merged([nothing, early], 1, 100, LAST).data == b"early\nlate\n"
    assert merge.given == 2
    assert not merge.is_near(MOST_HELD, MOST_BYTES, (0, 0))

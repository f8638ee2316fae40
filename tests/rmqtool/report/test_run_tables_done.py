"""What is shown meanwhile: how much is decoded, which table of how many, how long is left."""

from __future__ import annotations

from rmqtool.report.run import CapturesDone, TablesDone
from rmqtool.ui.screen.progress import Far


def test_the_rest_takes_as_long_as_what_is_done() -> None:
    clock = [100.0]
    done = TablesDone(4, lambda: clock[0])
    assert done.far(Far("1 of 2 tasks", 0.5)) == Far("1 of 2 tasks", 0.5)
    done.begin()
    clock[0] = 105.0
    assert done.far(Far("")) == Far("table 1 of 4", 0.0)
    done.begin()
    assert done.far(Far("1 of 2 tasks", 0.5)) == Far(
        "table 2 of 4, 1 of 2 tasks, about 15.0 s left", 0.25
    )


def test_what_the_first_tables_share_is_no_estimate() -> None:
    clock = [0.0]
    done = TablesDone(10, lambda: clock[0])
    done.begin()
    clock[0] = 60.0
    done.begin()
    assert done.far(Far("")) == Far("table 2 of 10", 0.1)
    done.begin()
    assert done.far(Far("")) == Far("table 3 of 10, about 4 min left", 0.2)


def test_bytes_of_how_many_packets_and_exchanges_are_shown() -> None:
    clock = [100.0]
    done = CapturesDone(4_000_000, lambda: clock[0])
    assert done.far() == Far("0 B of 4.00 MB, 0 exchanges", 0.0)
    clock[0] = 105.0
    done.note(1_000_000, 9_000, 1)
    text = "1.00 MB of 4.00 MB, 9,000 packets, 1 exchange, about 15.0 s left"
    assert done.far() == Far(text, 0.25)
    done.note(4_000_000, 36_000, 2)
    assert done.far() == Far("4.00 MB of 4.00 MB, 36,000 packets, 2 exchanges", 1.0)
    unknown = CapturesDone(0)
    unknown.note(7_000, 0, 3)
    assert unknown.far() == Far("7.00 kB, 3 exchanges")

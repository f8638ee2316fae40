"""What is shown while reports are computed: which table of how many, and how long is left."""

from __future__ import annotations

from rmqtool.report.run import TablesDone
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
        "table 2 of 4, 1 of 2 tasks, about 15.0s left", 0.25
    )

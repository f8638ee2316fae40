"""The browser over a large capture: first rows, the whole, memory, filters.

`python -m bench.browse [--packets N]`: the model without a screen, as the screen uses it; of
each the CPU seconds and those of the clock, which depend on what else the machine does (its load is
said).
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable

from dissectors.decode.pipeline import Decode, DecodeOptions
from rmqtool.browse.model.columns import TIMELINES
from rmqtool.browse.model.expressions import test_of_text
from rmqtool.browse.model.listing import Listing, ListOrder
from rmqtool.browse.model.session import BackgroundReading, BrowseSession, decoding

from .captures.captures import capture_of

PACKETS = 2_700_000
"""about a million exchanges"""
FILTERS = ("failed", "latency > 50ms", 'topic ~ "a" and queue_id == 1', "conversation == 7")


class Watch:
    """How long something takes."""

    def __init__(self) -> None:
        self._cpu, self._clock = time.process_time(), time.monotonic()

    def __str__(self) -> str:
        cpu, clock = time.process_time() - self._cpu, time.monotonic() - self._clock
        return f"{cpu:8.2f} s CPU, {clock:8.2f} s"

    def until(self, holds: Callable[[], bool]) -> Watch:
        """Wait."""
        while not holds():
            time.sleep(0.001)
        return self


def _memory() -> float:
    """Return the most memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.browse", description=__doc__)
    parser.add_argument("--packets", type=int, default=PACKETS)
    path = str(capture_of(parser.parse_args().packets).path)
    before = _memory()
    print(f"load           {', '.join(f'{one:.1f}' for one in os.getloadavg())}")
    opening = Watch()
    session = BrowseSession(path)
    decode = Decode([path], DecodeOptions(conversations=True, messages=True))
    reading = BackgroundReading(session, decoding(decode), decode.stop)
    listing = Listing(session.exchanges, TIMELINES["exchanges"])
    print(f"first rows     {opening.until(lambda: len(listing) >= 50)}")
    reading.wait()
    print(f"all read       {opening}")
    opening.until(lambda: listing.is_done)
    rows = session.exchanges.count
    print(f"exchanges      {rows:8,}; messages {session.messages.count:,}")
    print(f"memory         {_memory() - before:8.0f} MiB more than before")
    for text in FILTERS:
        listing.choose(test_of_text(text, "exchanges"), None)
        took = str(Watch().until(lambda: listing.is_done))
        print(f"filter         {took}: {text}: {len(listing):,}")
    listing.choose(None, ListOrder("latency_us", True))
    print(f"sort           {Watch().until(lambda: listing.is_done)}: latency_us")
    screenful = Watch()
    middle = len(listing) // 2
    for place in range(middle, middle + 50):
        number = listing.number_at(place)
        row = None if number is None else session.exchanges.at(number)
        assert row is not None
        _ = row.topic, row.request_name, row.latency_us, row.server_address
    print(f"a screenful    {screenful}, sorted, nothing cached")
    listing.close()
    session.close()
    print(f"memory         {_memory() - before:8.0f} MiB more than before, in the end")


if __name__ == "__main__":
    sys.exit(main())

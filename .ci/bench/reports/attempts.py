"""Replays the fault strategy over many attempts of one producer.

python -m bench.reports.attempts COUNT
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pyarrow

from analytics.isolation.isolation_table import Assumed, isolation_rows

BATCH = 10_000
FAILED_EVERY = 500


def batches(count: int) -> Iterator[pyarrow.RecordBatch]:
    """Yield attempts at four brokers, one every 60 µs; every 500th is refused."""
    for start in range(0, count, BATCH):
        numbers = np.arange(start, min(start + BATCH, count))
        size = len(numbers)
        failed = numbers % FAILED_EVERY == 0
        texts = {
            "client": "10.0.0.1",
            "process": "1234C18B4AAC",
            "group": "shop",
            "gone": "",
            "language": "JAVA",
            "version_name": "V5_3_0",
            "capture": "one.pcap",
            "last_broker": None,
            "tie": None,
        }
        yield pyarrow.record_batch(
            {
                **{name: pyarrow.array([text] * size, "string") for name, text in texts.items()},
                "topic": pyarrow.array([f"Topic{number % 24}" for number in numbers]),
                "broker": pyarrow.array([f"broker-{number % 4}" for number in numbers]),
                "outcome": pyarrow.array(np.where(failed, "refused", "stored")),
                "cause": pyarrow.array(np.where(failed, "SYSTEM_BUSY", ""), mask=~failed),
                "attempt": np.ones(size, dtype=np.int64),
                "begin": numbers * 60,
                "end": numbers * 60 + 2000,
                "key": numbers,
                "request_packet": numbers * 2,
            }
        )


def main() -> int:
    """Print how many rows of tables the attempts give."""
    made = isolation_rows(Assumed())(batches(int(sys.argv[1])))
    print(sum(batch.num_rows for batch in made))
    return 0


if __name__ == "__main__":
    sys.exit(main())

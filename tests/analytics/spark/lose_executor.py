"""Decode captures on a cluster twice; the first time an executor is killed in the middle.

python -m tests.analytics.spark.lose_executor MASTER MARK CAPTURE...

The file MARK is made by the task that kills its executor: it is killed once. Prints for each
time how many rows of each kind there are, and a digest of them.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

Batches = Iterator["pyarrow.RecordBatch"]


def killing(mark: str) -> Callable[[Batches], Batches]:
    """Return what passes batches on, and kills its executor once, when a task has decoded."""

    def passed(batches: Batches) -> Batches:
        yield from batches
        if not Path(mark).exists():
            Path(mark).touch()
            daemon = os.getppid()
            executor = Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1]
            os.kill(int(executor), signal.SIGKILL)

    return passed


def digest_of(rows: DataFrame) -> list[list[object]]:
    """Return each kind of rows with their number and a digest that does not depend on order."""
    from analytics.inputs.row_batches import KIND

    found = rows.groupBy(KIND).agg({"*": "count"}).collect()
    digests = rows.selectExpr(KIND, "xxhash64(struct(*)) as one").groupBy(KIND)
    by_kind = dict(digests.agg({"one": "bit_xor"}).collect())
    return sorted([kind, count, by_kind[kind]] for kind, count in found)


def main() -> None:
    """Decode and print."""
    from analytics.inputs.capture_frame import CaptureRows
    from analytics.inputs.row_batches import ALL
    from analytics.spark.session import SessionOptions, start_session
    from tests.analytics.spark.servers import QUICK_JAVA

    master, mark, *captures = sys.argv[1:]
    settings = {
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": QUICK_JAVA,
        "spark.sql.codegen.wholeStage": "false",
    }
    session = start_session(SessionOptions(master, memory="1g", settings=settings))
    try:
        rows = CaptureRows(tuple(captures), "input").by_tasks(session.spark, ALL, 4)
        for given in (rows.mapInArrow(killing(mark), rows.schema), rows):
            print(json.dumps(digest_of(given.persist())), flush=True)
    finally:
        session.stop()


if __name__ == "__main__":
    main()

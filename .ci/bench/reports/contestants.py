"""The latency aggregation by others, on the same files: DuckDB and pandas, each a program.

`python -m bench.reports.contestants duckdb|pandas FOLDER` prints what it found as JSON: by
operation, broker, topic, group and client the count and the exact percentiles.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

KEYS = ("operation", "broker", "topic", "group", "client")
SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)
"""of the percentiles that the report has"""


def by_duckdb(folder: Path) -> list[list[object]]:
    """Exact percentiles by DuckDB with two threads."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("set threads = 2")
    percentiles = ", ".join(f"quantile_disc(latency_us, {share})" for share in SHARES)
    found = connection.execute(
        f"""
        select request_name, broker_name, topic, "group",
          split_part(client_address, ':', 1) as client,
          count(*), {percentiles}
        from '{folder}/exchanges/*.parquet' group by all order by all
        """
    ).fetchall()
    return [list(row) for row in found]


def by_pandas(folder: Path) -> list[list[object]]:
    """Exact percentiles by pandas, which holds all rows of the columns it needs."""
    import pandas

    columns = ["request_name", "broker_name", "topic", "group", "client_address", "latency_us"]
    frame = pandas.read_parquet(folder / "exchanges", columns=columns)
    frame["client"] = (
        frame["client_address"].astype("category").map(lambda text: text.split(":")[0])
    )
    keys = ["request_name", "broker_name", "topic", "group", "client"]
    for name in keys:
        frame[name] = frame[name].astype("category")
    groups = frame.groupby(keys, observed=True)["latency_us"]
    table = groups.quantile([*SHARES], interpolation="lower").unstack()
    counts = groups.count()
    return sorted(
        [*map(str, key), int(counts[key]), *(int(value) for value in row)]
        for key, row in zip(table.index, table.to_numpy().tolist(), strict=True)
    )


if __name__ == "__main__":
    who, where = sys.argv[1:]
    print(json.dumps({"duckdb": by_duckdb, "pandas": by_pandas}[who](Path(where))))

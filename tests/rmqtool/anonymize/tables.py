"""Reads the tables of decoded logs, to compare them."""

from __future__ import annotations

import json
from pathlib import Path


def tables_of(log: Path) -> dict[str, list[dict[str, object]]]:
    """Return the rows of each table of a decoded log, without the names of captures."""
    found: dict[str, list[dict[str, object]]] = {}
    for path in sorted(log.rglob("*")):
        table = path.relative_to(log).parts[0].partition(".")[0]
        if path.suffix == ".jsonl":
            rows = [json.loads(line) for line in path.read_text().splitlines()]
        elif path.suffix == ".parquet":
            import pyarrow.parquet

            rows = pyarrow.parquet.ParquetFile(path).read().to_pylist()
        else:
            continue
        found.setdefault(table, []).extend({**row, "capture": "", "body_crc": 0} for row in rows)
    return {name: sorted(rows, key=str) for name, rows in found.items()}

"""Keeps what matters of captures: python examples/archive.py FOLDER CAPTURE..."""

from __future__ import annotations

import sys

import pyarrow.dataset

import rmqtool


def main(folder: str, *captures: str) -> None:
    """Write a decoded log without heartbeats and route queries; count what is in it by topic."""
    where = "request not in (HEART_BEAT, GET_ROUTEINFO_BY_TOPIC)"
    log = rmqtool.read(captures).to_parquet(folder, where)
    exchanges = pyarrow.dataset.dataset(log / "exchanges").to_table(columns=["topic"])
    counts = exchanges.group_by("topic").aggregate([([], "count_all")])
    for row in counts.to_pylist():
        print(f"{row['count_all']:6}  {row['topic'] or '(no topic)'}")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A Spark session as the reports start it, and one query: what `--small` compares with.

python -m bench.reports.bare
"""

from __future__ import annotations

from analytics.spark.session import start_session


def main() -> None:
    """Start Spark, count, end it."""
    session = start_session()
    if session.spark.range(10).count() != 10:
        raise SystemExit("Spark cannot count")
    session.stop()


if __name__ == "__main__":
    main()

"""Time partitions of a decoded log: folders in Hive's naming, in UTC."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from ..times import text_of_time

NO_TIME: Final = "__HIVE_DEFAULT_PARTITION__"
"""partition value of rows without a time"""
_DAY_US, _HOUR_US = 86_400_000_000, 3_600_000_000


class Partition(StrEnum):
    """Partition of a growing log."""

    date = "date"
    hour = "hour"

    @property
    def length_us(self) -> int:
        """Length of a partition, microseconds."""
        return _DAY_US if self is Partition.date else _HOUR_US

    def folder_of(self, place: int | None) -> str:
        """Return the folder of a partition, numbered from the epoch; None: without a time."""
        if place is None:
            date, hour = NO_TIME, NO_TIME
        else:
            text = text_of_time(place * self.length_us * 1000)
            date, hour = text[:10], text[11:13]
        return f"date={date}" if self is Partition.date else f"date={date}/hour={hour}"

"""Convert file names to and from Spark's."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PLACE = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*):(?P<authority>//[^/]*)?(?P<path>/.*)?")
"""A Hadoop file name: `s3a://bucket/x`, `hdfs://host:9000/x`, `file:/x`."""


def uri_of(file: str) -> str:
    """Return a path escaped so that Spark does not treat its characters as a pattern."""
    for char in "\\{}[]*?":
        file = file.replace(char, "\\" + char)
    return file


Numbers = dict[str, dict[str, int]]
"""path -> file system -> number of a file"""


def numbers_of(files: Iterable[str]) -> Numbers:
    """Return the numbers of files from 0, in order."""
    numbers: Numbers = {}
    for number, file in enumerate(files):
        system, path = parts_of(file)
        numbers.setdefault(path, {})[system] = number
    return numbers


def number_of(numbers: Numbers, file: str) -> int:
    """Return the number of a file as Hadoop names it."""
    system, path = parts_of(file)
    systems = numbers[path]
    # Hadoop may add the file system or its host where the name had none.
    added = min(systems, key=lambda name: name != "" and not name.endswith("//"))
    return systems.get(system, systems[added])


def parts_of(file: str) -> tuple[str, str]:
    """Return the file system of a file, and its path without a trailing slash."""
    match = _PLACE.fullmatch(file)
    if match is None:
        return "", file.rstrip("/")
    scheme, authority, path = match["scheme"], match["authority"] or "//", match["path"] or ""
    return f"{scheme}:{authority}", path.rstrip("/")

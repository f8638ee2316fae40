"""Convert file names to and from Spark's."""

from __future__ import annotations

import re

_PLACE = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*):(?P<authority>//[^/]*)?(?P<path>/.*)?")
"""A Hadoop file name: `s3a://bucket/x`, `hdfs://host:9000/x`, `file:/x`."""


def uri_of(file: str) -> str:
    """Return a path escaped so that Spark does not treat its characters as a pattern."""
    for char in "\\{}[]*?":
        file = file.replace(char, "\\" + char)
    return file


def place_of(file: str) -> str:
    """Return the path of a file, without the prefix that Hadoop may omit or add."""
    return parts_of(file)[1]


def parts_of(file: str) -> tuple[str, str]:
    """Return the file system of a file, and its path without a trailing slash."""
    match = _PLACE.fullmatch(file)
    if match is None:
        return "", file.rstrip("/")
    scheme, authority, path = match["scheme"], match["authority"] or "//", match["path"] or ""
    return f"{scheme}:{authority}", path.rstrip("/")

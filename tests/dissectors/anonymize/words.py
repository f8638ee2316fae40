"""Words of the remarks of RocketMQ's servers and clients, by the strings of their classes.

`python -m tests.dissectors.anonymize.words` writes those of the pinned releases to
`dissectors/anonymize/words.txt`.
"""

from __future__ import annotations

import ast
import re
import textwrap
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dissectors.anonymize.vocabulary import REMARK_WORDS
from dissectors.table_text import entries
from tests.cluster.servers.artifacts import fetch

RELEASES = ("4.9.8", "5.3.3-proxy", "5.5.0-proxy")
_RUN = re.compile(r"[A-Za-z0-9]{2,}")
_COMPOUND = re.compile(r"(?<![\w-])[A-Za-z]{2,}(?:[-_][A-Za-z]{2,})+(?![\w-])")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]+")
_SETTER = re.compile(r"set[A-Z]\w+")
_SAYING = (
    *("tcp", "tls", "conversations", "remoting", "http2", "grpc", "replication", "decode"),
    *("message_rows", "broker_store"),
)
"""Packages with texts of findings."""
_LONGEST = 200
_WRAPPED: dict[str, Any] = {"width": 100, "break_long_words": False, "break_on_hyphens": False}
_TARGET = Path("dissectors/anonymize/words.txt")
_LENGTHS = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2,
            17: 4, 18: 4, 19: 2, 20: 2}  # fmt: skip


def strings_of(data: bytes) -> list[str]:
    """Return the texts in the constant pool of a class."""
    count = int.from_bytes(data[8:10], "big")
    at, number, texts = 10, 1, []
    while number < count:
        tag = data[at]
        if tag == 1:
            size = int.from_bytes(data[at + 1 : at + 3], "big")
            texts.append(data[at + 3 : at + 3 + size].decode("utf-8", "replace"))
            at += 3 + size
        else:
            at += 1 + _LENGTHS[tag]
            number += tag in (5, 6)
        number += 1
    return texts


def _classes() -> Iterator[tuple[str, list[str]]]:
    """Yield the classes of RocketMQ: path in the archive, and texts."""
    for release in RELEASES:
        for jar in fetch(release).glob("rocketmq-*.jar"):
            with zipfile.ZipFile(jar) as archive:
                for name in archive.namelist():
                    if name.endswith(".class"):
                        yield name, strings_of(archive.read(name))


def words() -> set[str]:
    """Return the words of messages, and of the names of classes and packages."""
    found: set[str] = set()
    for name, texts in _classes():
        found.update(_RUN.findall(name.removesuffix(".class")))
        said = (one for one in texts if " " in one or _CONSTANT.fullmatch(one))
        found.update(word for text in said for word in _words_in(text))
    return found


def _words_in(text: str) -> list[str]:
    """Return the words of a text, and those that are made of several, except constants."""
    compounds = (one for one in _COMPOUND.findall(text) if one.upper() != one)
    return [*_RUN.findall(text), *compounds]


def settings() -> set[str]:
    """Return the names of settings: what classes of configurations have setters for."""
    found: set[str] = set()
    for name, texts in _classes():
        if name.endswith("Config.class"):
            setters = (text[3:] for text in texts if _SETTER.fullmatch(text))
            found.update(text[0].lower() + text[1:] for text in setters)
    return found


def own_words() -> set[str]:
    """Return the words of the findings of rmqtool: of the texts in its sources."""
    found: set[str] = set()
    for top in _SAYING:
        for path in Path("dissectors", top).rglob("*.py"):
            tree = ast.parse(path.read_text())
            documents = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
            for one in ast.walk(tree):
                if isinstance(one, ast.Constant) and id(one) not in documents:
                    text = one.value
                    if isinstance(text, str) and " " in text and len(text) < _LONGEST:
                        found.update(_words_in(text))
    return found


def main() -> None:
    """Write the words beside the module that reads them."""
    # Logs of earlier releases have texts of earlier findings.
    earlier = dict(entries(_TARGET.read_text("utf-8")))["findings"].split()
    findings = own_words().union(earlier) - REMARK_WORDS
    lists = {"words": words(), "settings": settings(), "findings": findings}
    comment = _TARGET.read_text().partition("\n")[0]
    parts = [
        textwrap.fill(f"{name}: {' '.join(sorted(found))}", subsequent_indent="  ", **_WRAPPED)
        for name, found in lists.items()
    ]
    _TARGET.write_text("\n".join([comment, *parts, ""]))


if __name__ == "__main__":
    main()

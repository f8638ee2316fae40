"""Rewrite a decoded log: every part of every table, and the manifest."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from ..decode.decoded_log import FORMS, MANIFEST, Manifest, file_in, read_manifest, write_manifest
from ..decode.growing_log import PARTS
from ..decode.log_parts import CONVERSATIONS, FINDINGS
from .pseudonyms import Pseudonyms
from .rows import RowsError, json_lines, parquet

_CHUNK = 1 << 20


def rewrite_log(folder: Path, out: Path, names: Pseudonyms) -> None:
    """Write a rewritten decoded log into an empty folder.

    Raise DecodedLogError if `folder` is not a log, RowsError if a part cannot be rewritten, and
    OSError.
    """
    manifest = read_manifest(folder)
    files = list(_files_of(folder, manifest))
    if names.learns:  # a first pass collects the names that stay; what it writes is not kept
        with open(os.devnull, "wb") as nowhere:
            for name in files:
                _rewrite(folder, name, nowhere, names)
        names.start_over()
    for name in files:
        path = out / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("wb") as file:
            _rewrite(folder, name, file, names)
    write_manifest(out / MANIFEST, _manifest(manifest, names))


def rewrite_rows(path: Path, out: BinaryIO, names: Pseudonyms) -> None:
    """Rewrite rows, JSON lines or Parquet; raise RowsError if that fails."""
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            file.seek(0)
            for line in json_lines(file, names):
                out.write(line)
            return
    with tempfile.TemporaryFile(prefix="rmqtool-anonymize-") as made:  # pyarrow needs a file
        parquet(str(path), made, names)
        made.seek(0)
        while piece := made.read(_CHUNK):
            out.write(piece)


def _files_of(folder: Path, manifest: Manifest) -> Iterator[str]:
    for member in PARTS.values():
        for part in getattr(manifest, member):
            yield part.file
    for table in (CONVERSATIONS, FINDINGS):
        for form in FORMS:
            if (folder / f"{table}.{form}").exists():
                yield f"{table}.{form}"


def _rewrite(folder: Path, name: str, out: BinaryIO, names: Pseudonyms) -> None:
    try:
        rewrite_rows(file_in(folder, name), out, names)
    except RowsError as error:
        raise RowsError(f"{name}: {error}") from None


def _manifest(manifest: Manifest, names: Pseudonyms) -> Manifest:
    for capture in manifest.captures:
        capture.name = names.name(capture.name)
    manifest.options = {name: _option(value, names) for name, value in manifest.options.items()}
    manifest.replications = [
        replace(
            replication,
            master=names.value(replication.master),
            slave=names.value(replication.slave),
            slave_id=replication.slave_id and names.value(replication.slave_id),
        )
        for replication in manifest.replications
    ]
    return manifest


def _option(value: object, names: Pseudonyms) -> object:
    if isinstance(value, list):
        return [_option(item, names) for item in value]
    return names.remark(value) if isinstance(value, str) else value

"""Errors of the libraries as those that programs catch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dissectors.rows.parquet import MissingLibraryError
from dissectors.tcp.source import CaptureError

from ..errors import MissingExtraError, ReadError


@contextmanager
def translated() -> Iterator[None]:
    """Raise what reading and writing raise as errors of the one family."""
    try:
        yield
    except CaptureError as error:
        raise ReadError(error.reason, error.path, error.offset, error.hint) from error
    except MissingLibraryError as error:
        raise MissingExtraError(str(error)) from error

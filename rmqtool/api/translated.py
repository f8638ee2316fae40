"""Translation of library errors to the errors of the API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dissectors.rows.parquet import MissingLibraryError
from dissectors.tcp.source import CaptureError

from ..errors import MissingExtraError, ReadError


@contextmanager
def translated() -> Iterator[None]:
    """Translate errors of reading and writing to `rmqtool.Error`."""
    try:
        yield
    except CaptureError as error:
        raise ReadError(error.reason, error.path, error.offset, error.hint) from error
    except MissingLibraryError as error:
        raise MissingExtraError(str(error)) from error

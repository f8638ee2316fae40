"""Rows of one kind on their way from the captures to the output, and what all kinds share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from dissectors.where import Test, WhereError, compile_where
from dissectors.where_fields import FieldSet

from .console import UNLIMITED, Terminal, When, terminal_of
from .decode_options import DecodeRequest
from .output import Output
from .sinks import Sink
from .status import CommandError, ExitStatus

Row = TypeVar("Row")


class Rows(NamedTuple, Generic[Row]):
    """Rows of one kind: where they come from and what can be asked of them."""

    batches: Callable[[], Iterator[Sequence[Row]]]
    """starts to read"""
    test: Test | None
    """the filter; None: all"""
    time: Callable[[Row], int | None]
    """when a row was, for --since and --until"""
    sink: Callable[[], Sink[Row]]
    """opens the output"""
    noun: str
    """what a row is, in the plural"""


def compiled(request: DecodeRequest, fields: FieldSet) -> Test | None:
    """Return the filter; an error in it becomes a usage error that points at the place."""
    if not request.where.strip():
        return None
    try:
        return compile_where(request.where, fields)
    except WhereError as error:
        raise CommandError(f"--where: {error.reason}", error.pointed(), ExitStatus.USAGE) from None


def is_live(request: DecodeRequest) -> bool:
    """Return whether rows come as they happen, so that none should wait for others."""
    return request.follow or "-" in request.sources


def output_terminal(request: DecodeRequest, output: Output) -> Terminal:
    """Return what the output can show; a file shows no colour unless that is asked for."""
    if output.path is None:
        return terminal_of(sys.stdout, request.colour)
    return Terminal(False, UNLIMITED, request.colour is When.always)
